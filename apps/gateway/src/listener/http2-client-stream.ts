// Tested by ../../test/http2.test.ts
import { constants, type ServerHttp2Stream } from "node:http2";
import type { ErrorCode } from "@headworks/gateway-contract";
import { appendHttp2Fields, gatheredHttp2Fields, withoutPseudoFields } from "@headworks/http-fields";
import { allowedTrailers, fieldValue, hasBody, type Framing, type RawFields } from "@headworks/http1";
import { NOWHERE, noteGarbage, UnreadBody, type ConnectionWindow, type Timed } from "@headworks/sockets";
import type { ClientHandler, ClientStream } from "#request/client-stream.ts";
import type { ConnectionServices, ReceivedHead } from "./connection-services.ts";

const { NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR, NGHTTP2_CANCEL } = constants;

/** What a stream asks of its connection and tells it. */
export interface StreamOwner {
  /** Bytes of its answer that may wait for the client. */
  readonly sendBufferBytes: number;
  readonly window: ConnectionWindow;
  /** It is over; `isReset`: the client, or its breaking of the protocol, ended it before its answer was taken. */
  closed(isReset: boolean): void;
  /** The client does not even take its reset: it reads nothing of the connection any more. */
  stuck(): void;
}

const NOTHING = Buffer.alloc(0);

/** How long a client may go on with a body after its answer is complete, before it is told to stop. */
const SURPLUS_BODY_MS = 1000;

/** One request of a client over HTTP/2. */
export class Http2ClientStream implements ClientStream, Timed {
  readonly version = "2";
  handler: ClientHandler | undefined;
  rosterPlace = NOWHERE;
  deadlineMs: number;
  readonly #stream: ServerHttp2Stream;
  readonly #head: ReceivedHead;
  readonly #services: ConnectionServices;
  readonly #owner: StreamOwner;
  #requestDeadlineMs: number;
  /** The last piece of the answer, so that the end can travel with it. */
  #piece: Buffer | undefined;
  #bodyTrailers: RawFields | undefined;
  #trailers: RawFields | undefined;
  #awaitsTrailers = false;
  #isStarted = false;
  #isBodiless = false;
  #isAnswered = false;
  #isReset = false;
  #isBodyEnded: boolean;
  #isReading = false;
  /** It was reset by us. */
  #isCut = false;
  #unread: UnreadBody | undefined;

