import type { ErrorCode } from "@headworks/gateway-contract";
import { appendHttp2Fields, isGrpc, withoutPseudoFields } from "@headworks/http-fields";
import { allowedTrailers, fieldValue, hasBody, Http1Error, type Framing, type RawFields } from "@headworks/http1";
import {
  CANCEL,
  INTERNAL_ERROR,
  isSendable,
  NO_ERROR,
  StreamSocket,
  type Http2Stream,
  type StreamHandler,
} from "@headworks/http2";
import { NOT_IN_SET, type SharedBytes, turnMs, type Timed } from "@headworks/sockets";
import type { ClientHandler, ClientStream } from "#request/client-stream.ts";
import { ClientPace } from "./client-pace.ts";
import type { ConnectionServices, ReceivedHead } from "./connection-services.ts";

/** Calls of a stream to its connection. */
export interface StreamOwner {
  /** Limit of response bytes buffered for the client. */
  readonly sendBufferBytes: number;
  /** The stream ended; `isReset`: the client reset it or violated the protocol before its response was taken. */
  closed(isReset: boolean): void;
  /** The client reset it, and may not read from the connection any more. */
  doubted(): void;
}

/** Time for a client to finish its body after a complete response, before the stream is reset. */
const SURPLUS_BODY_MS = 1000;

export class Http2ClientStream implements ClientStream, StreamHandler, Timed {
  readonly version = "2";
  /** Unknown here: data behind the head is delivered only when the body is read. */
  readonly bodyBytesHere = 0;
  handler: ClientHandler | undefined;
  setIndex = NOT_IN_SET;
  deadlineMs: number;
  readonly #stream: Http2Stream;
  readonly #head: ReceivedHead;
  readonly #services: ConnectionServices;
  readonly #owner: StreamOwner;
  #requestDeadlineMs: number;
  #isStarted = false;
  #isBodiless = false;
  #isAnswered = false;
  #isReset = false;
  #isBodyEnded: boolean;
  #isReading = false;
  readonly #pace: ClientPace;

  constructor(stream: Http2Stream, head: ReceivedHead, services: ConnectionServices, owner: StreamOwner) {
    this.#stream = stream;
    this.#head = head;
    this.#services = services;
    this.#pace = new ClientPace(services, () => stream.sentBodyBytes);
    this.#owner = owner;
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
    if (this.#stream.hasRoom(this.#owner.sendBufferBytes)) return true;
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
    socket.once("close", () => this.#owner.closed(false));
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
    this.#owner.doubted();
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
    this.#owner.closed(this.#isReset);
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
