import type { Socket } from "node:net";
import { appendHttp2Fields, isGrpc, reasonPhrase, withoutPseudoFields } from "@headworks/http-fields";
import {
  allowedTrailers,
  announcedFraming,
  CHUNKED,
  fieldValue,
  type Framing,
  hasBody,
  Http1Error,
  lengthFraming,
  NO_BODY,
  type RawFields,
  RESPONSE_LIMITS,
  type ResponseHead,
} from "@headworks/http1";
import {
  CANCEL,
  Http2Error,
  Http2Session,
  type Http2Stream,
  isSendable,
  NO_ERROR,
  PROTOCOL_ERROR,
  REFUSED_STREAM,
  sectionField,
  sectionLimits,
  type StreamHandler,
} from "@headworks/http2";
import { NOT_IN_SET, Queue, type Timed, turnMs, type SharedBytes } from "@headworks/sockets";
import { connectHttp2Endpoint } from "./endpoint-connection.ts";
import { expiryMs, type PoolSettings } from "./http1-pool.ts";
import type {
  CancelWait,
  EndpointPool,
  ExchangeWaiter,
  QueuedWaiter,
  ResponseHandler,
  UpstreamExchange,
  UpstreamFailure,
} from "./upstream-exchange.ts";

/** Limit of requests per connection, whatever the endpoint allows: a lost packet delays all of them. */
const MAX_CONCURRENT_STREAMS = 256;
/** Streams before the endpoint's SETTINGS: more might exceed its limit (RFC 9113, 5.1.2). */
const STREAMS_BEFORE_SETTINGS = 1;
/** Requests per connection; client stream numbers end at 2^30 (RFC 9113, 5.1.1), which a busy one reaches in days. */
const MAX_REQUESTS = 2 ** 29;
/** Assumed concurrency of a connection before its SETTINGS (the minimum that RFC 9113, 6.5.2 recommends). */
const EXPECTED_STREAMS = 100;
/** An endpoint without a ping response in this time counts as gone. */
const PING_MS = 5000;
const RESPONSE_SECTION = sectionLimits(RESPONSE_LIMITS);

/** Calls of a connection to its pool. */
interface LinkEvents {
  /** A request on it ended. */
  freed(link: Http2Link): void;
  /** It can take more, or fewer, requests than before. */
  changed(): void;
  gone(link: Http2Link): void;
}

class Http2Link {
  readonly session: Http2Session;
  readonly scheme: "http" | "https";
  readonly authority: string;
  streams = 0;
  idleSinceMs = turnMs();
  /** Whether the endpoint responded before: then the end of the session says nothing about the endpoint. */
  hasAnswered = false;
  readonly #events: LinkEvents;
  readonly #maxRequests: number;
  readonly #expiresMs: number;
  /** Below the endpoint's own limit if it refused a stream nevertheless. */
  #maxStreams = MAX_CONCURRENT_STREAMS;
  #requests = 0;
  #isPinging = false;
  #settingsTimer: NodeJS.Timeout | undefined;

