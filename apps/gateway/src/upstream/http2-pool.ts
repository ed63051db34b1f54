// Tested by ../../test/http2-upstream.test.ts
import { connect as connectHttp2, type ClientHttp2Session, type Settings } from "node:http2";
import { connect, isIP, type Socket } from "node:net";
import { connect as connectTls, TLSSocket } from "node:tls";
import { NOWHERE, Queue, type Timed } from "@headworks/sockets";
import { targetOf } from "./endpoint-connection.ts";
import { Http2Exchange, type ExchangeOwner } from "./http2-exchange.ts";
import type { PoolSettings } from "./http1-pool.ts";
import type { CancelWait, EndpointPool, ExchangeWaiter } from "./upstream-exchange.ts";

/** Requests on one connection at most, whatever the endpoint allows: a lost packet holds all of them up. */
const MOST_STREAMS = 256;
/** How many the endpoint allows until it said so (RFC 9113, 6.5.2 asks for no fewer). */
const FIRST_STREAMS = 100;
/** Requests that one connection carries; their numbers end at 2^30 (RFC 9113, 5.1.1), which a busy one reaches in days. */
const MOST_REQUESTS = 2 ** 29;
const STREAM_WINDOW_BYTES = 1_048_576;
const CONNECTION_WINDOW_BYTES = 4_194_304;
/** An endpoint that does not answer a ping in this time is not there any more. */
const PING_MS = 5000;
const MOST_ANSWER_FIELDS = 260;
/** Enough for all its streams to wait with a piece each; what is above is refused. */
const SESSION_MB = 64;

/** One HTTP/2 connection to an endpoint. */
class Http2Link implements ExchangeOwner {
  readonly session: ClientHttp2Session;
  readonly scheme: "http" | "https";
  readonly authority: string;
  streams = 0;
  idleSinceMs = performance.now();
  hasAnswered = false;
  /** Takes no new requests: the endpoint said GOAWAY, or we want it gone. */
  isClosing = false;
  readonly #freed: (link: Http2Link) => void;
  readonly #mostRequests: number;
  #requests = 0;
  #isPinging = false;

  constructor(
    session: ClientHttp2Session,
    scheme: "http" | "https",
    authority: string,
    freed: (link: Http2Link) => void,
    mostRequests: number,
  ) {
    this.session = session;
    this.scheme = scheme;
    this.authority = authority;
    this.#freed = freed;
    this.#mostRequests = mostRequests;
  }

  get hasRoom(): boolean {
    const { session } = this;
    if (this.isClosing || session.closed || session.destroyed) return false;
    // Typed as always there; it is not before the endpoint's settings came.
    const settings: Settings | undefined = session.remoteSettings;
    return this.streams < Math.min(settings?.maxConcurrentStreams ?? FIRST_STREAMS, MOST_STREAMS);
  }

