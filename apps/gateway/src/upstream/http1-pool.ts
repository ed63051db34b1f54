import type { Socket } from "node:net";
import {
  fieldValue,
  type Framing,
  hasBody,
  type Http1Error,
  LAST_CHUNK,
  lastChunkWithTrailers,
  type RawFields,
  requestHeadText,
  ResponseReader,
  UpstreamState,
  CHUNK_END,
  chunkPrefix,
} from "@headworks/http1";
import {
  BatchedWriter,
  type DeadlineSweep,
  NOT_IN_SET,
  Queue,
  type Timed,
  turnMs,
  SharedBytes,
} from "@headworks/sockets";
import { connectEndpoint, type EndpointConnectionOptions } from "./endpoint-connection.ts";
import type {
  CancelWait,
  EndpointPool,
  ExchangeWaiter,
  QueuedWaiter,
  ResponseHandler,
  UpstreamExchange,
  QueueCounts,
  UpstreamFailure,
} from "./upstream-exchange.ts";

export interface PoolSettings extends EndpointConnectionOptions {
  readonly authority: string;
  /** Maximum open connections, apart from stalled ones; more requests are queued. */
  readonly connectionCap: number;
  /** Maximum stalled connections: slow clients or idle streams. */
  readonly stalledCap: number;
  readonly maxPending: number;
  /** Maximum time in the queue. */
  readonly pendingMs: number;
  readonly idleMs: number;
  /** A connection takes no new request after this time; infinite for no limit. */
  readonly maxAgeMs: number;
  readonly deadlines: DeadlineSweep;
  /** An internal error ended a connection, not the process. */
  readonly onDefect: (error: unknown) => void;
  /** Counted for the whole upstream. */
  readonly counts: QueueCounts;
}

/** Random variation of connection ages, so that connections opened together do not expire together. */
const AGE_JITTER_SHARE = 0.1;

/** When a connection opened now expires. */
export function expiryMs(maxAgeMs: number): number {
  return turnMs() + maxAgeMs * (1 - Math.random() * AGE_JITTER_SHARE);
}

/** Interval of checks while requests are queued. */
const LOOK_MS = 20;
/** Minimum observation time before a client can lose its connection. */
const MIN_WATCHED_MS = 1000;
/** A client that transfers this many bytes per second keeps its connection. */
const MAX_EVICTED_PACE = 16_384;

/** HTTP/1.1 connections to one endpoint, most recently used first, so that surplus ones become idle and close. */
export class Http1Pool implements EndpointPool, Timed {
  setIndex = NOT_IN_SET;
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly #settings: PoolSettings;
  readonly #idle: { readonly connection: Http1Exchange; readonly sinceMs: number }[] = [];
  readonly #waiting = new Queue<QueuedWaiter>();
  readonly #connections: Http1Exchange[] = [];
  #lookTimer: NodeJS.Timeout | undefined;
  /** Connections, including those being opened. */
  #open = 0;
  #connecting = 0;
  #isRetired = false;

  constructor(settings: PoolSettings) {
    this.#settings = settings;
    settings.deadlines.add(this);
  }

  get openConnections(): number {
    return this.#open;
  }

  acquire(waiter: ExchangeWaiter): CancelWait | undefined {
    // Queued requests come first.
    const idle = this.#waiting.size === 0 ? this.#takeIdle() : undefined;
    if (idle !== undefined) {
      waiter.onExchange(idle);
      return undefined;
    }
    const pending = this.#waiting.size - this.#connecting;
    if (this.#open >= this.#settings.connectionCap && pending >= this.#settings.maxPending) {
      this.#settings.counts.saturated += 1;
      waiter.onUnavailable("saturated", `${pending} requests are queued already`);
      return undefined;
    }
    const entry = this.#waiting.push({ waiter, sinceMs: turnMs() });
    this.#connectMore();
    return () => {
      // The endpoint is at fault if each queued request has a connection being opened, or none is open.
      const waitedForEndpoint = this.#waiting.size <= this.#connecting || this.#open === this.#connecting;
      this.#waiting.leave(entry);
      return waitedForEndpoint;
    };
  }

