import { hostPortText } from "@headworks/host-patterns";
import { appendHttp2Fields, reasonPhrase, withoutPseudoFields } from "@headworks/http-fields";
import {
  allowedTrailers,
  announcedFraming,
  countDownForwards,
  fieldValue,
  type Framing,
  Http1Error,
  isIdempotent,
  lengthFraming,
  NO_BODY,
  ownText,
  type RawFields,
  RESPONSE_LIMITS,
} from "@headworks/http1";
import {
  CANCEL,
  http2CodeName,
  Http2Error,
  Http2Session,
  type Http2Stream,
  HTTP_1_1_REQUIRED,
  isSendable,
  NO_ERROR,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  sectionField,
  sectionLimits,
  type StreamHandler,
  StreamSocket,
} from "@headworks/http2";
import type { ByteSocket } from "@headworks/sockets";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { brokenConnection, clientCertificateNote } from "./connect-failure.ts";
import { type Destination, type Dialled, ownDestination } from "./destination.ts";
import type { ConnectionHistory } from "./idle-origins.ts";
import { removeOurMembers, requestFields } from "./origin-fields.ts";
import type { HeadLimits, LostOutcome, Origin, OriginRequest, ResponseHandler, ResponseHead } from "./origin.ts";

/** Request body bytes buffered for the origin's window before the client is paused. */
const SEND_BUFFER_BYTES = 131_072;

/** One request to an origin over HTTP/2. */
class OriginStream implements Origin, StreamHandler {
  readonly address: string;
  readonly tls: UpstreamTlsFacts | undefined;
  readonly reportsUnprocessed = true;
  firstByteMs = 0;
  readonly #owner: OriginSession;
  #stream: Http2Stream | undefined;
  #handler: ResponseHandler | undefined;
  #request: OriginRequest | undefined;
  #informational = 0;
  #hasHead = false;
  #isFinished = false;
  #wasUsed = false;

  constructor(owner: OriginSession) {
    this.#owner = owner;
    this.address = owner.address;
    this.tls = owner.tls;
  }

