import type { ResponseHead } from "./message.ts";
import { demand } from "./owner-rule.ts";

/** What about a request decides how its connection may be used. */
export interface UpstreamRequest {
  readonly method: string;
  readonly hasBody: boolean;
  /** false: the request says `Connection: close`. */
  readonly keepAlive: boolean;
  /** true: this is already the second attempt. */
  readonly isRetry: boolean;
}

const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

/** Whether sending a request of this method twice means the same as once (RFC 9110 section 9.2.2). */
export function isIdempotent(method: string): boolean {
  return IDEMPOTENT.has(method);
}

/**
 * The rules of one connection to an origin, without the connection: one exchange at a time, and when it may carry
 * another. Events in, decisions out; an event that the owner may not raise in the present state is an error.
 */
export class UpstreamState {
  #phase: "idle" | "busy" | "tunnel" | "closed" = "idle";
  #request: UpstreamRequest | undefined;
  #exchangeCount = 0;
  #isSent = false;
  #hasResponseBytes = false;
  #responseAllowsReuse = false;

  /** Whether a request may be sent on it now. */
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

  /** The last byte of the request was handed over. */
  requestSent(): void {
    if (this.#phase === "busy") this.#isSent = true;
  }

  /**
   * Bytes arrived. `read`: they belong to the present answer (or the tunnel). `destroy`: nobody asked for them, and
   * whatever they are they may never become part of a later exchange.
   */
  bytesArrived(): "read" | "destroy" {
    if (this.#phase === "busy") {
      this.#hasResponseBytes = true;
      return "read";
    }
    if (this.#phase === "tunnel") return "read";
    this.#phase = "closed";
    return "destroy";
  }

  /** The final head was read. */
  responseStarted(head: Pick<ResponseHead, "keepAlive" | "framing" | "oddities">): void {
    demand(this.#phase === "busy", "a response belongs to a request");
    this.#hasResponseBytes = true;
    this.#responseAllowsReuse = head.keepAlive && head.framing.kind !== "until-close" && head.oddities.length === 0;
  }

  /**
   * The answer was read to its end.
   * @param surplus  bytes behind the end were already read
   * @param oddityCount  what the lenient reader tolerated in head and body together
   * @returns `keep` only if the request was sent completely and nobody and nothing speaks against another exchange
   */
  responseEnded(surplus: boolean, oddityCount: number): "keep" | "destroy" {
    demand(this.#phase === "busy", "a response ends after it started");
    const keeps =
      this.#isSent && this.#request?.keepAlive === true && this.#responseAllowsReuse && !surplus && oddityCount === 0;
    this.#phase = keeps ? "idle" : "closed";
    this.#request = undefined;
    return keeps ? "keep" : "destroy";
  }

  /** The answer switched protocols: all further bytes are the tunnel's, and the connection is never used again. */
  tunnelStarted(): void {
    demand(this.#phase === "busy", "a tunnel requires a request");
    this.#phase = "tunnel";
  }

  /**
   * The connection ended or failed. `retry`: the request may be sent once more on another connection, since this one
   * was reused and probably already closed by the origin: nothing of an answer came, the method is idempotent,
   * there is no body, and it is the first attempt. `fail`: the exchange failed. `none`: nothing was going on.
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

  /** The client went away, a time limit passed, or the answer was refused: the connection must be destroyed. */
  abandon(): void {
    this.#phase = "closed";
    this.#request = undefined;
  }
}