  retire(): void {
    this.#isRetired = true;
    this.#settings.deadlines.delete(this);
    this.#closeIdle();
  }

  /** The connection can carry another request. */
  freed(connection: Http1Exchange): void {
    const isWanted = this.#waiting.size > 0;
    if (!isWanted && (this.#isRetired || !this.#mayKeep())) return void connection.socket.destroy();
    const sinceMs = turnMs();
    if (sinceMs >= connection.expiresMs) return void connection.socket.destroy();
    this.#idle.push({ connection, sinceMs });
    // Deferred out of the response that freed it: its last bytes go to their client first.
    if (isWanted) queueMicrotask(this.#serve);
    else if (this.deadlineMs === Number.POSITIVE_INFINITY) this.deadlineMs = sinceMs + this.#settings.idleMs;
  }

  /** One was closed at the moment of its use: other queued requests have probably met the same. */
  wentStale(): void {
    this.#closeIdle();
  }

  /** An internal error ended a connection and its request. */
  failed(error: unknown): void {
    this.#settings.onDefect(error);
  }

  /** A client does not take its response: meanwhile the connection does not count against the cap. */
  stalled(): void {
    if (this.#waiting.size > this.#connecting) queueMicrotask(this.#connectMore);
  }

  gone(connection: Http1Exchange): void {
    this.#open -= 1;
    const among = this.#connections.indexOf(connection);
    if (among !== -1) this.#connections.splice(among, 1);
    const at = this.#idle.findIndex((idle) => idle.connection === connection);
    if (at !== -1) this.#idle.splice(at, 1);
    this.#connectMore();
  }

  /** Closes connections that were idle for too long. */
  onDeadline(): void {
    const nowMs = turnMs();
    while (this.#idle[0] !== undefined && this.#idle[0].sinceMs + this.#settings.idleMs <= nowMs) {
      this.#idle.shift()?.connection.socket.destroy();
    }
    const [oldest] = this.#idle;
    if (oldest !== undefined) this.deadlineMs = oldest.sinceMs + this.#settings.idleMs;
  }

  /** The most recently used connection that is still usable; one that has ended is skipped. */
  #takeIdle(): Http1Exchange | undefined {
    const nowMs = turnMs();
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      const { connection, sinceMs } = idle;
      const isFresh = nowMs < connection.expiresMs && nowMs < sinceMs + connection.keepAliveMs;
      if (isFresh && connection.isIdle) return connection;
      connection.socket.destroy();
    }
    return undefined;
  }

  #closeIdle(): void {
    for (const { connection } of this.#idle.splice(0)) connection.socket.destroy();
  }

  readonly #serve = (): void => {
    while (this.#waiting.size > 0) {
      const idle = this.#takeIdle();
      if (idle === undefined) break;
      this.#waiting.shift()?.waiter.onExchange(idle);
    }
    if (this.#isRetired) this.#closeIdle();
    else if (this.#idle.length > 0 && this.deadlineMs === Number.POSITIVE_INFINITY) {
      this.deadlineMs = turnMs() + this.#settings.idleMs;
    }
    this.#connectMore();
  };

  /** Whether an idle connection is kept: stalled connections may have allowed more than the cap. */
  #mayKeep(): boolean {
    const { connectionCap, stalledCap } = this.#settings;
    return this.#open <= connectionCap || this.#open <= connectionCap + Math.min(stalledCap, this.#countStalled());
  }

  #countStalled(): number {
    const nowMs = turnMs();
    let stalled = 0;
    for (const connection of this.#connections) if (connection.stall(nowMs) !== undefined) stalled += 1;
    return stalled;
  }

  /** Opens connections in place of stalled ones, up to their cap; evicts the slowest beyond it. */
  readonly #connectMore = (): void => {
    const { connectionCap, stalledCap } = this.#settings;
    let max = connectionCap;
    let surplus = Number.NaN;
    while (this.#waiting.size > this.#connecting) {
      if (this.#open >= max) {
        if (Number.isNaN(surplus)) {
          const stalled = this.#countStalled();
          max += Math.min(stalledCap, stalled);
          surplus = stalled - stalledCap;
          continue;
        }
        if (surplus <= 0 || !this.#evictSlowest()) break;
        surplus -= 1;
      }
      this.#connect();
    }
    if (this.#waiting.size <= this.#connecting || this.#lookTimer !== undefined) return;
    this.#lookTimer = setTimeout(this.#look, LOOK_MS);
  };

  /** Checks while requests are queued: connections may have stalled, or the oldest request expired. */
  readonly #look = (): void => {
    this.#lookTimer = undefined;
    const { pendingMs } = this.#settings;
    const nowMs = turnMs();
    while (this.#waiting.size > this.#connecting && nowMs - (this.#waiting.first?.sinceMs ?? nowMs) >= pendingMs) {
      this.#settings.counts.timedOut += 1;
      this.#waiting.shift()?.waiter.onUnavailable("saturated", `no connection became free within ${pendingMs} ms`);
    }
    this.#connectMore();
  };

  /** Evicts the slowest client. False: none was slow for long enough. */
  #evictSlowest(): boolean {
    const nowMs = turnMs();
    let slowest: Http1Exchange | undefined;
    let slowestPace = MAX_EVICTED_PACE;
    for (const connection of this.#connections) {
      if (connection.stall(nowMs) !== "client") continue;
      const pace = connection.pace(nowMs, MIN_WATCHED_MS);
      if (pace === undefined || pace >= slowestPace) continue;
      slowest = connection;
      slowestPace = pace;
    }
    if (slowest === undefined) return false;
    this.#settings.counts.evicted += 1;
    slowest.evict();
    return true;
  }

