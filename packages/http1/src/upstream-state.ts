import { demand, type ResponseHead } from "./message.ts";

/** Properties of a request that affect connection reuse. */
export interface UpstreamRequest {
  readonly method: string;
  readonly hasBody: boolean;
  /** false: the request says `Connection: close`. */
  readonly keepAlive: boolean;
  /** This is the second attempt. */
  readonly isRetry: boolean;
}

const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

/** Idempotent methods (RFC 9110 section 9.2.2). */
export function isIdempotent(method: string): boolean {
  return IDEMPOTENT.has(method);
}

/**
 * The state machine of one origin connection, without I/O: one exchange at a time, and when another may follow. An
 * event that is invalid in the current state throws.
 */
export class UpstreamState {
  #phase: "idle" | "busy" | "tunnel" | "closed" = "idle";
  #request: UpstreamRequest | undefined;
  #exchangeCount = 0;
  #isSent = false;
  #hasResponseBytes = false;
  #responseAllowsReuse = false;

  get isIdle(): boolean {
    return this.#phase === "idle";
  }

  /** Exchanges begun so far. */
  get exchangeCount(): number {
    return this.#exchangeCount;
  }

  /** The first byte of a request is about to be written. */
  requestStarted(request: UpstreamRequest): void {
    demand(this.#phase === "idle", "one request in flight for each connection");
    this.#phase = "busy";
    this.#request = request;
    this.#exchangeCount++;
    this.#isSent = false;
    this.#hasResponseBytes = false;
    this.#responseAllowsReuse = false;
  }

  /** The last byte of the request was written. */
  requestSent(): void {
    if (this.#phase === "busy") this.#isSent = true;
  }

  /** Bytes arrived. `destroy`: they are unsolicited and must never join a later exchange. */
  bytesArrived(): "read" | "destroy" {
    if (this.#phase === "busy") {
      this.#hasResponseBytes = true;
      return "read";
    }
    if (this.#phase === "tunnel") return "read";
    this.#phase = "closed";
    return "destroy";
  }

  responseStarted(head: Pick<ResponseHead, "keepAlive" | "framing" | "oddities">): void {
    demand(this.#phase === "busy", "a response belongs to a request");
    this.#hasResponseBytes = true;
    this.#responseAllowsReuse = head.keepAlive && head.framing.kind !== "until-close" && head.oddities.length === 0;
  }

  /**
   * The response is complete.
   * @param surplus  bytes behind its end were already read
   * @param oddityCount  oddities in head and body
   * @returns `keep` only if the request was sent completely and nothing forbids another exchange
   */
  responseEnded(surplus: boolean, oddityCount: number): "keep" | "destroy" {
    demand(this.#phase === "busy", "a response ends after it started");
    const keeps =
      this.#isSent && this.#request?.keepAlive === true && this.#responseAllowsReuse && !surplus && oddityCount === 0;
    this.#phase = keeps ? "idle" : "closed";
    this.#request = undefined;
    return keeps ? "keep" : "destroy";
  }

  /** The response switched protocols: all further bytes belong to the tunnel, and the connection is not reused. */
  tunnelStarted(): void {
    demand(this.#phase === "busy", "a tunnel requires a request");
    this.#phase = "tunnel";
  }

  /**
   * The connection ended or failed. `retry`: the request may be resent on another connection, since this one was
   * reused and probably closed by the origin: no response byte arrived, the method is idempotent, there is no body,
   * and it is the first attempt. `fail`: the exchange failed. `none`: idle.
   */
  lost(): "retry" | "fail" | "none" {
    const request = this.#request;
    const wasBusy = this.#phase === "busy";
    this.#phase = "closed";
    this.#request = undefined;
    if (!wasBusy || request === undefined) return "none";
    const isStale = this.#exchangeCount > 1 && !this.#hasResponseBytes;
    return isStale && isIdempotent(request.method) && !request.hasBody && !request.isRetry ? "retry" : "fail";
  }

  /** The client disconnected, a timeout expired, or the response was refused: the connection must be destroyed. */
  abandon(): void {
    this.#phase = "closed";
    this.#request = undefined;
  }
}