  constructor(socket: Socket, settings: PoolSettings, events: LinkEvents, maxRequests: number) {
    const { authority, tls, connectMs, maxAgeMs, onDefect } = settings;
    this.#expiresMs = expiryMs(maxAgeMs);
    this.scheme = tls === undefined ? "http" : "https";
    this.authority = authority;
    this.#events = events;
    this.#maxRequests = maxRequests;
    this.session = new Http2Session(
      socket,
      { role: "client", section: RESPONSE_SECTION },
      {
        onSettings: () => {
          clearTimeout(this.#settingsTimer);
          this.#maxStreams = MAX_CONCURRENT_STREAMS;
          events.changed();
        },
        onGoaway: () => events.changed(),
        onClose: () => {
          clearTimeout(this.#settingsTimer);
          events.gone(this);
        },
        onDefect,
      },
    );
    if (!this.hasSettings) this.#settingsTimer = setTimeout(() => this.session.destroy(), connectMs).unref();
  }

  /** The endpoint's SETTINGS arrived. */
  get hasSettings(): boolean {
    return this.session.hasSettings;
  }

  get hasRoom(): boolean {
    const { acceptsStreams, hasSettings, peer } = this.session;
    if (!acceptsStreams || this.isWornOut) return false;
    return (
      this.streams < (hasSettings ? Math.min(peer.maxConcurrentStreams, this.#maxStreams) : STREAMS_BEFORE_SETTINGS)
    );
  }

  /** It takes no new requests and closes after its last one: it is too old or carried too many. */
  get isWornOut(): boolean {
    return this.#requests >= this.#maxRequests || turnMs() >= this.#expiresMs;
  }

  open(): Http2Exchange {
    this.streams += 1;
    this.#requests += 1;
    return new Http2Exchange(this);
  }

  /** An exchange ended; `head`: its response had begun. */
  ended(head: boolean): void {
    this.streams -= 1;
    if (head) this.hasAnswered = true;
    if (this.streams === 0) this.idleSinceMs = turnMs();
    if (this.isWornOut && this.streams === 0) this.close();
    this.#events.freed(this);
  }

  /** The endpoint refused a stream: limit streams to the current number until it announces its limit again. */
  refused(): void {
    this.#maxStreams = Math.max(1, this.streams);
  }

  /** An exchange was abandoned without a response: the connection may be dead. */
  doubted(): void {
    if (this.#isPinging || this.session.isFinished) return;
    this.#isPinging = true;
    const timer = setTimeout(() => this.session.destroy(), PING_MS).unref();
    this.session.ping(() => {
      clearTimeout(timer);
      this.#isPinging = false;
    });
  }

  /** Closes after its last request. */
  close(): void {
    this.session.close();
  }
}

/** HTTP/2 connections to one endpoint: as few as possible, each with as many streams as the endpoint allows. */
export class Http2Pool implements EndpointPool, Timed {
  setIndex = NOT_IN_SET;
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly #settings: PoolSettings;
  readonly #maxRequests: number;
  readonly #links: Http2Link[] = [];
  readonly #waiting = new Queue<QueuedWaiter>();
  #queueTimer: NodeJS.Timeout | undefined;
  #isConnecting = false;
  #isRetired = false;

  constructor(settings: PoolSettings, maxRequests = MAX_REQUESTS) {
    this.#settings = settings;
    this.#maxRequests = maxRequests;
    settings.deadlines.add(this);
  }

  get openConnections(): number {
    return this.#links.length;
  }

  acquire(waiter: ExchangeWaiter): CancelWait | undefined {
    const link = this.#links.find(({ hasRoom }) => hasRoom);
    if (link !== undefined) {
      waiter.onExchange(link.open());
      return undefined;
    }
    const { connectionCap, maxPending, pendingMs, counts } = this.#settings;
    const connectionsLeft = connectionCap - this.#countFresh();
    if (this.#waiting.size >= maxPending + connectionsLeft * EXPECTED_STREAMS) {
      counts.saturated += 1;
      waiter.onUnavailable("saturated", `${this.#waiting.size} requests are queued already`);
      return undefined;
    }
    const entry = this.#waiting.push({ waiter, sinceMs: turnMs() });
    if (this.#queueTimer === undefined) this.#queueTimer = setTimeout(this.#endOldWaits, pendingMs).unref();
    if (connectionsLeft > 0) this.#connect();
    return () => {
      this.#waiting.leave(entry);
      return this.#isConnecting;
    };
  }

  retire(): void {
    this.#isRetired = true;
    this.#settings.deadlines.delete(this);
    for (const link of this.#links) link.close();
  }

  /** Closes connections that were idle for too long. */
  onDeadline(): void {
    const nowMs = turnMs();
    const { idleMs } = this.#settings;
    for (const link of this.#links) {
      if (link.streams === 0 && (link.isWornOut || link.idleSinceMs + idleMs <= nowMs)) link.close();
    }
    if (this.#links.length > 0) this.deadlineMs = nowMs + idleMs / 2;
  }

  readonly #freed = (link: Http2Link): void => {
    if (this.#waiting.size > 0 && link.hasRoom) queueMicrotask(() => this.#serve());
    if (link.streams === 0 && this.#isRetired && this.#waiting.size === 0) link.close();
  };

  /** Fails requests that were queued for longer than `pending_timeout_ms`. */
  readonly #endOldWaits = (): void => {
    const { pendingMs, counts } = this.#settings;
    const nowMs = performance.now();
    this.#queueTimer = undefined;
    while (this.#waiting.first !== undefined && nowMs - this.#waiting.first.sinceMs >= pendingMs) {
      counts.timedOut += 1;
      this.#waiting.shift()?.waiter.onUnavailable("saturated", `nothing became free within ${pendingMs} ms`);
    }
    const oldest = this.#waiting.first;
    if (oldest === undefined) return;
    this.#queueTimer = setTimeout(this.#endOldWaits, oldest.sinceMs + pendingMs - nowMs).unref();
  };

  /** Assigns free streams to queued requests, and opens another connection for the rest. */
  #serve(): void {
    while (this.#waiting.size > 0) {
      const link = this.#links.find(({ hasRoom }) => hasRoom);
      if (link === undefined) break;
      this.#waiting.shift()?.waiter.onExchange(link.open());
    }
    if (this.#waiting.size > 0 && this.#countFresh() < this.#settings.connectionCap) this.#connect();
  }

  /** Connections that take new requests; those that close after their last request do not count. */
  #countFresh(): number {
    return this.#links.reduce((count, { isWornOut }) => count + Number(!isWornOut), 0);
  }

  /** Opens a connection, unless another one is being opened or has not announced its limit yet. */
  #connect(): void {
    if (this.#isConnecting || this.#links.some(({ hasSettings }) => !hasSettings)) return;
    this.#isConnecting = true;
    connectHttp2Endpoint(this.#settings, {
      connected: (socket) => {
        this.#isConnecting = false;
        this.#begin(socket);
      },
      failed: (failure, detail) => {
        this.#isConnecting = false;
        // All of them were queued for this connection; requests queued by these calls wait for another.
        const waiting = this.#waiting.shiftAll();
        for (const { waiter } of waiting) waiter.onUnavailable(failure, detail);
      },
    });
  }

  #begin(socket: Socket): void {
    const link = new Http2Link(
      socket,
      this.#settings,
      { freed: this.#freed, changed: () => this.#serve(), gone: this.#gone },
      this.#maxRequests,
    );
    this.#links.push(link);
    if (this.deadlineMs === Number.POSITIVE_INFINITY) this.deadlineMs = turnMs() + this.#settings.idleMs;
    if (this.#isRetired && this.#waiting.size === 0) return link.close();
    this.#serve();
  }

  readonly #gone = (link: Http2Link): void => {
    const at = this.#links.indexOf(link);
    if (at !== -1) this.#links.splice(at, 1);
    this.#serve();
  };
}

/** Limit of body bytes buffered for the endpoint's window before the client is paused. */
const SEND_BUFFER_BYTES = 16_384;

class Http2Exchange implements UpstreamExchange, StreamHandler {
  readonly #link: Http2Link;
  #stream: Http2Stream | undefined;
  #handler: ResponseHandler | undefined;
  #method = "";
  #informational = 0;
  #hasHead = false;
  #isFinished = false;
  #wasStale = false;

  constructor(link: Http2Link) {
    this.#link = link;
  }

  send(request: Parameters<UpstreamExchange["send"]>[0]): void {
    const { method, target, fields, framing } = request;
    const { session, scheme, authority } = this.#link;
    this.#handler = request.handler;
    this.#method = method;
    this.#wasStale = this.#link.hasAnswered;
    const section = [":method", method, ":scheme", scheme, ":authority", request.host ?? authority, ":path", target];
    if (framing.kind === "length") section.push("content-length", String(framing.lengthBytes));
    appendHttp2Fields(fields, section);
    if (!isSendable(section)) {
      this.#handler = undefined;
      this.#settle();
      throw new Http1Error("unsafe-text");
    }
    if (session.acceptsStreams) {
      this.#stream = session.request(section, !hasBody(framing));
      this.#stream.handler = this;
    } else {
      process.nextTick(() => this.#lose("refused", "the connection takes no more requests"));
    }
  }

  sendData(piece: SharedBytes): void {
    // Body pieces of clients lie in one buffer that is reused for each read.
    this.#stream?.writeShared(piece);
  }

  sendEnd(trailers: RawFields | undefined): void {
    const section: string[] = [];
    if (trailers !== undefined) appendHttp2Fields(trailers, section);
    if (!isSendable(section)) throw new Http1Error("unsafe-text");
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

  abandon(): void {
    this.#handler = undefined;
    if (this.#isFinished) return;
    if (this.#stream !== undefined && !this.#hasHead) this.#link.doubted();
    this.#settle();
    this.#stream?.reset(CANCEL);
  }

  takeOver(): never {
    throw new Error("HTTP/2 has no connection to take over");
  }

  onSection(section: RawFields, isWhole: boolean): void {
    if (this.#isFinished) return;
    const status = Number(sectionField(section, ":status"));
    if (status < 200) return this.#readInformational(status, section);
    const head = headOf(status, section, NO_BODY);
    const announced = announcedFraming(head.fields);
    if (announced === undefined) return this.#lose("protocol", "the response has no valid content-length");
    const hasNone = isBodiless(this.#method, status);
    const lengthBytes = hasNone ? 0 : announced.kind === "length" ? announced.lengthBytes : undefined;
    if (isWhole && lengthBytes !== undefined && lengthBytes > 0) {
      return this.#lose("protocol", "the response is shorter than its content-length");
    }
    this.#hasHead = true;
    if (lengthBytes !== undefined) this.#stream?.announce(lengthBytes);
    const framing = isWhole ? lengthFraming(0) : expected(announced, head.fields);
    this.#handler?.onResponseHead(hasNone ? head : { ...head, framing });
    if (isWhole) this.#complete();
    else this.#handler?.onResponseBatch();
  }

  onData(piece: Buffer): void {
    this.#handler?.onResponseData(piece);
    this.#handler?.onResponseBatch();
  }

  onTrailers(section: RawFields): void {
    this.#handler?.onResponseTrailers(allowedTrailers(withoutPseudoFields(section)));
  }

  onEnd(): void {
    this.#complete();
  }

  onDrain(): void {
    this.#handler?.onUpstreamDrain();
  }

  onClose(code: number): void {
    const { error } = this.#link.session;
    if (code === NO_ERROR && error instanceof Http2Error) return this.#lose("protocol", error.message);
    const problem = this.#stream?.problem;
    if (problem !== undefined) return this.#lose("protocol", problem);
    this.#lose(code === REFUSED_STREAM ? "refused" : "reset", `the stream ended with code ${code}`);
  }

  #readInformational(status: number, section: RawFields): void {
    this.#informational += 1;
    if (this.#informational > RESPONSE_LIMITS.informationalCount) {
      return this.#lose("protocol", "too many informational responses");
    }
    if (status !== 101) this.#handler?.onInformational(headOf(status, section, NO_BODY));
  }

  #complete(): void {
    if (this.#isFinished) return;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#settle();
    // The response came before the end of the request, whose rest is not wanted (RFC 9113, 8.1).
    if (this.#stream?.hasSentEnd === false) this.#stream.reset(NO_ERROR);
    handler?.onResponseEnd();
  }

  #lose(failure: UpstreamFailure, detail: string): void {
    if (this.#isFinished) return;
    const handler = this.#handler;
    this.#handler = undefined;
    this.#settle();
    if (failure === "refused") this.#link.refused();
    // A malformed response is a stream error (RFC 9113, 8.1.1).
    this.#stream?.reset(failure === "protocol" ? PROTOCOL_ERROR : CANCEL);
    // A session that ended after a response was closed for its age.
    const wasOld = failure === "reset" && this.#wasStale && !this.#hasHead && this.#link.session.isFinished;
    handler?.onUpstreamLost(failure, failure === "refused" || wasOld, detail);
  }

  #settle(): void {
    this.#isFinished = true;
    this.#link.ended(this.#hasHead);
  }
}

function headOf(status: number, section: readonly string[], framing: Framing): ResponseHead {
  return {
    version: "1.1",
    status,
    reason: reasonPhrase(status),
    fields: withoutPseudoFields(section),
    fieldLines: undefined,
    framing,
    keepAlive: true,
    upgrade: undefined,
    oddities: [],
    headSizeBytes: 0,
  };
}

function isBodiless(method: string, status: number): boolean {
  return method === "HEAD" || status === 204 || status === 304;
}

/** Framing of unknown length even if empty: an empty response would be sent before its trailers arrive. */
function expected(framing: Framing, fields: RawFields): Framing {
  return framing.kind === "length" && framing.lengthBytes === 0 && announcesTrailers(fields) ? CHUNKED : framing;
}

/** Whether trailers may follow a head (RFC 9110, 6.6.2): announced, or gRPC. */
function announcesTrailers(fields: Readonly<RawFields>): boolean {
  if (fieldValue(fields, "trailer") !== undefined) return true;
  return isGrpc(fieldValue(fields, "content-type"));
}
