import type { Socket } from "node:net";
import type { ErrorCode } from "@headworks/gateway-contract";
import {
  DownstreamState,
  type Framing,
  hasBody,
  type Http1Error,
  LAST_CHUNK,
  lastChunkWithTrailers,
  type RawFields,
  type RequestHead,
  RequestReader,
  responseHeadText,
  type ResponseStart,
  setFraming,
  CHUNK_END,
  chunkPrefix,
} from "@headworks/http1";
import {
  BatchedWriter,
  cutConnection,
  SharedBytes,
  Linger,
  NOT_IN_SET,
  shareReadBuffer,
  takenBytes,
  type Timed,
  turnMs,
} from "@headworks/sockets";
import type { ClientHandler, ClientStream, ListenerFacts, Peer, TunnelEnd } from "#request/context.ts";
import { ClientPace, type ConnectionServices, HALF_CLOSED_MS, type OpenConnection } from "./connection-services.ts";

/** Writes the responses of a client connection one after the other. */
class Http1ResponseWriter {
  readonly #writer: BatchedWriter<SharedBytes>;
  #isChunked = false;

  constructor(writer: BatchedWriter<SharedBytes>) {
    this.#writer = writer;
  }

  /** A head without a body: an informational one, or 101 before a tunnel. Sent at once. */
  bare(status: number, reason: string, fields: RawFields): void {
    this.#writer.text(responseHeadText(status, reason, fields));
    this.#writer.flush();
  }

