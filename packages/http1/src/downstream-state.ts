import { UNTIL_CLOSE, type Framing, type RequestHead } from "./message.ts";
import { demand } from "./owner-rule.ts";

/** What the answer's head must say, and how its body is framed for this client. */
export interface ResponseStart {
  readonly framing: Framing;
  /** The value of the Connection field to write, or undefined to leave it out. */
  readonly connection: "close" | "keep-alive" | undefined;
  readonly closeAfterResponse: boolean;
}

/**
 * What follows an answer. `read`: the next request. `close`: end the connection. `linger`: end the writing side, then
 * read and discard for a bounded time before destroying it, since the client may still be sending and a reset would
 * take the answer away from it.
 */
export type AfterResponse = "read" | "close" | "linger";

/** `answer`: an error may be answered, then the connection ends. `destroy`: nothing sensible can be said any more. */
export type AfterRefusal = "response" | "destroy";

/** `close`: nothing is going on, end it. `finish`: let the present exchange end first. `destroy`: it cannot end. */
export type AfterClientEnd = "close" | "finish" | "destroy";

const READ_BEHIND: ResponseStart = Object.freeze({
  framing: UNTIL_CLOSE,
  connection: "close",
  closeAfterResponse: true,
});

/**
 * The rules of one client connection on the server side, without the connection: which bytes are read when, which
 * answers close it, who sends 100 (Continue). One request is answered at a time, in the order of arrival.
 * Events in, decisions out; an event that the owner may not raise in the present state is an error.
 */
export class DownstreamState {
  #request: "none" | "arriving" | "complete" | "refused" = "none";
  #response: "none" | "started" = "none";
  #expectation: "none" | "waiting" | "settled" = "none";
  #ownership: "open" | "tunnel" | "closed" = "open";
  #mustClose = false;
  #clientEnded = false;
  #isModern = true;

  /** Whether input goes to the request reader now; otherwise it stays unread (or belongs to a tunnel). */
  get mayRead(): boolean {
    return this.#ownership === "open" && (this.#request === "none" || this.#request === "arriving");
  }

  /** No request is being received or answered: the time for idle connections is running. */
  get isIdle(): boolean {
    return this.#ownership === "open" && this.#request === "none";
  }

  get isTunnel(): boolean {
    return this.#ownership === "tunnel";
  }

  /** Whether an answer may still be started for the present request. */
  get mayRespond(): boolean {
    return this.#ownership === "open" && this.#request !== "none" && this.#response === "none";
  }

  /** The client holds its body back until it gets a 100 (Continue) or an answer. */
  get isAwaitingContinue(): boolean {
    return this.#expectation === "waiting";
  }

  /** A request head was read. */
  requestStarted(head: Pick<RequestHead, "version" | "keepAlive" | "expectContinue">): void {
    demand(this.isIdle, "a request starts only after the previous response ended");
    this.#request = "arriving";
    this.#response = "none";
    this.#isModern = head.version === "1.1";
    this.#mustClose ||= !head.keepAlive;
    this.#expectation = head.expectContinue ? "waiting" : "none";
  }

  /** A part of the request body was read: the client did not wait for 100 (Continue), or no longer does. */
  requestData(): void {
    if (this.#expectation === "waiting") this.#expectation = "settled";
  }

  /** The request was read to its end. */
  requestEnded(): void {
    if (this.#request === "arriving") this.#request = "complete";
  }

  /**
   * The body is wanted now. True: write `100 Continue`, once; false: nobody waits for it.
   */
  bodyWanted(): boolean {
    if (this.#expectation !== "waiting" || !this.mayRespond || this.#request !== "arriving") return false;
    this.#expectation = "settled";
    return true;
  }

  /**
   * The origin sent an informational answer. True: pass it on. A 100 is passed on only to a client that waits for one
   * and got none yet; nothing at all to HTTP/1.0, and nothing behind the final head.
   */
  informational(status: number): boolean {
    if (!this.#isModern || !this.mayRespond || status === 101) return false;
    return status === 100 ? this.bodyWanted() : true;
  }

  /**
   * The final head is about to be written.
   * @param framing  how the answer's body arrives
   */
  responseStarted(framing: Framing): ResponseStart {
    demand(this.mayRespond, "one response per request");
    this.#response = "started";
    // An answer before the end of the request: the rest of the body and a next request could not be told apart.
    if (this.#request !== "complete") this.#mustClose = true;
    if (framing.kind === "until-close" || (framing.kind === "chunked" && !this.#isModern)) {
      this.#mustClose = true;
      return READ_BEHIND;
    }
    const keeps = this.#isModern ? undefined : "keep-alive";
    return { framing, connection: this.#mustClose ? "close" : keeps, closeAfterResponse: this.#mustClose };
  }

  /** The head that was about to be written cannot be; nothing of the answer left, and another may be started. */
  responseWithdrawn(): void {
    demand(this.#ownership === "open" && this.#response === "started", "a response is withdrawn only after it started");
    this.#response = "none";
  }

  /** The answer was written to its end. */
  responseEnded(): AfterResponse {
    demand(this.#ownership === "open" && this.#response === "started", "a response ends only after it started");
    this.#response = "none";
    this.#request = "none";
    this.#expectation = "none";
    if (!this.#mustClose) return "read";
    this.#ownership = "closed";
    return this.#clientEnded ? "close" : "linger";
  }

  /** The request reader refused the input. */
  requestRefused(): AfterRefusal {
    this.#mustClose = true;
    if (this.#ownership === "open" && this.#response === "none") {
      this.#request = "refused";
      return "response";
    }
    this.#ownership = "closed";
    return "destroy";
  }

  /** The client sent its last byte, but may still read. */
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

  /** The service is stopping: the present exchange, or one that is on its way already, is the last one. */
  endsSoon(): void {
    this.#mustClose = true;
  }

  /** The service is stopping: the present exchange is the last one. */
  drain(): "close" | "finish" {
    this.#mustClose = true;
    if (!this.isIdle) return "finish";
    this.#ownership = "closed";
    return "close";
  }

  /** The head that switches protocols (101, or 2xx to CONNECT) is about to be written: all further bytes are the tunnel's. */
  tunnelStarted(): void {
    demand(this.mayRespond && this.#request === "complete", "a tunnel requires a complete request");
    this.#ownership = "tunnel";
  }

  /** The connection is gone, for whatever reason. Returns whether an exchange was cut short: abort its upstream side. */
  closed(): boolean {
    const wasBusy = this.#ownership === "open" && this.#request !== "none";
    this.#ownership = "closed";
    return wasBusy;
  }
}