  open(): Http2Exchange {
    this.streams += 1;
    this.#requests += 1;
    if (this.#requests >= this.#mostRequests) this.isClosing = true;
    return new Http2Exchange(this);
  }

  ended(head: boolean): void {
    this.streams -= 1;
    if (head) this.hasAnswered = true;
    if (this.streams === 0) this.idleSinceMs = performance.now();
    if (this.#requests >= this.#mostRequests && this.streams === 0) this.close();
    this.#freed(this);
  }

  doubted(): void {
    if (this.#isPinging || this.session.destroyed) return;
    this.#isPinging = true;
    const timer = setTimeout(() => this.session.destroy(), PING_MS);
    timer.unref();
    // Called with an error where none can be sent.
    this.session.ping(() => {
      clearTimeout(timer);
      this.#isPinging = false;
    });
  }

  /** Ends with its last request. */
  close(): void {
    this.isClosing = true;
    if (!this.session.closed) this.session.close();
  }
}

/** HTTP/2 connections to one endpoint: as few as carry the requests, each with as many as the endpoint allows. */
export class Http2Pool implements EndpointPool, Timed {
  rosterPlace = NOWHERE;
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly #settings: PoolSettings;
  readonly #mostRequests: number;
  readonly #links: Http2Link[] = [];
  readonly #waiting = new Queue<ExchangeWaiter>();
  #isConnecting = false;
  #isRetired = false;

  constructor(settings: PoolSettings, mostRequests = MOST_REQUESTS) {
    this.#settings = settings;
    this.#mostRequests = mostRequests;
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
    const { connectionCap, maxPending } = this.#settings;
    const isFull = this.#links.length >= connectionCap;
    if (isFull && this.#waiting.size >= maxPending) {
      waiter.onUnavailable("saturated", `${this.#waiting.size} requests wait already`);
      return undefined;
    }
    const place = this.#waiting.push(waiter);
    if (!isFull) this.#connect();
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

  /** Closes what was idle for too long. */
  onDeadline(): void {
    const nowMs = performance.now();
    const { idleMs } = this.#settings;
    for (const link of this.#links) {
      if (link.streams === 0 && link.idleSinceMs + idleMs <= nowMs) link.close();
    }
    if (this.#links.length > 0) this.deadlineMs = nowMs + idleMs / 2;
  }

  readonly #freed = (link: Http2Link): void => {
    if (this.#waiting.size > 0 && link.hasRoom) queueMicrotask(() => this.#serve());
    if (link.streams === 0 && this.#isRetired && this.#waiting.size === 0) link.close();
  };

  /** Gives whoever waits what room there is, and opens another connection for the rest. */
  #serve(): void {
    while (this.#waiting.size > 0) {
      const link = this.#links.find(({ hasRoom }) => hasRoom);
      if (link === undefined) break;
      this.#waiting.shift()?.onExchange(link.open());
    }
    if (this.#waiting.size > 0 && this.#links.length < this.#settings.connectionCap) this.#connect();
  }

  #connect(): void {
    if (this.#isConnecting) return;
    this.#isConnecting = true;
    const { connectMs } = this.#settings;
    const socket = this.#dial();
    const failed = (failure: "connect" | "connect-timeout", detail: string): void => {
      clearTimeout(timer);
      socket.off("error", onError);
      socket.on("error", ignoreError);
      socket.destroy();
      this.#isConnecting = false;
      // All of them waited for this one; who comes because of that waits for another.
      const waiting = this.#waiting.shiftAll();
      for (const waiter of waiting) waiter.onUnavailable(failure, detail);
    };
    const onError = (error: Error): void => failed("connect", error.message);
    const timer = setTimeout(() => failed("connect-timeout", `no connection within ${connectMs} ms`), connectMs);
    socket.once("error", onError);
    socket.once(this.#settings.tls === undefined ? "connect" : "secureConnect", () => {
      if (socket instanceof TLSSocket && socket.alpnProtocol !== "h2") {
        return failed("connect", "the endpoint does not speak HTTP/2");
      }
      clearTimeout(timer);
      socket.off("error", onError);
      this.#isConnecting = false;
      this.#begin(socket);
    });
  }

  #dial(): Socket {
    const { address, tls } = this.#settings;
    const target = targetOf(this.#settings);
    if (tls === undefined) return connect(target);
    const name = tls.serverName ?? (isIP(address) === 0 ? address : undefined);
    return connectTls({
      ...target,
      ALPNProtocols: ["h2"],
      ...(name === undefined ? {} : { servername: name }),
      ...(tls.context === undefined ? {} : { secureContext: tls.context }),
    });
  }

  #begin(socket: Socket): void {
    const { authority, tls, idleMs } = this.#settings;
    const scheme = tls === undefined ? "http" : "https";
    // Not written in the call, since one option is missing in node's types.
    const options = {
      createConnection: () => socket,
      maxHeaderListPairs: MOST_ANSWER_FIELDS,
      maxSessionMemory: SESSION_MB,
      // What clients say twice is passed on twice; the stricter way throws.
      strictSingleValueFields: false,
      peerMaxConcurrentStreams: FIRST_STREAMS,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES, maxHeaderListSize: 65_536 },
    };
    const session = connectHttp2(`${scheme}://${authority}`, options);
    session.once("connect", () => session.setLocalWindowSize(CONNECTION_WINDOW_BYTES));
    const link = new Http2Link(session, scheme, authority, this.#freed, this.#mostRequests);
    this.#links.push(link);
    session.on("error", ignoreError);
    session.on("goaway", () => {
      link.isClosing = true;
      this.#serve();
    });
    session.on("remoteSettings", () => this.#serve());
    session.once("close", () => {
      const at = this.#links.indexOf(link);
      if (at !== -1) this.#links.splice(at, 1);
      this.#serve();
    });
    if (this.deadlineMs === Number.POSITIVE_INFINITY) this.deadlineMs = performance.now() + idleMs;
    if (this.#isRetired && this.#waiting.size === 0) return link.close();
    this.#serve();
  }
}

function ignoreError(): void {
  // The session's "close" follows.
}