  send(handler: ResponseHandler, request: OriginRequest): number {
    const { session } = this.#owner;
    this.#handler = handler;
    this.#request = request;
    this.#wasUsed = this.#owner.hasResponded;
    this.#owner.history?.requestSent(request);
    const section = this.#section(request);
    let sizeBytes = 0;
    for (const part of section) sizeBytes += part.length;
    if (!isSendable(section)) {
      this.#isFinished = true;
      this.#handler = undefined;
      this.#owner.ended(false);
      throw new Http1Error("unsafe-text", 500);
    }
    if (session.acceptsStreams) {
      this.#stream = session.request(section, !request.hasBody && request.upgrade === undefined);
      this.#stream.handler = this;
    } else {
      process.nextTick(() => this.#lose(NO_ERROR));
    }
    return sizeBytes;
  }

  sendData(piece: Buffer): void {
    this.#stream?.write(piece);
  }

  sendEnd(trailers: RawFields | undefined): void {
    // WebSocket data follows.
    if (this.#request?.upgrade !== undefined) return;
    const section: string[] = [];
    if (trailers !== undefined) appendHttp2Fields(trailers, section);
    if (!isSendable(section)) throw new Http1Error("unsafe-text", 500);
    this.#stream?.end(section);
  }

  flush(): boolean {
    return this.#stream?.hasRoom(SEND_BUFFER_BYTES) !== false;
  }

  hold(): void {
    this.#stream?.hold();
  }

  release(): void {
    this.#stream?.release();
  }

  takeOver(): { readonly socket: ByteSocket; readonly bytes: Buffer | undefined } {
    const stream = this.#stream;
    if (stream === undefined) throw new TypeError("There is no stream to take over");
    this.#isFinished = true;
    this.#handler = undefined;
    const socket = new StreamSocket(stream);
    socket.once("close", () => this.#owner.ended(true));
    return { socket, bytes: undefined };
  }

  destroy(resetCode: number = CANCEL): void {
    this.#handler = undefined;
    if (this.#isFinished) return;
    this.#owner.history?.spoil();
    if (!this.#hasHead) this.#owner.doubted();
    this.#stream?.reset(resetCode === NO_ERROR ? CANCEL : resetCode);
  }

  /** The field section of a request, pseudo-fields first (RFC 9113, 8.3.1). */
  #section({ method, path, fields, framing, upgrade, authority }: OriginRequest): string[] {
    const { scheme, hostPort } = this.#owner;
    const host = authority ?? fieldValue(fields, "host") ?? hostPort;
    const section = upgrade === undefined ? [":method", method] : [":method", "CONNECT", ":protocol", upgrade];
    section.push(":scheme", scheme, ":authority", host, ":path", path);
    const forwarded = requestFields(fields, framing, undefined, authority);
    removeOurMembers(forwarded);
    countDownForwards(method, forwarded);
    const acceptsTrailers = /(?:^|,)\s*trailers\s*(?:,|;|$)/i.test(fieldValue(forwarded, "te") ?? "");
    const at = section.length;
    appendHttp2Fields(forwarded, section);
    if (acceptsTrailers && !section.includes("te", at)) section.push("te", "trailers");
    if (upgrade !== undefined) withoutKey(section);
    return section;
  }

  onSection(section: RawFields, isWhole: boolean): void {
    this.#guarded(() => this.#readSection(section, isWhole));
  }

  onData(piece: Buffer): void {
    try {
      this.#handler?.onResponseData(piece);
      this.#handler?.onResponseBatch();
    } catch (error) {
      this.#broken(error);
    }
  }

  onTrailers(section: RawFields): void {
    this.#guarded(() => this.#handler?.onResponseTrailers(allowedTrailers(withoutPseudoFields(section))));
  }

  onEnd(): void {
    this.#guarded(() => this.#complete());
  }

  onDrain(): void {
    this.#handler?.onOriginDrain();
  }

  onClose(code: number): void {
    this.#lose(code);
  }

  #readSection(section: RawFields, isWhole: boolean): void {
    if (this.#isFinished) return;
    const status = Number(sectionField(section, ":status"));
    if (status < 200) return this.#readInformational(status, section);
    this.firstByteMs = performance.now();
    if (this.#request?.upgrade !== undefined && status < 300 && !isWhole) {
      this.#hasHead = true;
      return this.#switched(section);
    }
    const isBodiless = this.#request?.method === "HEAD" || status === 204 || status === 304;
    const announced = announcedFraming(section);
    if (announced === undefined) return this.#refuse("it has no valid content-length");
    const isCut = isWhole && !isBodiless && announced.kind === "length" && announced.lengthBytes > 0;
    if (isCut) return this.#refuse("it ends without the body it announces");
    const framing = isBodiless ? NO_BODY : isWhole ? lengthFraming(0) : announced;
    this.#hasHead = true;
    if (framing.kind !== "chunked") this.#stream?.announce(framing.kind === "length" ? framing.lengthBytes : 0);
    const head = headOf(status, section, framing);
    this.#owner.history?.responseStarted(head);
    this.#handler?.onResponseHead(head);
    this.#handler?.onResponseBatch();
    // A response without a body is complete with its head, before the origin ends the stream.
    const isEmpty = framing.kind === "none" || (framing.kind === "length" && framing.lengthBytes === 0);
    if (isWhole || isEmpty) this.#complete();
  }

  #readInformational(status: number, section: RawFields): void {
    this.#informational += 1;
    if (this.#informational > RESPONSE_LIMITS.informationalCount) {
      return this.#refuse("too many informational responses");
    }
    if (status !== 101) this.#handler?.onInformational(headOf(status, section, NO_BODY));
  }

  /** The HTTP/1.1 equivalent of an accepted extended CONNECT is 101 (RFC 8441, 5.1). */
  #switched(section: RawFields): void {
    this.#handler?.onResponseHead(headOf(101, section, NO_BODY));
    this.#handler?.onProtocolSwitched();
  }

  #complete(): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#owner.ended(true);
    // The response ended before the request: the rest of the body is not wanted (RFC 9113, 8.1).
    if (this.#stream?.hasSentEnd === false) this.#stream.reset(NO_ERROR);
    handler?.onResponseEnd();
  }

  #guarded(run: () => void): void {
    try {
      run();
    } catch (error) {
      this.#broken(error);
    }
  }

  /** A bug in the proxy ends this exchange, not the process. */
  #broken(cause: unknown): void {
    const message = "The proxy failed; see its log";
    const failure: Failure = { stage: "receive", side: "internal", code: "INTERNAL", message, cause };
    if (!this.#isFinished) this.#settle("fail", failure);
    this.#stream?.reset(CANCEL);
  }

  #refuse(what: string): void {
    const message = `The response of ${this.#owner.hostPort} is not valid HTTP/2: ${what}`;
    const failure: Failure = { stage: "receive", side: "upstream", code: "UPSTREAM_PROTOCOL", message };
    this.#settle("fail", failure);
    this.#stream?.reset(PROTOCOL_ERROR);
  }

