import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { ErrorCode } from "@headworks/gateway-contract";
import { appendHttp2Fields, isGrpc, withoutPseudoFields } from "@headworks/http-fields";
import {
  allowedTrailers,
  fieldValue,
  type Framing,
  hasBody,
  Http1Error,
  type Http2RequestProblem,
  lengthFraming,
  type RawFields,
  readHttp2Request,
  REQUEST_LIMITS,
} from "@headworks/http1";
import {
  CANCEL,
  ENHANCE_YOUR_CALM,
  Http2Session,
  type Http2Stream,
  INTERNAL_ERROR,
  isSendable,
  NO_ERROR,
  PROTOCOL_ERROR,
  ResetAllowance,
  sectionField,
  type StreamHandler,
  StreamSocket,
} from "@headworks/http2";
import { NOT_IN_SET, type Timed, turnMs, type SharedBytes } from "@headworks/sockets";
import type { ClientHandler, ClientStream, ListenerFacts, Peer } from "#request/context.ts";
import {
  ClientPace,
  type ConnectionServices,
  HALF_CLOSED_MS,
  type OpenConnection,
  type ReceivedHead,
} from "./connection-services.ts";

const CODES: Readonly<Record<Http2RequestProblem["problem"], ErrorCode>> = {
  malformed: "bad_request",
  "too-many-fields": "request_headers_too_large",
  tunnel: "upgrade_not_supported",
};

const WEBSOCKET_KEY_BYTES = 16;
const TOO_MANY_RESETS = new Error("Too many streams ended before their responses");
/** After the GOAWAY warning, for requests in transit. */
const DRAIN_WARNING_MS = 1000;

export class Http2Connection implements OpenConnection, Timed {
  setIndex = NOT_IN_SET;
  deadlineMs: number;
  readonly #services: ConnectionServices;
  readonly #listener: ListenerFacts;
  readonly #peer: Peer;
  readonly #socket: Socket;
  readonly #maxHeadBytes: number;
  readonly #session: Http2Session;
  readonly #maxFields: number;
  #streams = 0;
  readonly #resets = new ResetAllowance();
  #isDraining = false;
  #hasClientEnded = false;
  /** The client reset the response of a stream, and may not read from the connection any more. */
  #isDoubted = false;
  /** Bytes that the client had taken at the last check. */
  #takenBytes = 0;

