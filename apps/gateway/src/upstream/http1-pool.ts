// Tested by ../../test/pipeline.test.ts
import { connect, type Socket } from "node:net";
import { connect as connectTls, type SecureContext } from "node:tls";
import type { DeadlineSweep, Timed } from "@headworks/sockets";
import { Http1Exchange, type ConnectionOwner } from "./http1-exchange.ts";
import type { EndpointPool, ExchangeWaiter } from "./upstream-exchange.ts";

/** How connections to one endpoint are made and kept. */
export interface PoolSettings {
  readonly address: string;
  readonly port: number;
  /** Host field of requests. */
  readonly authority: string;
  /** Undefined: plain TCP. */
  readonly tls: { readonly context: SecureContext | undefined; readonly serverName: string | undefined } | undefined;
  readonly connectMs: number;
  /** Open connections at most; more requests wait. */
  readonly connectionCap: number;
  /** Waiting requests at most. */
  readonly maxPending: number;
  readonly happyEyeballsMs: number;
  readonly idleMs: number;
  readonly deadlines: DeadlineSweep;
}

/** One buffer for all reads: what outlives a read is copied by whoever keeps it. */
const READ_BYTES = 65_536;
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

/** HTTP/1.1 connections to one endpoint, the last used first, so that surplus ones grow old and close. */
export class Http1Pool implements EndpointPool, ConnectionOwner, Timed {
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly #settings: PoolSettings;
  readonly #idle: { readonly connection: Http1Exchange; readonly sinceMs: number }[] = [];
  readonly #waiting = new Set<ExchangeWaiter>();
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

  acquire(waiter: ExchangeWaiter): (() => void) | undefined {
    const idle = this.#idle.pop();
    if (idle !== undefined) {
      waiter.onExchange(idle.connection);
      return undefined;
    }
    const pending = this.#waiting.size - this.#connecting;
    const isFull = this.#open >= this.#settings.connectionCap;
    if (isFull && pending >= this.#settings.maxPending) {
      waiter.onUnavailable("saturated", `${pending} requests wait already`);
      return undefined;
    }
    this.#waiting.add(waiter);
    if (!isFull) this.#connect();
    return () => {
      this.#waiting.delete(waiter);
    };
  }

  retire(): void {
    this.#isRetired = true;
    this.#settings.deadlines.delete(this);
    for (const { connection } of this.#idle.splice(0)) connection.socket.destroy();
  }

  freed(connection: Http1Exchange): void {
    if (this.#isRetired && this.#waiting.size === 0) return void connection.socket.destroy();
    const [waiter] = this.#waiting;
    if (waiter !== undefined) {
      this.#waiting.delete(waiter);
      // Not from inside the answer that freed it: its last bytes go to their client first.
      queueMicrotask(() => {
        if (connection.isIdle) waiter.onExchange(connection);
        else this.#queueAgain(waiter);
      });
      return;
    }
    const sinceMs = performance.now();
    this.#idle.push({ connection, sinceMs });
    if (this.deadlineMs === Number.POSITIVE_INFINITY) this.deadlineMs = sinceMs + this.#settings.idleMs;
  }

  gone(connection: Http1Exchange): void {
    this.#open -= 1;
    const at = this.#idle.findIndex((idle) => idle.connection === connection);
    if (at !== -1) this.#idle.splice(at, 1);
    if (this.#waiting.size > 0 && this.#open < this.#settings.connectionCap) this.#connect();
  }

  /** Closes what was idle for too long. */
  onDeadline(): void {
    const nowMs = performance.now();
    while (this.#idle[0] !== undefined && this.#idle[0].sinceMs + this.#settings.idleMs <= nowMs) {
      this.#idle.shift()?.connection.socket.destroy();
    }
    const [oldest] = this.#idle;
    if (oldest !== undefined) this.deadlineMs = oldest.sinceMs + this.#settings.idleMs;
  }

  #queueAgain(waiter: ExchangeWaiter): void {
    this.#waiting.add(waiter);
    if (this.#open < this.#settings.connectionCap) this.#connect();
  }

  #connect(): void {
    this.#open += 1;
    this.#connecting += 1;
    const { address, port, tls, connectMs, happyEyeballsMs } = this.#settings;
    let exchange: Http1Exchange | undefined;
    const target = {
      host: address,
      port,
      noDelay: true,
      autoSelectFamily: happyEyeballsMs > 0,
      autoSelectFamilyAttemptTimeout: Math.max(10, happyEyeballsMs),
    };
    let socket: Socket;
    if (tls === undefined) {
      socket = connect({
        ...target,
        onread: {
          buffer: readBuffer,
          callback: (bytes) => {
            exchange?.receive(readBuffer.subarray(0, bytes));
            return true;
          },
        },
      });
    } else {
      const name = tls.serverName ?? (/^[0-9.]+$|:/.test(address) ? undefined : address);
      socket = connectTls({
        ...target,
        ALPNProtocols: ["http/1.1"],
        ...(name === undefined ? {} : { servername: name }),
        ...(tls.context === undefined ? {} : { secureContext: tls.context }),
      });
      socket.on("data", (chunk: Buffer) => exchange?.receive(chunk));
      socket.pause();
    }
    const failed = (failure: "connect" | "connect-timeout", detail: string): void => {
      clearTimeout(timer);
      socket.off("error", onError);
      socket.on("error", ignoreError);
      socket.destroy();
      this.#open -= 1;
      this.#connecting -= 1;
      this.#failWaiter(failure, detail);
    };
    const onError = (error: Error): void => failed("connect", error.message);
    const timer = setTimeout(() => failed("connect-timeout", `no connection within ${connectMs} ms`), connectMs);
    socket.once("error", onError);
    socket.once(tls === undefined ? "connect" : "secureConnect", () => {
      clearTimeout(timer);
      this.#connecting -= 1;
      socket.off("error", onError);
      exchange = new Http1Exchange(socket, this.#settings.authority, this);
      socket.resume();
      this.freed(exchange);
    });
  }

  /** The oldest waiting request learns that there is no way; others have connections of their own on the way. */
  #failWaiter(failure: "connect" | "connect-timeout", detail: string): void {
    const [waiter] = this.#waiting;
    if (waiter === undefined) return;
    this.#waiting.delete(waiter);
    waiter.onUnavailable(failure, detail);
  }
}

function ignoreError(): void {
  // The connection was given up already.
}