  /** The stream closed before its response was complete. */
  #lose(closeCode: number): void {
    if (this.#isFinished) return;
    const code = closeCode || this.#owner.goawayCode || NO_ERROR;
    this.#settle(this.#outcome(code), this.#failure(code));
  }

  #settle(outcome: LostOutcome, failure: Failure): void {
    this.#isFinished = true;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#owner.history?.spoil();
    this.#owner.ended(this.#hasHead);
    handler?.onOriginLost(outcome, failure);
  }

  #outcome(code: number): LostOutcome {
    const request = this.#request;
    if (code === HTTP_1_1_REQUIRED) this.#owner.http1Required();
    if (request === undefined || request.isRetry || request.upgrade !== undefined) return "fail";
    if (this.#hasHead || this.#informational > 0) return "fail";
    // The origin did not process the request.
    if (code === REFUSED_STREAM || code === HTTP_1_1_REQUIRED) return request.hasBody ? "unseen" : "retry";
    // A connection that has served responses was closed as idle.
    const isStale = this.#wasUsed && this.#owner.session.isFinished && !request.hasBody;
    return isStale && isIdempotent(request.method) ? "retry" : "fail";
  }

  #failure(code: number): Failure {
    const { hostPort, session } = this.#owner;
    const { error } = session;
    const when = this.#hasHead ? "in the middle of its response" : "without a response";
    const stage = this.#hasHead ? "receive" : "send";
    const problem = this.#stream?.problem;
    if (problem !== undefined) {
      const message = `The response of ${hostPort} is not valid HTTP/2: ${problem}`;
      return { stage: "receive", side: "upstream", code: "UPSTREAM_PROTOCOL", message };
    }
    if (error instanceof Http2Error && code === NO_ERROR) {
      const message = `${hostPort} broke the rules of HTTP/2 ${when}: ${error.message}`;
      return { stage: "receive", side: "upstream", code: "UPSTREAM_PROTOCOL", message, cause: error };
    }
    if (error !== undefined && code === NO_ERROR) {
      return brokenConnection(error, hostPort, stage, this.tls?.clientCertificate);
    }
    if (code === NO_ERROR && session.isFinished) {
      const message = `${hostPort} closed the connection ${when}${clientCertificateNote(this.tls?.clientCertificate)}`;
      return { stage: "receive", side: "upstream", code: "UPSTREAM_CLOSED", message };
    }
    const message = `${hostPort} ended the stream ${when} (${http2CodeName(code)})`;
    const kind = code === PROTOCOL_ERROR ? "UPSTREAM_PROTOCOL" : "UPSTREAM_RESET";
    return { stage: "receive", side: "upstream", code: kind, message, resetCode: code === NO_ERROR ? CANCEL : code };
  }
}

/** HTTP/2 does not use Sec-WebSocket-Key (RFC 8441, 5). */
function withoutKey(section: string[]): void {
  const at = section.indexOf("sec-websocket-key");
  if (at !== -1) section.splice(at, 2);
}

function headOf(status: number, section: readonly string[], framing: Framing): ResponseHead {
  return {
    version: "2",
    status,
    reason: reasonPhrase(status),
    fields: withoutPseudoFields(section),
    fieldLines: undefined,
    framing,
  };
}

/** Upper limit, even if the origin allows more. */
const MAX_CONCURRENT_STREAMS = 256;
/** Until SETTINGS arrive, further requests could exceed the origin's limit (RFC 9113, 5.1.2). */
const STREAMS_BEFORE_SETTINGS = 1;
/** An origin that does not acknowledge a PING in this time counts as gone. */
const PING_MS = 5000;

export interface SessionEvents {
  /** The session can no longer be used. */
  gone(session: OriginSession): void;
  /** The origin accepts no new requests on this session. */
  closing(session: OriginSession): void;
  /** The origin requires HTTP/1.1. */
  http1Required(session: OriginSession): void;
}

interface SessionParts {
  readonly events: SessionEvents;
  readonly limits: HeadLimits;
  /** Timeout for the origin's SETTINGS. */
  readonly settingsMs: number;
}