  #connect(): void {
    this.#open += 1;
    this.#connecting += 1;
    let exchange: Http1Exchange | undefined;
    connectEndpoint(this.#settings, {
      connected: (socket) => {
        this.#connecting -= 1;
        exchange = new Http1Exchange(socket, this.#settings.authority, this);
        exchange.expiresMs = expiryMs(this.#settings.maxAgeMs);
        this.#connections.push(exchange);
        socket.resume();
        this.freed(exchange);
      },
      failed: (failure, detail) => {
        this.#open -= 1;
        this.#connecting -= 1;
        this.#failWaiters(failure, detail);
        this.#connectMore();
      },
      received: (bytes) => exchange?.receive(bytes),
    });
  }

  /**
   * Fails the oldest queued request, unless another connection is being opened for it. While no connection is open at
   * all, fails every request that none is being opened for.
   */
  #failWaiters(failure: "connect" | "connect-timeout", detail: string): void {
    let max = this.#open === this.#connecting ? Number.POSITIVE_INFINITY : 1;
    for (; max > 0 && this.#waiting.size > this.#connecting; max -= 1) {
      this.#waiting.shift()?.waiter.onUnavailable(failure, detail);
    }
  }
}

/** The calls of a connection to its pool. */
type ConnectionEvents = Pick<Http1Pool, "stalled" | "freed" | "wentStale" | "failed" | "gone">;

/** A client that owes a body and sent nothing for this long stalls its connection. */
const OWED_MS = 40;
/** A response that started and brought nothing for this long is an idle stream. */
const SILENT_MS = 1000;

/** Why an exchange makes no progress without the endpoint being at work on it. */
type Stall =
  /** The client owes a part of its body, or does not take the response. */
  | "client"
  /** The response is a stream without new data. */
  | "stream";

/** Margin before the announced timeout: a request in transit would meet the close. */
const KEEP_ALIVE_MARGIN_MS = 1000;