  /** Adds framing and connection fields to `fields`. */
  head(status: number, reason: string, fields: RawFields, { framing, connection }: ResponseStart): void {
    this.#isChunked = framing.kind === "chunked";
    if (framing.kind === "length") fields.push("Content-Length", String(framing.lengthBytes));
    else if (this.#isChunked) fields.push("Transfer-Encoding", "chunked");
    else setFraming(fields, framing);
    if (connection !== undefined) fields.push("Connection", connection);
    this.#writer.text(responseHeadText(status, reason, fields));
  }

  data(piece: SharedBytes): void {
    if (this.#isChunked) this.#writer.bytes(piece, chunkPrefix(piece.length), CHUNK_END);
    else this.#writer.bytes(piece);
  }

  /** The body is complete; only chunked bodies can carry trailers. */
  end(trailers: RawFields | undefined): void {
    if (this.#isChunked) this.#writer.text(trailers === undefined ? LAST_CHUNK : lastChunkWithTrailers(trailers));
    this.#writer.flushSoon();
  }
}

/** How much is read from a paused client: only reading detects a connection reset. */
const READ_AHEAD_BYTES = 65_536;

/** Time for requests that the client sent before it saw the close of an idle connection; they get a response. */
const ON_ITS_WAY_MS = 200;

/** One HTTP/1.1 client connection. Requests are served in order; pipelined ones are held. */
export class Http1Connection implements ClientStream, OpenConnection, Timed {
  setIndex = NOT_IN_SET;
  deadlineMs: number;
  handler: ClientHandler | undefined;
  readonly #services: ConnectionServices;
  readonly #listener: ListenerFacts;
  readonly #peer: Peer;
  readonly #socket: Socket;
  readonly #writer: BatchedWriter<SharedBytes>;
  readonly #response: Http1ResponseWriter;
  readonly #state = new DownstreamState();
  readonly #reader: RequestReader;
  #head: RequestHead | undefined;
  #held: SharedBytes | undefined;
  #isWorking = false;
  readonly #linger = new Linger();
  readonly #pace: ClientPace;
  #isHeadTimed = false;
  #isBodyWanted = false;
  /** The head of a request with an unread body was read and is not dispatched yet. */
  #isDispatchDue = false;
  #isDiscarding = false;
  #startedMs = 0;
  #requestDeadlineMs = Number.POSITIVE_INFINITY;
  #hasClientEnded = false;
  /** The client ended after bytes that are still held; their requests are served first. */
  #isEndWaiting = false;
  readonly #stopSharing: () => void;

  constructor(services: ConnectionServices, listener: ListenerFacts, peer: Peer, socket: Socket) {
    this.#services = services;
    this.#pace = new ClientPace(services, () => takenBytes(socket));
    this.#listener = listener;
    this.#peer = peer;
    this.#socket = socket;
    this.#writer = BatchedWriter.copying(socket);
    this.#response = new Http1ResponseWriter(this.#writer);
    this.deadlineMs = turnMs() + services.timeouts.headMs;
    this.#reader = new RequestReader(
      {
        onHead: (head) => this.#onHead(head),
        onData: (piece) => {
          this.#state.requestData();
          this.#pace.bodyBytes += piece.length;
          if (this.#isBodyWanted) this.handler?.onBodyData(piece);
        },
        onTrailers: (fields) => {
          if (this.#isBodyWanted) this.handler?.onBodyTrailers(fields);
        },
        onEnd: () => {
          this.#state.requestEnded();
          this.#pace.bodyEnds();
          if (this.#isBodyWanted) this.handler?.onBodyEnd();
          else if (!this.#isDiscarding) this.#dispatch();
        },
        // An error in a discarded body only closes the connection after the response.
        onError: (error) => {
          if (!this.#isDiscarding) this.#refuse(error);
        },
      },
      services.limits,
    );
    services.deadlines.add(this);
    this.#stopSharing = shareReadBuffer(socket, this.#onData);
    // The listener handles errors of accepted sockets; "close" follows and cleans up.
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("drain", this.#onDrain);
    socket.on("close", this.#onClose);
  }

  /** `first`: bytes read before this connection was created. */
  begin(first: Buffer | undefined): void {
    if (first) this.#onData(first);
    else this.#socket.resume();
  }

  get version(): "1.0" | "1.1" {
    return this.#head?.version ?? "1.1";
  }

  get canUpgrade(): boolean {
    return true;
  }

  get bodyBytesHere(): number {
    return this.#held?.length ?? 0;
  }

  /** The current exchange, or one whose request is in transit, is the last one; an idle connection closes soon. */
  drain(): void {
    this.#linger.shorten();
    if (this.#linger.isOn || this.#state.isTunnel) return;
    this.#state.endsSoon();
    if (!this.#state.isIdle) return;
    setTimeout(() => {
      if (this.#linger.isOn || !this.#state.isIdle || this.#reader.hasPartialHead) return;
      this.#state.drain();
      this.#endAndLinger();
    }, ON_ITS_WAY_MS);
  }

  destroy(): void {
    this.#breakOff();
  }

  readBody(): void {
    this.#isBodyWanted = true;
    if (this.#state.bodyWanted()) {
      this.#writer.text("HTTP/1.1 100 Continue\r\n\r\n");
      this.#writer.flush();
    }
    this.resumeBody();
  }

  pauseBody(): void {
    this.#pace.bodyRests();
    this.#reader.pause();
  }

  resumeBody(): void {
    // The body timeout starts now: before, the client could not send.
    if (this.#state.mayRespond) this.#pace.waitForBody();
    this.#touch();
    this.#reader.resume();
    if (!this.#isWorking) this.#work();
  }

  sendInformational(status: number, reason: string, fields: RawFields): void {
    if (this.#state.informational(status)) this.#response.bare(status, reason, fields);
  }

  sendHead(status: number, reason: string, fields: RawFields, framing: Framing): void {
    if (status === 101) return this.#response.bare(status, reason, fields);
    // The code that responds knows whether it still needs the body.
    this.#pace.bodyEnds();
    if (!this.#isBodyWanted) this.#discardHeldBody();
    this.#response.head(status, reason, fields, this.#state.responseStarted(framing));
  }

  sendData(piece: SharedBytes): void {
    this.#response.data(piece);
  }

  sendEnd(trailers?: RawFields): void {
    this.#response.end(trailers);
    this.#finish();
    switch (this.#state.responseEnded()) {
      case "read":
        if (this.#reader.state !== "ended") return this.#endAndLinger();
        this.#reader.next();
        this.#reader.resume();
        this.#touch();
        if (!this.#isWorking) this.#work();
        return;
      case "close":
        this.#writer.end();
        return;
      case "linger":
        this.#endAndLinger();
    }
  }

  flush(bufferBytes: number): boolean {
    if (this.#writer.flushSoon()) return true;
    this.#pace.waitForTaking();
    this.#setNextDeadline();
    return this.#pace.mayBuffer(this.#socket.writableLength, bufferBytes);
  }

  abort(): void {
    this.#finish();
    this.#writer.flush();
    cutConnection(this.#socket);
  }

  takeOver(): TunnelEnd {
    this.#state.tunnelStarted();
    this.#finish();
    this.#services.deadlines.delete(this);
    this.#pace.release();
    this.#socket.off("data", this.#onData);
    this.#socket.off("end", this.#onEnd);
    this.#socket.off("drain", this.#onDrain);
    this.#socket.off("close", this.#onClose);
    this.#socket.pause();
    this.#stopSharing();
    const bytes = this.#held && SharedBytes.copyAlone(this.#held);
    this.#held = undefined;
    return { socket: this.#socket, bytes, hasEnded: this.#hasClientEnded || this.#isEndWaiting };
  }

  onDeadline(): void {
    const nowMs = performance.now();
    const isLate = nowMs >= this.#requestDeadlineMs;
    if (!isLate && this.#socket.writableLength > 0) return this.#isTaking(nowMs) ? undefined : this.#breakOff();
    if (this.#linger.isOn || this.#state.isIdle) {
      if (!this.#linger.isOn && this.#reader.hasPartialHead) this.#respondWithError("request_timeout", undefined);
      else if (!this.#linger.extend(this, this.#socket)) this.#socket.destroy();
      return;
    }
    const isStill = nowMs >= this.#pace.stillDeadlineMs;
    const isTooSlow = this.#pace.isBodyTooSlow(nowMs);
    const isGone = !isLate && isStill && this.#hasClientEnded;
    // A slow upstream is not the client's delay.
    const isBodyOwed =
      this.#isBodyWanted && this.#reader.state === "body" && !this.#reader.isPaused && this.#state.mayRespond;
    const isBodyLate = isTooSlow || (isBodyOwed && (isStill || isLate));
    if (!isGone && !isLate && !isBodyLate) return isStill ? this.#touch() : this.#setNextDeadline();
    if (!isGone && this.#state.mayRespond && this.handler !== undefined) {
      return this.#timedOut(this.handler, isBodyLate ? "request_timeout" : "upstream_response_timeout");
    }
    this.#breakOff();
  }

  /** Whether a client took enough of its buffered response recently, and so gets more time. */
  #isTaking(nowMs: number): boolean {
    const taking = this.#pace.taking(nowMs);
    if (taking === "slow" || (taking === "still" && nowMs >= this.#pace.stillDeadlineMs)) return false;
    if (taking === "moving") this.#touch();
    else this.#setNextDeadline();
    if (this.#linger.isOn) this.#linger.renew(this);
    return true;
  }

  /** Closes the connection so that the client sees an incomplete response as an abort, not as an end. */
  #breakOff(): void {
    const isAnswering = !this.#linger.isOn && !this.#state.isIdle && !this.#state.isTunnel;
    this.#clientGone();
    if (isAnswering) cutConnection(this.#socket);
    else this.#socket.destroy();
  }

  /** The handler of the request responds; the connection closes afterwards. */
  #timedOut(handler: ClientHandler, code: ErrorCode): void {
    this.#requestDeadlineMs = Number.POSITIVE_INFINITY;
    this.#state.drain();
    this.#touch();
    handler.onRefused({ code });
  }

  #onHead(head: RequestHead): void {
    this.#isHeadTimed = false;
    this.#head = head;
    this.#state.requestStarted(head);
    // Tunnel bytes may follow before the response; they must not be parsed as a request.
    if (head.method === "CONNECT") this.#state.drain();
    this.#isBodyWanted = false;
    const nowMs = performance.now();
    const { requestMs } = this.#services.timeouts;
    this.#requestDeadlineMs = requestMs > 0 ? nowMs + requestMs : Number.POSITIVE_INFINITY;
    this.#startedMs = nowMs;
    // A request without a body ends at once and is dispatched then: a response to a complete request keeps the
    // connection.
    if (!hasBody(head.framing)) return;
    // The body stays unread until a handler wants it, so that a refusal need not read it.
    this.#reader.pause();
    this.#isDispatchDue = true;
  }

  /** A response to a completely received request keeps the connection, whether or not the body was read. */
  #discardHeldBody(): void {
    const chunk = this.#held;
    if (chunk === undefined || this.#reader.state !== "body" || this.#state.isAwaitingContinue) return;
    this.#isDiscarding = true;
    this.#reader.resume();
    const at = this.#reader.read(chunk);
    this.#held = at < chunk.length ? chunk.subarray(at) : undefined;
    this.#isDiscarding = false;
  }

  #dispatch(): void {
    if (this.#head !== undefined) this.#services.request(this.#head, this.#listener, this.#peer, this.#startedMs, this);
  }

  readonly #onData = (chunk: SharedBytes): void => {
    if (this.#linger.isOn) return this.#linger.renew(this);
    const wasHeldBack = this.#isHeldBack;
    this.#held = this.#held ? SharedBytes.concat(this.#held, chunk) : chunk;
    if (!this.#isWorking) this.#work();
    if (this.#held !== undefined) this.#held = SharedBytes.copyAlone(this.#held);
    // Bytes that arrive while the client is paused do not extend its deadline.
    if (!wasHeldBack) this.#setDeadline();
  };

  /** An internal error ends this connection, not the process. */
  #work(): void {
    try {
      this.#readHeld();
    } catch (error) {
      this.#services.onDefect(error);
      this.#held = undefined;
      this.#breakOff();
    }
  }

  /** Parses held bytes, request after request, as far as responses allow. */
  #readHeld(): void {
    this.#isWorking = true;
    while (this.#held !== undefined && this.#state.mayRead && !this.#reader.isPaused && !this.#isBackedUp) {
      const chunk = this.#held;
      this.#held = undefined;
      const at = this.#reader.read(chunk);
      if (at < chunk.length) this.#held = chunk.subarray(at);
      if (this.#isDispatchDue) {
        this.#isDispatchDue = false;
        this.#dispatch();
      }
      if (this.#isBodyWanted) this.handler?.onBodyBatch();
    }
    this.#isWorking = false;
    if (this.#socket.destroyed || this.#state.isTunnel || this.#linger.isOn) return;
    const isHeldBack = this.#isHeldBack;
    if (isHeldBack && this.#held !== undefined && this.#held.length >= READ_AHEAD_BYTES) this.#socket.pause();
    else this.#socket.resume();
    if (this.#isEndWaiting && !isHeldBack) this.#clientEnded();
  }

  get #isHeldBack(): boolean {
    return this.#held !== undefined || this.#reader.isPaused || this.#isBackedUp;
  }

  /** A client that does not take its responses gets no further requests read, or they would fill the memory. */
  get #isBackedUp(): boolean {
    return this.#state.isIdle && this.#socket.writableNeedDrain;
  }

  #setDeadline(): void {
    if (this.#state.isIdle && this.#reader.hasPartialHead) {
      // The deadline is set once per head: single bytes do not extend it.
      if (!this.#isHeadTimed) this.deadlineMs = turnMs() + this.#services.timeouts.headMs;
      this.#isHeadTimed = true;
    } else if (!this.#linger.isOn) {
      this.#touch();
    }
  }

  #touch(): void {
    const { idleMs, bodyMs } = this.#services.timeouts;
    const isReceiving = this.#isBodyWanted && this.#reader.state === "body" && this.#state.mayRespond;
    let limitMs = isReceiving && bodyMs > 0 ? bodyMs : idleMs;
    if (this.#hasClientEnded) limitMs = Math.min(limitMs, HALF_CLOSED_MS);
    this.#pace.stillDeadlineMs = turnMs() + limitMs;
    this.#setNextDeadline();
  }

  #setNextDeadline(): void {
    this.deadlineMs = Math.min(this.#requestDeadlineMs, this.#pace.deadlineMs);
  }

  #refuse(error: Http1Error): void {
    if (this.#state.requestRefused() === "destroy") {
      this.#clientGone();
      this.#socket.destroy();
      return;
    }
    const refusal = { code: http1ErrorCode(error), message: error.message };
    // A request that broke midway gets its response, and is observed, as that request.
    if (this.handler === undefined) this.#respondWithError(refusal.code, refusal.message);
    else this.handler.onRefused(refusal);
  }

  /** Responds to a malformed request, then closes. */
  #respondWithError(code: ErrorCode, message: string | undefined): void {
    const response = this.#services.refusal(code, message, this.#listener, this.#peer);
    if (this.#state.isIdle) this.#state.requestRefused();
    this.#state.drain();
    const body = Buffer.from(response.body);
    const start = this.#state.responseStarted({ kind: "length", lengthBytes: body.length });
    this.#response.head(response.status, response.reason, [...response.fields], start);
    this.#response.data(body);
    this.#writer.flush();
    this.#state.responseEnded();
    this.#endAndLinger();
  }

  /** Closing at once would reset the connection before the client has read the response. */
  #endAndLinger(): void {
    this.#linger.begin();
    this.#held = undefined;
    this.#reader.pause();
    this.#writer.end();
    this.#socket.resume();
    if (this.#socket.writableLength > 0) this.#pace.waitForTaking();
    this.#linger.renew(this);
  }

  readonly #onEnd = (): void => {
    if (this.#isHeldBack && !this.#linger.isOn) this.#isEndWaiting = true;
    else this.#clientEnded();
  };

  #clientEnded(): void {
    this.#isEndWaiting = false;
    switch (this.#state.clientEnded()) {
      case "close":
        this.#writer.end();
        return;
      case "destroy":
        this.#clientGone();
        this.#socket.destroy();
        return;
      case "finish":
        this.#hasClientEnded = true;
        this.#touch();
    }
  }

  readonly #onDrain = (): void => {
    this.#pace.taken();
    this.#touch();
    this.handler?.onClientDrain();
    if (this.#state.isIdle && !this.#isWorking) this.#work();
  };

  readonly #onClose = (): void => {
    this.#services.deadlines.delete(this);
    this.#pace.release();
    this.#clientGone();
  };

  #finish(): void {
    this.handler = undefined;
    this.#head = undefined;
    this.#isBodyWanted = false;
    this.#pace.bodyEnds();
    this.#requestDeadlineMs = Number.POSITIVE_INFINITY;
  }

  #clientGone(): void {
    this.#state.closed();
    const handler = this.handler;
    this.#finish();
    handler?.onClientGone();
  }
}

/** The error code for a malformed request. */
function http1ErrorCode({ status, code }: Http1Error): ErrorCode {
  switch (status) {
    case 431:
      return "request_headers_too_large";
    case 501:
      return "unknown_transfer_coding";
    case 505:
      return "version_not_supported";
    default:
      return code === "content-length-with-transfer-encoding" ? "ambiguous_framing" : "bad_request";
  }
}
