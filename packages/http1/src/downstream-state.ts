import { demand, type Framing, type RequestHead, UNTIL_CLOSE } from "./message.ts";

/** How to write a response head for this client. */
export interface ResponseStart {
  readonly framing: Framing;
  /** Value of the Connection field; undefined to omit it. */
  readonly connection: "close" | "keep-alive" | undefined;
  readonly closeAfterResponse: boolean;
}

/**
 * What follows a response. `read`: the next request. `close`: close the connection. `linger`: end the writing side,
 * then discard input for a bounded time, since the client may still be sending and a reset would discard the response.
 */
export type AfterResponse = "read" | "close" | "linger";

/** `response`: an error response may be sent, then the connection closes. `destroy`: no response is possible. */
export type AfterRefusal = "response" | "destroy";

/** `close`: idle, close now. `finish`: complete the current exchange first. `destroy`: it cannot complete. */
export type AfterClientEnd = "close" | "finish" | "destroy";

const CLOSE_DELIMITED: ResponseStart = Object.freeze({
  framing: UNTIL_CLOSE,
  connection: "close",
  closeAfterResponse: true,
});

/**
 * The server-side state machine of one client connection, without I/O: when input is read, which responses close the
 * connection, and who sends 100 (Continue). One request is processed at a time, in order. An event that is invalid in
 * the current state throws.
 */
export class DownstreamState {
  #request: "none" | "arriving" | "complete" | "refused" = "none";
  #response: "none" | "started" = "none";
  #expectation: "none" | "waiting" | "settled" = "none";
  #ownership: "open" | "tunnel" | "closed" = "open";
  #mustClose = false;
  #clientEnded = false;
  #isModern = true;

  /** Whether input may be passed to the request reader now; otherwise it stays unread or belongs to a tunnel. */
  get mayRead(): boolean {
    return this.#ownership === "open" && (this.#request === "none" || this.#request === "arriving");
  }

  /** No request or response is in progress: the idle timeout applies. */
  get isIdle(): boolean {
    return this.#ownership === "open" && this.#request === "none";
  }

  get isTunnel(): boolean {
    return this.#ownership === "tunnel";
  }

  /** Whether a response to the current request may still be started. */
  get mayRespond(): boolean {
    return this.#ownership === "open" && this.#request !== "none" && this.#response === "none";
  }

  /** The client withholds its body until it receives 100 (Continue) or a response. */
  get isAwaitingContinue(): boolean {
    return this.#expectation === "waiting";
  }

  requestStarted(head: Pick<RequestHead, "version" | "keepAlive" | "expectContinue">): void {
    demand(this.isIdle, "a request starts only after the previous response ended");
    this.#request = "arriving";
    this.#response = "none";
    this.#isModern = head.version === "1.1";
    this.#mustClose ||= !head.keepAlive;
    this.#expectation = head.expectContinue ? "waiting" : "none";
  }

  /** Body data arrived: the client did not wait for 100 (Continue), or stopped waiting. */
  requestData(): void {
    if (this.#expectation === "waiting") this.#expectation = "settled";
  }

  requestEnded(): void {
    if (this.#request === "arriving") this.#request = "complete";
  }

  /** The body is wanted now. True: write `100 Continue` once; false: the client does not wait for it. */
  bodyWanted(): boolean {
    if (this.#expectation !== "waiting" || !this.mayRespond || this.#request !== "arriving") return false;
    this.#expectation = "settled";
    return true;
  }

  /**
   * The origin sent an informational response. True: forward it. A 100 is forwarded only to a client that awaits one;
   * HTTP/1.0 clients get none, and none follows the final head.
   */
  informational(status: number): boolean {
    if (!this.#isModern || !this.mayRespond || status === 101) return false;
    return status === 100 ? this.bodyWanted() : true;
  }

  /** The final head is about to be written. `framing`: of the response body as received. */
  responseStarted(framing: Framing): ResponseStart {
    demand(this.mayRespond, "one response per request");
    this.#response = "started";
    // The response precedes the end of the request: body and next request could not be told apart.
    if (this.#request !== "complete") this.#mustClose = true;
    if (framing.kind === "until-close" || (framing.kind === "chunked" && !this.#isModern)) {
      this.#mustClose = true;
      return CLOSE_DELIMITED;
    }
    const keeps = this.#isModern ? undefined : "keep-alive";
    return { framing, connection: this.#mustClose ? "close" : keeps, closeAfterResponse: this.#mustClose };
  }

  /** The head cannot be written; no byte was sent, and another response may be started. */
  responseWithdrawn(): void {
    demand(this.#ownership === "open" && this.#response === "started", "a response is withdrawn only after it started");
    this.#response = "none";
  }

  responseEnded(): AfterResponse {
    demand(this.#ownership === "open" && this.#response === "started", "a response ends only after it started");
    this.#response = "none";
    this.#request = "none";
    this.#expectation = "none";
    if (!this.#mustClose) return "read";
    this.#ownership = "closed";
    return this.#clientEnded ? "close" : "linger";
  }

  requestRefused(): AfterRefusal {
    this.#mustClose = true;
    if (this.#ownership === "open" && this.#response === "none") {
      this.#request = "refused";
      return "response";
    }
    this.#ownership = "closed";
    return "destroy";
  }

  /** The client closed its sending side but may still read. */
  clientEnded(): AfterClientEnd {
    if (this.#ownership === "tunnel") return "finish";
    this.#clientEnded = true;
    if (this.#ownership === "closed") return "close";
    if (this.#request === "complete" || this.#request === "refused") {
      this.#mustClose = true;
      return "finish";
    }
    const wasIdle = this.#request === "none";
    this.#ownership = "closed";
    return wasIdle ? "close" : "destroy";
  }

  /** Shutdown: the current exchange, or a request in flight, is the last one. */
  endsSoon(): void {
    this.#mustClose = true;
  }

  /** Shutdown: the current exchange is the last one. */
  drain(): "close" | "finish" {
    this.#mustClose = true;
    if (!this.isIdle) return "finish";
    this.#ownership = "closed";
    return "close";
  }

  /** The head that switches protocols (101, or 2xx to CONNECT) is next: all further bytes are the tunnel's. */
  tunnelStarted(): void {
    demand(this.mayRespond && this.#request === "complete", "a tunnel requires a complete request");
    this.#ownership = "tunnel";
  }

  /** The connection closed. Returns whether an exchange was interrupted, whose upstream side must be aborted. */
  closed(): boolean {
    const wasBusy = this.#ownership === "open" && this.#request !== "none";
    this.#ownership = "closed";
    return wasBusy;
  }
}