/** The idle time from `Keep-Alive: timeout=5` (RFC 2068, 19.7.1), less a margin; infinite without it. */
function announcedKeepAliveMs(fields: RawFields): number {
  const seconds = /(?:^|,)\s*timeout\s*=\s*"?([0-9]{1,9})/i.exec(fieldValue(fields, "keep-alive") ?? "")?.[1];
  return seconds === undefined ? Number.POSITIVE_INFINITY : Math.max(0, Number(seconds) * 1000 - KEEP_ALIVE_MARGIN_MS);
}

/** One HTTP/1.1 connection to an endpoint. Reused as the rules of `UpstreamState` allow. */
export class Http1Exchange implements UpstreamExchange {
  readonly socket: Socket;
  /** From this moment on it takes no new request. */
  expiresMs = Number.POSITIVE_INFINITY;
  /** How long it may be idle before the endpoint is expected to close it. */
  keepAliveMs = Number.POSITIVE_INFINITY;
  readonly #authority: string;
  readonly #pool: ConnectionEvents;
  readonly #writer: BatchedWriter<SharedBytes>;
  readonly #state = new UpstreamState();
  readonly #reader: ResponseReader;
  #handler: ResponseHandler | undefined;
  #isChunked = false;
  #hasBody = false;
  #owesBody = false;
  #isHeld = false;
  /** Transferred bytes at the last check, since when they are unchanged, and both at the start of the exchange. */
  #passedBytes = -1;
  #passedMs = 0;
  #lookedExchange = 0;
  #fromBytes = 0;
  #fromMs = 0;
  #held: Buffer | undefined;
  /** Called after the held bytes are read: the connection ended behind them. */
  #endBehindHeld: (() => void) | undefined;
  /** The response is an error delimited by the end of the connection, to a request with a body. */
  #isRefusalUntilClose = false;
  #responseEnded = false;
  #isSwitching = false;
  #isAbandoned = false;
  #hasResponseBytes = false;
  #hasHead = false;
  #protocolError: Http1Error | undefined;
  #tunnelReceiver: ((piece: Buffer) => void) | undefined;

