import { NOT_IN_SET, Queue, turnMs, type DeadlineSweep, type Timed } from "@headworks/sockets";
import { connectEndpoint, type EndpointConnectionOptions } from "./endpoint-connection.ts";
import { Http1Exchange, type ConnectionOwner } from "./http1-exchange.ts";
import type { CancelWait, EndpointPool, ExchangeWaiter, QueuedWaiter } from "./upstream-exchange.ts";
import type { QueueCounts } from "./upstream-group.ts";

/** How connections to one endpoint are made and kept. */
export interface PoolSettings extends EndpointConnectionOptions {
  /** Host field of requests. */
  readonly authority: string;
  /** Open connections at most, beside those that do not move; more requests wait. */
  readonly connectionCap: number;
  /** Connections at most that do not move: their client is slow, or they are streams without news. */
  readonly stalledCap: number;
  /** Waiting requests at most. */
  readonly maxPending: number;
  /** How long a request may wait. */
  readonly pendingMs: number;
  readonly idleMs: number;
  /** A connection takes no new request after this time; infinite for no limit. */
  readonly maxAgeMs: number;
  readonly deadlines: DeadlineSweep;
  /** A defect of ours ended a connection, not the process. */
  readonly onDefect: (error: unknown) => void;
  /** Counted for the whole upstream. */
  readonly counts: QueueCounts;
}

/** The ages of connections differ by this share, so that those made together do not end together. */
const AGE_JITTER_SHARE = 0.1;

/** The moment from which on a connection made now takes no new request. */
export function expiryMs(maxAgeMs: number): number {
  return turnMs() + maxAgeMs * (1 - Math.random() * AGE_JITTER_SHARE);
}

/** While requests wait for a connection, how often connections are looked at. */
const LOOK_MS = 20;
/** No client loses its connection to others before it was watched for so long. */
const MIN_WATCHED_MS = 1000;
/** Nor one that moves so many bytes per second. */
const MAX_EVICTED_PACE = 16_384;

/** HTTP/1.1 connections to one endpoint, the last used first, so that surplus ones grow old and close. */
export class Http1Pool implements EndpointPool, ConnectionOwner, Timed {
  setIndex = NOT_IN_SET;
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly #settings: PoolSettings;
  readonly #idle: { readonly connection: Http1Exchange; readonly sinceMs: number }[] = [];
  readonly #waiting = new Queue<QueuedWaiter>();
  readonly #connections: Http1Exchange[] = [];
  #lookTimer: NodeJS.Timeout | undefined;
  /** Connections there are, those on the way included. */
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
    // Whoever waits already comes first.
    const idle = this.#waiting.size === 0 ? this.#takeIdle() : undefined;
    if (idle !== undefined) {
      waiter.onExchange(idle);
      return undefined;
    }
    const pending = this.#waiting.size - this.#connecting;
    if (this.#open >= this.#settings.connectionCap && pending >= this.#settings.maxPending) {
      this.#settings.counts.saturated += 1;
      waiter.onUnavailable("saturated", `${pending} requests wait already`);
      return undefined;
    }
    const place = this.#waiting.push({ waiter, sinceMs: turnMs() });
    this.#connectMore();
    return () => {
      // One is being made for each who waits, or no connection stands at all.
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
    // Not from inside the answer that freed it: its last bytes go to their client first.
    if (isWanted) queueMicrotask(this.#serve);
    else if (this.deadlineMs === Number.POSITIVE_INFINITY) this.deadlineMs = sinceMs + this.#settings.idleMs;
  }

  /** One was closed at the moment of its use: the others that wait have probably met the same end. */
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

  /** Closes what was idle for too long. */
  onDeadline(): void {
    const nowMs = turnMs();
    while (this.#idle[0] !== undefined && this.#idle[0].sinceMs + this.#settings.idleMs <= nowMs) {
      this.#idle.shift()?.connection.socket.destroy();
    }
    const [oldest] = this.#idle;
    if (oldest !== undefined) this.deadlineMs = oldest.sinceMs + this.#settings.idleMs;
  }

  /** The last used one that can still be used: between its end and the word of that, a connection is of no use. */
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

  /** Whether an idle connection is kept: those that stopped moving may have made room for more than there may be. */
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

  /** Connections that do not move leave their place to others, as many of them as may; the slowest of more are ended. */
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

  /** Requests wait still: perhaps something stopped moving meanwhile, or the time of the oldest is over. */
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

  /** The client that moved least loses its connection. False: none was slow for long enough. */
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
   * The oldest waiting request learns that there is no way, unless another connection is on its way to it. While there
   * is no connection at all, the same holds for everybody whom none is being made for.
   */
  #failWaiters(failure: "connect" | "connect-timeout", detail: string): void {
    let most = this.#open === this.#connecting ? Number.POSITIVE_INFINITY : 1;
    for (; most > 0 && this.#waiting.size > this.#connecting; most -= 1) {
      this.#waiting.shift()?.waiter.onUnavailable(failure, detail);
    }
  }
}