/** One HTTP/2 connection to an origin; its history decides whether another client may inherit it. */
export class OriginSession {
  readonly session: Http2Session;
  readonly scheme: "http" | "https";
  /** Undefined: never reused by another client. */
  readonly history: ConnectionHistory | undefined;
  readonly address: string;
  readonly tls: UpstreamTlsFacts | undefined;
  /** Whether the connection has served a response; if so, its end may only mean that it was idle for too long. */
  hasResponded = false;
  /** The code of a GOAWAY that ended all streams. */
  goawayCode: number | undefined;
  #destination: Destination;
  #hostPort: string;
  #events: SessionEvents;
  #streams = 0;
  #isClosing = false;
  #isPinging = false;
  #whenSettled: (() => void) | undefined;
  readonly #settingsTimer: NodeJS.Timeout;

  constructor(
    destination: Destination,
    dialled: Dialled,
    history: ConnectionHistory | undefined,
    { events, limits, settingsMs }: SessionParts,
  ) {
    const { host, port, secure } = destination;
    this.#destination = destination;
    this.history = history;
    this.#events = events;
    this.scheme = secure ? "https" : "http";
    this.#hostPort = hostPortText(host, port);
    this.address = dialled.address;
    this.tls = dialled.tls;
    this.session = new Http2Session(
      dialled.socket,
      { role: "client", section: sectionLimits(limits) },
      {
        onSettings: () => this.#settled(),
        onGoaway: (code) => {
          if (code !== NO_ERROR) this.goawayCode = code;
          this.#events.closing(this);
        },
        onClose: () => {
          this.#events.gone(this);
          this.#settled();
        },
      },
    );
    this.#settingsTimer = setTimeout(() => this.session.destroy(), settingsMs).unref();
  }

  get destination(): Destination {
    return this.#destination;
  }

  /** `host:port` of the origin, for messages and for requests without a host. */
  get hostPort(): string {
    return this.#hostPort;
  }

  get isIdle(): boolean {
    return this.#streams === 0;
  }

  /** No exchange is in progress, and the origin is alive and accepts more. */
  get mayRest(): boolean {
    return this.isIdle && this.hasSettings && this.hasRoom && !this.#isPinging;
  }

  /** Becomes idle and releases references to its last client's requests. */
  rest(onGone: () => void): void {
    this.#destination = ownDestination(this.#destination);
    this.#hostPort = ownText(this.#hostPort);
    this.#events = { gone: onGone, closing: () => this.destroy(), http1Required: () => undefined };
  }

  /** Assigns the session to another client connection. */
  serve(events: SessionEvents): void {
    this.#events = events;
  }

  /** SETTINGS were received, which proves that the origin speaks HTTP/2. */
  get hasSettings(): boolean {
    return this.session.hasSettings;
  }

  /** Whether the origin supports WebSockets on streams (RFC 8441, 3). */
  get acceptsWebSockets(): boolean {
    return this.session.peer.acceptsWebSockets;
  }

  /** Whether another request may be sent now. */
  get hasRoom(): boolean {
    const { acceptsStreams, hasSettings, peer } = this.session;
    if (this.#isClosing || !acceptsStreams) return false;
    return (
      this.#streams <
      (hasSettings ? Math.min(peer.maxConcurrentStreams, MAX_CONCURRENT_STREAMS) : STREAMS_BEFORE_SETTINGS)
    );
  }

  /** Calls back once SETTINGS were received or the session ended without them. */
  whenSettled(callback: () => void): void {
    if (this.session.hasSettings || this.session.isFinished) callback();
    else this.#whenSettled = callback;
  }

  open(): Origin {
    this.#streams += 1;
    return new OriginStream(this);
  }

  /** A stream's slot is free; `hasResponse`: a response had begun. */
  ended(hasResponse: boolean): void {
    this.#streams -= 1;
    if (hasResponse) this.hasResponded = true;
  }

  /** A stream was abandoned without a response: the connection may be dead. */
  doubted(): void {
    if (this.#isPinging || this.session.isFinished) return;
    this.#isPinging = true;
    const timer = setTimeout(() => this.session.destroy(), PING_MS).unref();
    this.session.ping(() => {
      clearTimeout(timer);
      this.#isPinging = false;
    });
  }

  /** The origin requires HTTP/1.1 for a request (RFC 9113, 7). */
  http1Required(): void {
    this.#isClosing = true;
    this.#events.http1Required(this);
  }

  destroy(): void {
    this.session.destroy();
  }

  #settled(): void {
    clearTimeout(this.#settingsTimer);
    const callback = this.#whenSettled;
    this.#whenSettled = undefined;
    callback?.();
  }
}