  /** `socket` is paused; bytes that were read from it are unshifted. */
  constructor(services: ConnectionServices, listener: ListenerFacts, peer: Peer, socket: Socket) {
    this.#services = services;
    this.#listener = listener;
    this.#peer = peer;
    this.#socket = socket;
    this.#maxFields = services.limits.fieldCount ?? REQUEST_LIMITS.fieldCount;
    this.#maxHeadBytes = services.limits.headBytes ?? REQUEST_LIMITS.headBytes;
    this.deadlineMs = turnMs() + services.timeouts.idleMs;
    const { concurrentStreams, streamWindowBytes, connectionWindowBytes } = services.http2;
    this.#session = new Http2Session(
      socket,
      {
        role: "server",
        maxConcurrentStreams: concurrentStreams,
        section: {
          // Room for a few more than allowed, so that they can be counted for the response; pseudo-fields count, too.
          maxFields: this.#maxFields * 2 + 4,
          listBytes: this.#maxHeadBytes,
        },
        acceptsWebSockets: true,
        bodies: { maxWindowBytes: streamWindowBytes, sharedBytes: connectionWindowBytes },
      },
      {
        onStream: this.#onStream,
        onOverlongStream: this.#onOverlongStream,
        onPeerEnd: this.#onEnd,
        onClose: () => {
          services.deadlines.delete(this);
          socket.destroy();
        },
        onDefect: services.onDefect,
      },
    );
    services.deadlines.add(this);
  }

  /** Sends GOAWAY; requests that the client sent before it are still served (RFC 9113, 6.8). */
  drain(): void {
    if (this.#isDraining || this.#session.isFinished) return;
    this.#isDraining = true;
    if (this.#streams === 0) return this.#close();
    this.#session.warn();
    const timer = setTimeout(() => this.#close(), DRAIN_WARNING_MS);
    this.#session.ping((isAnswered) => {
      clearTimeout(timer);
      if (isAnswered) this.#close();
    });
  }

  destroy(): void {
    this.#session.destroy();
    this.#socket.destroy();
  }

  onDeadline(): void {
    if (this.#streams > 0) return this.#seeWhetherGone();
    if (this.#isDraining) return this.#endBehindLastBytes();
    this.#isDraining = true;
    this.#close();
  }

  /** The share of each stream in the client's send buffer. */
  get sendBufferBytes(): number {
    return this.#services.http2.sendBufferBytes / Math.max(1, this.#streams);
  }

  /** A stream ended; `isReset`: the client reset it or violated the protocol before its response was taken. */
  closed(isReset: boolean): void {
    this.#streams -= 1;
    if (this.#streams === 0) {
      this.#isDoubted = false;
      this.deadlineMs = turnMs() + (this.#isDraining ? DRAIN_WARNING_MS : this.#services.timeouts.idleMs);
    }
    if (isReset) this.#countReset();
  }

  /** The client reset a stream, and may not read from the connection any more. */
  doubted(): void {
    if (this.#streams === 0 || this.#isDoubted || this.#hasClientEnded) return;
    this.#isDoubted = true;
    this.#isTaking();
    this.deadlineMs = turnMs() + this.#services.timeouts.idleMs;
  }

  /** A half-closed client may still read its responses. */
  readonly #onEnd = (): void => {
    this.#hasClientEnded = true;
    this.drain();
    // By then the second GOAWAY of draining is sent.
    if (this.#streams > 0) this.deadlineMs = turnMs() + 2 * DRAIN_WARNING_MS;
  };

  /** Closes a connection without progress: a half-closed client may be gone and opens no more windows. */
  #seeWhetherGone(): void {
    const isStill = !this.#isTaking();
    if (isStill && (this.#hasClientEnded || this.#socket.writableLength > 0)) return this.destroy();
    this.#isDoubted = false;
    if (this.#hasClientEnded) this.deadlineMs = turnMs() + HALF_CLOSED_MS;
  }

  /** Waits until the client has taken the last bytes. */
  #endBehindLastBytes(): void {
    if (this.#socket.writableLength === 0 || !this.#isTaking()) return this.destroy();
    this.deadlineMs = turnMs() + HALF_CLOSED_MS;
  }

  /** Whether the client took any bytes since the last check. */
  #isTaking(): boolean {
    const before = this.#takenBytes;
    this.#takenBytes = this.#socket.bytesWritten - this.#socket.writableLength;
    return this.#takenBytes !== before;
  }

  readonly #onStream = (stream: Http2Stream, section: RawFields, isWhole: boolean): void => {
    const nowMs = performance.now();
    const head = readHttp2Head(section, isWhole, this.#maxFields);
    if ("code" in head) return this.#refuse(stream, section, head.code, head.message);
    this.#countStream();
    const client = new Http2ClientStream(stream, head, this.#services, this);
    this.#services.request(head, this.#listener, this.#peer, nowMs, client);
  };

  readonly #onOverlongStream = (stream: Http2Stream, section: RawFields): void => {
    const limits = `${this.#maxHeadBytes} bytes (32 more for each field) or ${this.#maxFields} fields`;
    this.#refuse(stream, section, "request_headers_too_large", `The request header is larger than ${limits}`);
  };

  #countStream(): void {
    this.#streams += 1;
    if (!this.#hasClientEnded && !this.#isDoubted) this.deadlineMs = Number.POSITIVE_INFINITY;
  }

  /** Responds to a malformed request. */
  #refuse(http2: Http2Stream, section: RawFields, code: ErrorCode, message: string | undefined): void {
    this.#countStream();
    if (code === "bad_request") http2.resetAfterEnd(PROTOCOL_ERROR);
    const method = sectionField(section, ":method") ?? "";
    const stream = new Http2ClientStream(http2, { ...UNREADABLE, method }, this.#services, this);
    const response = this.#services.refusal(code, message, this.#listener, this.#peer);
    const body = Buffer.from(response.body);
    stream.sendHead(response.status, response.reason, [...response.fields], lengthFraming(body.length));
    stream.sendData(body);
    stream.sendEnd();
  }

  #countReset(): void {
    if (!this.#resets.take()) this.#session.destroy(ENHANCE_YOUR_CALM, TOO_MANY_RESETS);
  }

  #close(): void {
    if (this.#session.isFinished) return;
    this.#session.close();
    // The rest of the session must not be held for a client that does not read.
    if (this.#streams === 0) this.deadlineMs = turnMs() + DRAIN_WARNING_MS;
  }
}

/** Placeholder for a malformed request, whose body is never read. */
const UNREADABLE: ReceivedHead = {
  method: "",
  target: "",
  targetForm: "origin",
  authority: undefined,
  fields: [],
  framing: { kind: "chunked" },
  upgrade: undefined,
};

/** Why an HTTP/2 field section is refused. */
interface RefusedHead {
  readonly code: ErrorCode;
  readonly message: string;
}

/** Builds a request from a field section `[name0, value0, …]`. `isWhole`: it has no body. */
export function readHttp2Head(
  section: readonly string[],
  isWhole: boolean,
  maxFields: number,
): ReceivedHead | RefusedHead {
  const read = readHttp2Request(section, withoutPseudoFields(section), isWhole, maxFields);
  if ("problem" in read) return { code: CODES[read.problem], message: read.message };
  // HTTP/2 clients send no key, since they need no proof of the handshake (RFC 8441, 5).
  if (read.upgrade !== undefined) {
    read.fields.push("sec-websocket-key", randomBytes(WEBSOCKET_KEY_BYTES).toString("base64"));
  }
  return read;
}

/** Time for a client to finish its body after a complete response, before the stream is reset. */
const SURPLUS_BODY_MS = 1000;

class Http2ClientStream implements ClientStream, StreamHandler, Timed {
  readonly version = "2";
  /** Unknown here: data behind the head is delivered only when the body is read. */
  readonly bodyBytesHere = 0;
  handler: ClientHandler | undefined;
  setIndex = NOT_IN_SET;
  deadlineMs: number;
  readonly #stream: Http2Stream;
  readonly #head: ReceivedHead;
  readonly #services: ConnectionServices;
  readonly #connection: Http2Connection;
  #requestDeadlineMs: number;
  #isStarted = false;
  #isBodiless = false;
  #isAnswered = false;
  #isReset = false;
  #isBodyEnded: boolean;
  #isReading = false;
  readonly #pace: ClientPace;

  constructor(stream: Http2Stream, head: ReceivedHead, services: ConnectionServices, connection: Http2Connection) {
    this.#stream = stream;
    this.#head = head;
    this.#services = services;
    this.#pace = new ClientPace(services, () => stream.sentBodyBytes);
    this.#connection = connection;
    // The data of a WebSocket is no body and ends with the WebSocket.
    this.#isBodyEnded = !hasBody(head.framing) && head.upgrade === undefined;
    const { requestMs } = services.timeouts;
    this.#requestDeadlineMs = requestMs > 0 ? turnMs() + requestMs : Number.POSITIVE_INFINITY;
    this.deadlineMs = this.#requestDeadlineMs;
    services.deadlines.add(this);
    stream.handler = this;
    if (head.framing.kind === "length") stream.announce(head.framing.lengthBytes);
    if (!this.#isBodyEnded) stream.hold();
  }

  get canUpgrade(): boolean {
    return this.#head.upgrade !== undefined;
  }

  readBody(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    if (fieldValue(this.#head.fields, "expect")?.toLowerCase() === "100-continue") this.sendInformational(100, "", []);
    this.#waitForBody();
    this.#touch();
    this.#stream.release();
  }

  pauseBody(): void {
    this.#pace.bodyRests();
    this.#stream.hold();
    this.#bodyRests();
  }

  resumeBody(): void {
    if (!this.#isReading || this.#isBodyEnded) return;
    this.#waitForBody();
    this.#touch();
    this.#stream.release();
  }

  sendInformational(status: number, _reason: string, fields: RawFields): void {
    // 101 does not exist in HTTP/2 (RFC 9113, 8.6).
    if (status === 101 || this.#isStarted) return;
    const section = [":status", String(status)];
    appendHttp2Fields(fields, section);
    if (isSendable(section)) this.#stream.sendSection(section, false);
  }

  sendHead(status: number, _reason: string, fields: RawFields, framing: Framing): void {
    this.#isStarted = true;
    // The code that responds knows whether it still needs the body.
    this.#pace.bodyEnds();
    if (status === 101) return this.#sendSwitch(fields);
    const section = [":status", String(status)];
    if (framing.kind === "length" && status !== 205) section.push("content-length", String(framing.lengthBytes));
    appendHttp2Fields(fields, section);
    const isEmpty = framing.kind === "none" || (framing.kind === "length" && framing.lengthBytes === 0);
    this.#isBodiless = isEmpty || this.#head.method === "HEAD" || status === 204 || status === 205 || status === 304;
    this.#sendSection(section, this.#isBodiless);
  }

  sendData(piece: SharedBytes): void {
    // Response pieces of upstreams lie in one buffer that is reused for each read.
    if (!this.#isBodiless) this.#stream.writeShared(piece);
  }

  sendEnd(trailers?: RawFields): void {
    this.#isAnswered = true;
    this.handler = undefined;
    if (!this.#isBodiless) {
      const section: string[] = [];
      if (trailers !== undefined) appendHttp2Fields(trailers, section);
      if (!isSendable(section)) throw new Http1Error("unsafe-text");
      this.#stream.end(section);
    }
    this.#touch();
    if (this.#stream.waitingBytes > 0) this.#pace.waitForTaking();
    // A reset at once could overtake the trailers, so further body bytes are discarded for a while.
    if (!this.#isBodyEnded) this.#stream.release();
  }

  flush(bufferBytes: number): boolean {
    if (this.#stream.hasRoom(this.#connection.sendBufferBytes)) return true;
    this.#pace.waitForTaking();
    this.#touch();
    return this.#pace.mayBuffer(this.#stream.waitingBytes, bufferBytes);
  }

  abort(): void {
    this.#isAnswered = true;
    this.handler = undefined;
    this.#touch();
    // The bytes before the abort are still delivered.
    this.#stream.resetAfterQueue(INTERNAL_ERROR);
  }

  takeOver(): ReturnType<ClientStream["takeOver"]> {
    if (!this.canUpgrade) return undefined;
    this.#isAnswered = true;
    this.handler = undefined;
    this.#services.deadlines.delete(this);
    this.#pace.release();
    const socket = new StreamSocket(this.#stream);
    socket.once("close", () => this.#connection.closed(false));
    return { socket, bytes: undefined };
  }

  onDeadline(): void {
    const stream = this.#stream;
    // Tells the client to stop sending a body that is not read (RFC 9113, 8.1).
    if (stream.hasSentEnd) return this.#cut(NO_ERROR);
    const nowMs = performance.now();
    const isLate = nowMs >= this.#requestDeadlineMs;
    const isStill = nowMs >= this.#pace.stillDeadlineMs;
    const isTooSlow = this.#pace.isBodyTooSlow(nowMs);
    const isBodyLate = isTooSlow || (this.#isBodyOwed && (isStill || isLate));
    if ((isLate || isBodyLate) && !this.#isStarted && this.handler !== undefined) {
      return this.#timedOut(this.handler, isBodyLate ? "request_timeout" : "upstream_response_timeout");
    }
    const isUntaken = this.#isStarted && stream.waitingBytes > 0 && !this.#isTaking(nowMs);
    if (!isLate && !isBodyLate && !isUntaken) return isStill ? this.#touch() : this.#setNextDeadline();
    this.#gone();
    this.#cut(CANCEL);
  }

  /** Whether a client took enough of its buffered response recently. */
  #isTaking(nowMs: number): boolean {
    const taking = this.#pace.taking(nowMs);
    if (taking === "moving") this.#touch();
    return taking !== "slow" && nowMs < this.#pace.stillDeadlineMs;
  }

  #waitForBody(): void {
    // A gRPC client may wait for a message before it sends the next.
    if (this.#isStarted || isGrpc(fieldValue(this.#head.fields, "content-type"))) return;
    this.#pace.waitForBody();
  }

  /** The handler of the request responds, with a deadline of its own. */
  #timedOut(handler: ClientHandler, code: ErrorCode): void {
    this.#requestDeadlineMs = Number.POSITIVE_INFINITY;
    this.#touch();
    handler.onRefused({ code });
  }

  /** A slow upstream is not the client's delay. */
  get #isBodyOwed(): boolean {
    return this.#isReading && !this.#isBodyEnded && !this.#stream.isHeld && !this.#isStarted;
  }

  #cut(code: number): void {
    this.#stream.reset(code);
    this.#connection.doubted();
  }

  /** A WebSocket starts with 200 and without the handshake fields of HTTP/1.1 (RFC 8441, 5). */
  #sendSwitch(fields: RawFields): void {
    const section = [":status", "200"];
    appendHttp2Fields(fields, section);
    const at = section.indexOf("sec-websocket-accept");
    if (at !== -1) section.splice(at, 2);
    this.#sendSection(section, false);
  }

  #sendSection(section: readonly string[], isEnd: boolean): void {
    if (!isSendable(section)) throw new Http1Error("unsafe-text");
    this.#stream.sendSection(section, isEnd);
  }

  /** Sets the deadline for progress of the body and of the buffered response. */
  #touch(): void {
    const { idleMs, bodyMs } = this.#services.timeouts;
    const isReceiving = this.#isReading && !this.#isBodyEnded && !this.#isStarted && bodyMs > 0;
    const limitMs = this.#stream.hasSentEnd ? SURPLUS_BODY_MS : isReceiving ? bodyMs : idleMs;
    this.#pace.stillDeadlineMs = turnMs() + limitMs;
    this.#setNextDeadline();
  }

  #setNextDeadline(): void {
    this.deadlineMs = Math.min(this.#requestDeadlineMs, this.#pace.deadlineMs);
  }

  /** No body bytes are awaited; the response may still be. */
  #bodyRests(): void {
    if (this.#isStarted) this.#touch();
    else {
      this.#pace.stillDeadlineMs = Number.POSITIVE_INFINITY;
      this.#setNextDeadline();
    }
  }

  onSection(): void {
    // The head was read before the stream existed; this section is trailers.
  }

  onData(piece: Buffer): void {
    this.#pace.bodyBytes += piece.length;
    if (this.handler === undefined) return;
    this.#touch();
    this.handler.onBodyData(piece);
    this.handler?.onBodyBatch();
  }

  onTrailers(section: RawFields): void {
    this.handler?.onBodyTrailers(allowedTrailers(withoutPseudoFields(section)));
  }

  onEnd(): void {
    if (this.#isBodyEnded) return;
    this.#isBodyEnded = true;
    this.#pace.bodyEnds();
    if (this.handler === undefined) return;
    this.#bodyRests();
    this.handler.onBodyEnd();
  }

  onDrain(): void {
    this.#pace.taken();
    this.#touch();
    this.handler?.onClientDrain();
  }

  onClose(code: number): void {
    this.#services.deadlines.delete(this);
    this.#pace.release();
    const isComplete = this.#stream.hasSentEnd && code === NO_ERROR;
    if (!isComplete) this.#gone();
    this.#connection.closed(this.#isReset);
  }

  #gone(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.#isReset = true;
    const { handler } = this;
    this.handler = undefined;
    handler?.onClientGone();
  }
}