  constructor(stream: ServerHttp2Stream, head: ReceivedHead, services: ConnectionServices, owner: StreamOwner) {
    this.#stream = stream;
    this.#head = head;
    this.#services = services;
    this.#owner = owner;
    // What follows the head of a WebSocket is no body, and ends when the WebSocket does.
    this.#isBodyEnded = !hasBody(head.framing) && head.upgrade === undefined;
    const { requestMs } = services.timeouts;
    this.#requestDeadlineMs = requestMs > 0 ? performance.now() + requestMs : Number.POSITIVE_INFINITY;
    this.deadlineMs = this.#requestDeadlineMs;
    services.deadlines.add(this);
    stream.on("error", ignoreError);
    stream.on("aborted", () => this.#gone());
    stream.on("close", this.#onClose);
    stream.on("drain", () => {
      this.#touch();
      this.handler?.onClientDrain();
    });
    // They are told when they come, which may be before the body is read.
    stream.on("trailers", (_headers: unknown, _flags: unknown, section: RawFields) => {
      this.#bodyTrailers = allowedTrailers(withoutPseudoFields(section));
    });
    // Its end must be read, or the stream stays open.
    if (this.#isBodyEnded) stream.resume();
    else this.#unread = new UnreadBody(stream, owner.window);
  }

  get canUpgrade(): boolean {
    return this.#head.upgrade !== undefined;
  }

  readBody(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    const stream = this.#stream;
    if (fieldValue(this.#head.fields, "expect")?.toLowerCase() === "100-continue") this.sendInformational(100, "", []);
    stream.on("data", (piece: Buffer) => {
      noteGarbage(piece.length);
      this.#unread?.read(piece.length);
      this.#touch();
      const { handler } = this;
      handler?.onBodyData(piece);
      handler?.onBodyBatch();
    });
    // The end of a body without a byte is told as soon as it comes, whoever listens by then.
    if (stream.readableEnded) process.nextTick(this.#onBodyEnd);
    else stream.on("end", this.#onBodyEnd);
    this.#touch();
  }

  pauseBody(): void {
    this.#stream.pause();
    this.deadlineMs = this.#requestDeadlineMs;
  }

  resumeBody(): void {
    if (!this.#isReading || this.#isBodyEnded) return;
    this.#stream.resume();
    this.#touch();
  }

  awaitTrailers(): void {
    this.#awaitsTrailers = true;
  }

  sendInformational(status: number, _reason: string, fields: RawFields): void {
    // 101 does not exist here (RFC 9113, 8.6).
    if (status === 101 || this.#isStarted || this.#isClosed) return;
    const headers = Object.create(null) as Record<string, string | string[]>;
    headers[":status"] = String(status);
    const list: string[] = [];
    appendHttp2Fields(fields, list);
    for (let at = 0; at < list.length; at += 2) {
      const name = list[at] ?? "";
      const before = headers[name];
      const value = list[at + 1] ?? "";
      headers[name] = before === undefined ? value : [before, value].flat();
    }
    this.#stream.additionalHeaders(headers);
  }

  sendHead(status: number, _reason: string, fields: RawFields, framing: Framing): void {
    if (this.#isClosed) return;
    this.#isStarted = true;
    if (status === 101) return this.#sendSwitch(fields);
    // Beyond 599 is nothing that clients know, so it counts as a server's failure (RFC 9110, 15).
    const headers = [":status", String(status > 599 ? constants.HTTP_STATUS_BAD_GATEWAY : status)];
    if (framing.kind === "length" && status !== 205) headers.push("content-length", String(framing.lengthBytes));
    appendHttp2Fields(fields, headers);
    const isEmpty = framing.kind === "none" || (framing.kind === "length" && framing.lengthBytes === 0);
    this.#isBodiless = isEmpty || this.#head.method === "HEAD" || status === 204 || status === 205 || status === 304;
    // Waiting costs a frame and a call behind the body, for nothing in nearly all answers of known length.
    const waitForTrailers = !this.#isBodiless && (this.#awaitsTrailers || framing.kind !== "length");
    if (waitForTrailers) this.#stream.on("wantTrailers", this.#onWantTrailers);
    this.#stream.respond(headers, { endStream: this.#isBodiless, waitForTrailers });
  }

  sendData(piece: Buffer): void {
    if (this.#isBodiless || this.#isClosed) return;
    this.#write();
    // The piece may lie in memory that is read into again.
    this.#piece = Buffer.from(piece);
    noteGarbage(piece.length);
  }

  sendEnd(trailers?: RawFields): void {
    const stream = this.#stream;
    this.#isAnswered = true;
    this.handler = undefined;
    this.#trailers = trailers;
    if (!this.#isBodiless && !this.#isClosed) {
      const piece = this.#piece;
      this.#piece = undefined;
      if (piece === undefined) stream.end();
      else stream.end(piece);
    }
    this.#touch();
    if (this.#isBodyEnded || stream.readableEnded) return;
    // A reset at once could overtake the trailers, so what still comes is dropped for a while.
    stream.on("end", () => (this.#isBodyEnded = true));
    this.#unread?.forget();
    stream.resume();
    this.deadlineMs = performance.now() + SURPLUS_BODY_MS;
  }

  flush(): boolean {
    this.#write();
    const stream = this.#stream;
    const isTaken = !stream.writableNeedDrain || stream.writableLength < this.#owner.sendBufferBytes;
    if (!isTaken) this.#touch();
    return isTaken;
  }

  abort(): void {
    this.#isAnswered = true;
    this.handler = undefined;
    this.#piece = undefined;
    const stream = this.#stream;
    if (this.#isClosed) return;
    // Closing ends the writing side first, which would look like the end of the answer; a write that is under way
    // holds that up until the reset is out.
    if (!stream.writableEnded) stream.write(NOTHING);
    stream.close(NGHTTP2_INTERNAL_ERROR);
  }

  takeOver(): ReturnType<ClientStream["takeOver"]> {
    if (!this.canUpgrade) return undefined;
    this.#isAnswered = true;
    this.handler = undefined;
    this.#services.deadlines.delete(this);
    this.#unread?.follow(this.#stream);
    return { socket: this.#stream, bytes: undefined };
  }

  onDeadline(): void {
    if (this.#isCut) return this.#owner.stuck();
    const isLate = performance.now() >= this.#requestDeadlineMs;
    if (this.#isAnswered && !this.#isBodyEnded && this.#stream.writableFinished) {
      // The client may stop sending a body that nobody reads any more (RFC 9113, 8.1).
      return this.#cut(NGHTTP2_NO_ERROR);
    }
    if ((isLate || this.#isAwaited) && !this.#isStarted && this.handler !== undefined) {
      return this.#timedOut(this.handler, this.#isBodyOwed ? "request_timeout" : "upstream_response_timeout");
    }
    if (isLate || this.#isUntaken || this.#isAwaited) {
      this.#gone();
      return this.#cut(NGHTTP2_CANCEL);
    }
    this.#touch();
  }

  /** Whoever handles the request answers it; what the answer takes is another time. */
  #timedOut(handler: ClientHandler, code: ErrorCode): void {
    this.#requestDeadlineMs = Number.POSITIVE_INFINITY;
    this.#touch();
    handler.onTimedOut(code);
  }

  /** What the upstream is slow to take is not the client's delay. */
  get #isBodyOwed(): boolean {
    return this.#isReading && !this.#isBodyEnded && !this.#stream.isPaused();
  }

  /** The client could have gone on with its body for long enough. */
  get #isAwaited(): boolean {
    if (!this.#isBodyOwed) return false;
    return performance.now() - this.#owner.window.freeSinceMs >= this.#services.timeouts.bodyMs;
  }

  /** The client leaves its answer here: some of it, or only its end. */
  get #isUntaken(): boolean {
    const { writableFinished, writableLength } = this.#stream;
    const isOver = this.#isAnswered && this.#isBodyEnded;
    return this.#isStarted && (isOver || (!writableFinished && writableLength > 0));
  }

  #cut(code: number): void {
    this.#isCut = true;
    // It leaves at once, or behind what a slow client has still to read.
    this.deadlineMs = performance.now() + this.#services.timeouts.idleMs;
    this.#stream.close(code);
  }

  get #isClosed(): boolean {
    return this.#stream.closed || this.#stream.destroyed;
  }

  /** A WebSocket begins with 200 here, and without the proof of HTTP/1.1 (RFC 8441, 5). */
  #sendSwitch(fields: RawFields): void {
    const headers = [":status", "200"];
    appendHttp2Fields(fields, headers);
    const at = headers.indexOf("sec-websocket-accept");
    if (at !== -1) headers.splice(at, 2);
    this.#stream.respond(headers, { endStream: false, waitForTrailers: false });
  }

  #write(): void {
    const piece = this.#piece;
    if (piece === undefined) return;
    this.#piece = undefined;
    if (!this.#isClosed) this.#stream.write(piece);
  }

  /** A body that should come, and an answer that should be taken, have only so long without a step forward. */
  #touch(): void {
    const { idleMs, bodyMs } = this.#services.timeouts;
    const isReceiving = this.#isReading && !this.#isBodyEnded && bodyMs > 0;
    this.deadlineMs = Math.min(performance.now() + (isReceiving ? bodyMs : idleMs), this.#requestDeadlineMs);
  }

  readonly #onBodyEnd = (): void => {
    // A reset without an error ends the reading side too, in the middle of a body.
    if (this.#stream.aborted) return this.#gone();
    this.#isBodyEnded = true;
    this.deadlineMs = this.#requestDeadlineMs;
    if (this.#bodyTrailers !== undefined) this.handler?.onBodyTrailers(this.#bodyTrailers);
    this.handler?.onBodyEnd();
  };

  readonly #onWantTrailers = (): void => {
    if (this.#isClosed) return;
    this.#stream.sendTrailers(gatheredHttp2Fields(this.#trailers ?? []));
  };

  #gone(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#isReset = true;
    const { handler } = this;
    this.handler = undefined;
    this.#piece = undefined;
    handler?.onClientGone();
  }

  readonly #onClose = (): void => {
    this.#services.deadlines.delete(this);
    this.#unread?.forget();
    this.#gone();
    this.#owner.closed(this.#isReset);
  };
}

function ignoreError(): void {
  // "close" follows and does what is needed.
}
