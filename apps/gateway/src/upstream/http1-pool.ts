import { NOT_IN_SET, Queue, turnMs, type DeadlineSweep, type Timed } from "@headworks/sockets";
import { connectEndpoint, type EndpointConnectionOptions } from "./endpoint-connection.ts";
import { Http1Exchange, type ConnectionOwner } from "./http1-exchange.ts";
import type { CancelWait, EndpointPool, ExchangeWaiter, QueuedWaiter } from "./upstream-exchange.ts";
import type { QueueCounts } from "./upstream-group.ts";

export interface PoolSettings extends EndpointConnectionOptions {
  readonly authority: string;
  /** Maximum open connections, apart from stalled ones; more requests are queued. */
  readonly connectionCap: number;
  /** Maximum stalled connections: slow clients or idle streams. */
  readonly stalledCap: number;
  /** Maximum queued requests. */
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
export class Http1Pool implements EndpointPool, ConnectionOwner, Timed {
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
    const place = this.#waiting.push({ waiter, sinceMs: turnMs() });
    this.#connectMore();
    return () => {
      // The endpoint is at fault if each queued request has a connection being opened, or none is open.
      const waitedForEndpoint = this.#waiting.size <= this.#connecting || this.#open === this.#connecting;
      this.#waiting.leave(place);
      return waitedForEndpoint;
    };
  }

  retire(): void {
    this.#isRetired = true;
    this.#settings.deadlines.delete(this);
    this.#closeIdle();
  }

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

  failed(error: unknown): void {
    this.#settings.onDefect(error);
  }

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
    let most = connectionCap;
    let surplus = Number.NaN;
    while (this.#waiting.size > this.#connecting) {
      if (this.#open >= most) {
        if (Number.isNaN(surplus)) {
          const stalled = this.#countStalled();
          most += Math.min(stalledCap, stalled);
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
    let most = this.#open === this.#connecting ? Number.POSITIVE_INFINITY : 1;
    for (; most > 0 && this.#waiting.size > this.#connecting; most -= 1) {
      this.#waiting.shift()?.waiter.onUnavailable(failure, detail);
    }
  }
}
