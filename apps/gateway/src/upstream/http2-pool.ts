import type { Socket } from "node:net";
import { RESPONSE_LIMITS } from "@headworks/http1";
import { Http2Session, sectionLimits } from "@headworks/http2";
import { NOT_IN_SET, Queue, turnMs, type Timed } from "@headworks/sockets";
import { connectHttp2Endpoint } from "./endpoint-connection.ts";
import { Http2Exchange, type ExchangeOwner } from "./http2-exchange.ts";
import { expiryMs, type PoolSettings } from "./http1-pool.ts";
import type { CancelWait, EndpointPool, ExchangeWaiter, QueuedWaiter } from "./upstream-exchange.ts";

/** Limit of requests per connection, whatever the endpoint allows: a lost packet delays all of them. */
const MAX_CONCURRENT_STREAMS = 256;
/**
 * Streams on a connection before its SETTINGS arrive: one request need not wait for them, more might exceed the
 * endpoint's limit (RFC 9113, 5.1.2).
 */
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

class Http2Link implements ExchangeOwner {
  readonly session: Http2Session;
  readonly scheme: "http" | "https";
  readonly authority: string;
  streams = 0;
  idleSinceMs = turnMs();
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
    const place = this.#waiting.push({ waiter, sinceMs: turnMs() });
    if (this.#queueTimer === undefined) this.#queueTimer = setTimeout(this.#endOldWaits, pendingMs).unref();
    if (connectionsLeft > 0) this.#connect();
    return () => {
      this.#waiting.leave(place);
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