  constructor(socket: Socket, authority: string, pool: ConnectionEvents) {
    this.socket = socket;
    this.#authority = authority;
    this.#pool = pool;
    this.#writer = BatchedWriter.copying(socket);
    this.#reader = new ResponseReader(
      {
        onInformational: (head) => this.#handler?.onInformational(head),
        onHead: (head) => {
          this.#state.responseStarted(head);
          this.#hasHead = true;
          this.#isSwitching = head.status === 101;
          this.#isRefusalUntilClose = this.#hasBody && head.status >= 400 && head.framing.kind === "until-close";
          // Servers announce the same time with each response.
          if (this.#state.exchangeCount === 1) this.keepAliveMs = announcedKeepAliveMs(head.fields);
          this.#handler?.onResponseHead(head);
        },
        onData: (piece) => this.#handler?.onResponseData(piece),
        onTrailers: (fields) => this.#handler?.onResponseTrailers(fields),
        onEnd: () => {
          this.#responseEnded = !this.#isSwitching;
        },
        onError: (error) => {
          this.#protocolError = error;
        },
      },
      { lenient: false },
    );
    socket.on("end", this.#onEnd);
    socket.on("drain", this.#onDrain);
    socket.on("error", this.#onError);
    socket.on("close", this.#onClose);
  }

  get isIdle(): boolean {
    return this.#state.isIdle;
  }

  send(request: {
    readonly method: string;
    readonly target: string;
    readonly host?: string | undefined;
    readonly fields: RawFields;
    readonly framing: Framing;
    readonly upgrade: string | undefined;
    readonly handler: ResponseHandler;
  }): void {
    const { method, fields, framing, upgrade } = request;
    const withBody = hasBody(framing);
    // After an upgrade request the protocol of the connection is uncertain, whatever the response.
    const keepAlive = upgrade === undefined;
    this.#state.requestStarted({ method, hasBody: withBody, keepAlive, isRetry: false });
    this.#reader.expect(method, upgrade);
    this.#handler = request.handler;
    this.#hasResponseBytes = false;
    this.#hasBody = withBody;
    this.#hasHead = false;
    this.#isHeld = false;
    this.#isChunked = framing.kind === "chunked";
    this.#owesBody = withBody;
    if (framing.kind === "length") fields.push("Content-Length", String(framing.lengthBytes));
    else if (this.#isChunked) fields.push("Transfer-Encoding", "chunked");
    if (upgrade !== undefined) fields.push("Connection", "Upgrade", "Upgrade", upgrade);
    fields.unshift("Host", request.host ?? this.#authority);
    this.#writer.text(requestHeadText(method, request.target, fields));
    if (!withBody) {
      this.#state.requestSent();
      this.#writer.flushSoon();
    }
  }

  sendData(piece: SharedBytes): void {
    if (this.#isChunked) this.#writer.bytes(piece, chunkPrefix(piece.length), CHUNK_END);
    else this.#writer.bytes(piece);
  }

  sendEnd(trailers: RawFields | undefined): void {
    if (this.#isChunked) this.#writer.text(trailers === undefined ? LAST_CHUNK : lastChunkWithTrailers(trailers));
    this.#owesBody = false;
    this.#state.requestSent();
    this.#writer.flushSoon();
  }

  /**
   * Why the exchange makes no progress. Checked only while other requests are queued, so that it costs nothing
   * otherwise. Silence is measured between two checks.
   */
  stall(nowMs: number): Stall | undefined {
    if (this.#handler === undefined) return undefined;
    const passedBytes = this.socket.bytesRead + this.socket.bytesWritten;
    if (this.#lookedExchange !== this.#state.exchangeCount) {
      this.#lookedExchange = this.#state.exchangeCount;
      this.#fromBytes = passedBytes;
      this.#fromMs = nowMs;
    }
    if (passedBytes !== this.#passedBytes) {
      this.#passedBytes = passedBytes;
      this.#passedMs = nowMs;
    }
    if (this.#isHeld) return "client";
    const silentMs = nowMs - this.#passedMs;
    if (this.#owesBody && silentMs >= OWED_MS && !this.socket.writableNeedDrain) return "client";
    return this.#hasHead && silentMs >= SILENT_MS ? "stream" : undefined;
  }

  /** Bytes per second since requests were first queued; undefined before `minMs` have passed. */
  pace(nowMs: number, minMs: number): number | undefined {
    const sinceMs = nowMs - this.#fromMs;
    if (this.#lookedExchange !== this.#state.exchangeCount || sinceMs < minMs) return undefined;
    return ((this.#passedBytes - this.#fromBytes) * 1000) / sinceMs;
  }

  /** Takes the connection from a client that is too slow, for another request. */
  evict(): void {
    const handler = this.#handler;
    this.abandon();
    handler?.onEvicted();
  }

  flush(): boolean {
    return this.#writer.flushSoon();
  }

  hold(): void {
    this.#isHeld = true;
    this.#reader.pause();
    this.socket.pause();
    this.#pool.stalled();
  }

  release(): void {
    this.#isHeld = false;
    this.#reader.resume();
    const held = this.#held;
    this.#held = undefined;
    if (held) this.#read(held);
    const end = this.#held === undefined ? this.#endBehindHeld : undefined;
    if (end !== undefined) {
      this.#endBehindHeld = undefined;
      end();
    } else if (!this.#reader.isPaused) this.socket.resume();
  }

  abandon(): void {
    this.#state.abandon();
    this.#isAbandoned = true;
    this.#handler = undefined;
    this.socket.destroy();
  }

  takeOver(): ReturnType<UpstreamExchange["takeOver"]> {
    this.#state.tunnelStarted();
    this.#handler = undefined;
    this.socket.off("end", this.#onEnd);
    this.socket.off("drain", this.#onDrain);
    this.socket.off("error", this.#onError);
    this.socket.off("close", this.#onClose);
    this.socket.pause();
    const bytes = this.#held;
    this.#held = undefined;
    this.#pool.gone(this);
    const receive = (receiver: (piece: Buffer) => void): void => {
      this.#tunnelReceiver = receiver;
    };
    return { socket: this.socket, bytes, receive };
  }

  receive(chunk: SharedBytes): void {
    if (this.#tunnelReceiver !== undefined) return this.#tunnelReceiver(SharedBytes.copyAlone(chunk));
    if (this.#state.bytesArrived() === "destroy") {
      this.socket.destroy();
      return;
    }
    this.#hasResponseBytes = true;
    this.#read(chunk);
  }

  #read(chunk: SharedBytes): void {
    const handler = this.#handler;
    try {
      this.#readResponse(chunk);
    } catch (error) {
      this.#pool.failed(error);
      const present = this.#handler;
      this.abandon();
      const detail = "the gateway failed; its log says why";
      present?.onUpstreamLost("reset", false, detail);
      if (handler !== present) handler?.onUpstreamLost("reset", false, detail);
    }
  }

  #readResponse(chunk: SharedBytes): void {
    const at = this.#reader.read(chunk);
    // Set from inside a call to the handler.
    if (this.#isAbandoned) return;
    if (this.#protocolError) return this.#refuse(this.#protocolError);
    const hasRest = at < chunk.length;
    if (this.#isSwitching) {
      if (hasRest) this.#held = SharedBytes.copyAlone(chunk.subarray(at));
      this.#handler?.onSwitched();
      return;
    }
    if (!this.#responseEnded) {
      if (hasRest) this.#held = SharedBytes.copyAlone(chunk.subarray(at));
      this.#handler?.onResponseBatch();
      return;
    }
    this.#complete(hasRest);
  }

  #complete(surplus: boolean): void {
    const handler = this.#handler;
    this.#responseEnded = false;
    this.#handler = undefined;
    const isFinished = surplus || this.#endBehindHeld !== undefined;
    if (this.#state.responseEnded(isFinished, this.#reader.oddities.length) === "keep") {
      this.#reader.next();
      this.#pool.freed(this);
    } else {
      this.socket.destroy();
    }
    handler?.onResponseEnd();
  }

  #refuse(error: Http1Error): void {
    this.#lose(error.code === "truncated" ? "reset" : "protocol", error.message);
  }

  #lose(failure: UpstreamFailure, detail: string): void {
    const handler = this.#handler;
    const isStale = this.#state.exchangeCount > 1 && !this.#hasResponseBytes;
    this.#handler = undefined;
    this.#state.lost();
    this.socket.destroy();
    if (handler === undefined) return;
    if (isStale) this.#pool.wentStale();
    handler.onUpstreamLost(failure, isStale, detail);
  }

  /** Reads the bytes that arrived before the connection ended, then reports the end. */
  #whenRead(end: () => void): void {
    if (this.#endBehindHeld !== undefined) return;
    // A socket that failed while paused still has bytes that it read before.
    const rest = this.#handler !== undefined && this.#reader.isPaused ? (this.socket.read() as Buffer | null) : null;
    if (rest !== null) this.#held = this.#held === undefined ? rest : Buffer.concat([this.#held, rest]);
    if (this.#held === undefined) end();
    else this.#endBehindHeld = end;
  }

  #ended(): void {
    this.#reader.end();
    if (this.#protocolError) return this.#refuse(this.#protocolError);
    if (this.#responseEnded) return this.#complete(false);
    this.#lose("reset", "closed without a response");
  }

  readonly #onEnd = (): void => this.#whenRead(() => this.#ended());

  readonly #onDrain = (): void => this.#handler?.onUpstreamDrain();

  readonly #onError = (error: Error): void =>
    this.#whenRead(() => {
      // An endpoint that closes without reading the request resets the connection, which is the end of such a
      // response.
      if (this.#isRefusalUntilClose) this.#ended();
      else this.#lose("reset", error.message);
    });

  readonly #onClose = (): void => {
    this.#whenRead(() => this.#lose("reset", "closed without a response"));
    this.#pool.gone(this);
  };
}
