// Tested by ../../test/upstream-connections.test.ts
import { NOWHERE, Queue, turnMs, type DeadlineSweep, type Timed } from "@headworks/sockets";
import { connectEndpoint, type EndpointWay } from "./endpoint-connection.ts";
import { Http1Exchange, type ConnectionOwner } from "./http1-exchange.ts";
import type { CancelWait, EndpointPool, ExchangeWaiter } from "./upstream-exchange.ts";

/** How connections to one endpoint are made and kept. */
export interface PoolSettings extends EndpointWay {
  /** Host field of requests. */
  readonly authority: string;
  /** Open connections at most; more requests wait. */
  readonly connectionCap: number;
  /** Waiting requests at most. */
  readonly maxPending: number;
  readonly idleMs: number;
  readonly deadlines: DeadlineSweep;
  /** A defect of ours ended a connection, not the process. */
  readonly onDefect: (error: unknown) => void;
}

/** HTTP/1.1 connections to one endpoint, the last used first, so that surplus ones grow old and close. */
export class Http1Pool implements EndpointPool, ConnectionOwner, Timed {
  rosterPlace = NOWHERE;
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly #settings: PoolSettings;
  readonly #idle: { readonly connection: Http1Exchange; readonly sinceMs: number }[] = [];
  readonly #waiting = new Queue<ExchangeWaiter>();
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
      waiter.onUnavailable("saturated", `${pending} requests wait already`);
      return undefined;
    }
    const place = this.#waiting.push(waiter);
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
    if (this.#isRetired && !isWanted) return void connection.socket.destroy();
    const sinceMs = turnMs();
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

  gone(connection: Http1Exchange): void {
    this.#open -= 1;
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
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (idle.connection.isIdle) return idle.connection;
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
      this.#waiting.shift()?.onExchange(idle);
    }
    if (this.#isRetired) this.#closeIdle();
    else if (this.#idle.length > 0 && this.deadlineMs === Number.POSITIVE_INFINITY) {
      this.deadlineMs = turnMs() + this.#settings.idleMs;
    }
    this.#connectMore();
  };

  #connectMore(): void {
    while (this.#waiting.size > this.#connecting && this.#open < this.#settings.connectionCap) this.#connect();
  }

  #connect(): void {
    this.#open += 1;
    this.#connecting += 1;
    let exchange: Http1Exchange | undefined;
    connectEndpoint(this.#settings, {
      connected: (socket) => {
        this.#connecting -= 1;
        exchange = new Http1Exchange(socket, this.#settings.authority, this);
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
      this.#waiting.shift()?.onUnavailable(failure, detail);
    }
  }
}
