import { Duplex } from "node:stream";
import type { ByteSocket } from "@headworks/sockets";
import type { ClientFacts, ExchangeView } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { OutgoingRequest, SendExchange } from "#exchange/outgoing.ts";
import type { Observer } from "#exchange/phases.ts";
import { HttpConnection } from "./http-connection.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { Sending, writtenHead } from "./sending.ts";

class PairEnd extends Duplex implements ByteSocket {
  #peer: PairEnd | undefined;
  /** Completes the peer's pending write once this end is read. */
  #written: (() => void) | undefined;
  #isBroken = false;

  constructor() {
    super({ allowHalfOpen: true });
  }

  /** Called once, before anything is written. */
  join(peer: PairEnd): void {
    this.#peer = peer;
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once("finish", () => this.destroy());
  }

  resetAndDestroy(): void {
    this.#isBroken = true;
    this.destroy();
  }

  override _read(): void {
    const written = this.#written;
    this.#written = undefined;
    written?.();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    setImmediate(() => {
      if (this.#peer?.destroyed === false) return this.#peer.deliver(chunk, done);
      done();
      // The peer is gone; a network would send a reset.
      this.destroy();
    });
  }

  override _final(done: () => void): void {
    setImmediate(() => {
      if (this.#peer?.destroyed === false) this.#peer.push(null);
      done();
    });
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    const isWhole = this.writableFinished && !this.#isBroken;
    this._read();
    if (!isWhole) setImmediate(() => this.#peer?.destroy());
    done(error);
  }

  /** Bytes from the peer; `done` is called when there is room for more. */
  deliver(chunk: Buffer, done: () => void): void {
    if (this.push(chunk)) done();
    else this.#written = done;
  }
}

const STOPPED: Failure = {
  stage: "policy",
  side: "internal",
  code: "SHUTDOWN",
  message: "The proxy was stopped before the exchange was complete",
};

/**
 * Idle time of a connection. Short: an origin that closes at the wrong moment would fail a request that must not be
 * resent.
 */
const IDLE_MS = 1000;
const MAX_IDLE = 128;

interface Connected {
  readonly near: ByteSocket;
  readonly facts: ClientFacts;
}

interface IdleEnd extends Connected {
  readonly place: string;
  readonly timer: NodeJS.Timeout;
  readonly onGone: () => void;
}

/**
 * Weir's own HTTP client. Its requests enter the data path through an in-memory connection, so that rules, capture and
 * upstream settings apply. As an observer it matches exchanges to its requests.
 */
export class InternalClient implements Observer {
  readonly name = "replay";
  readonly #services: () => ProxyServices;
  readonly #sendings = new Map<ClientFacts, Sending>();
  readonly #idle: IdleEnd[] = [];
  #isClosed = false;

  /** `services` is read per request, since it in turn contains this client. */
  constructor(services: () => ProxyServices) {
    this.#services = services;
  }

  readonly send: SendExchange = (request, options = {}) => {
    const head = writtenHead(request);
    if (this.#isClosed) return Promise.resolve({ kind: "failed", failure: STOPPED, exchange: undefined });
    return new Promise((resolve) => {
      const { near, facts } = this.#takeIdle(request) ?? this.#connect(request);
      const sending = new Sending(near, request, options, (outcome, isReusable) => {
        this.#sendings.delete(facts);
        if (isReusable && !this.#isClosed) this.#keepIdle({ near, facts, place: placeOf(request) });
        else endQuietly(near);
        resolve(outcome);
      });
      this.#sendings.set(facts, sending);
      sending.write(head);
    });
  };

  #connect({ scheme, host, port, isHttp2Known }: OutgoingRequest): Connected {
    // One object per connection: exchanges are matched by identity.
    const facts: ClientFacts = { address: undefined, connection: undefined, sni: undefined, tls: undefined };
    const [near, far] = socketPair();
    // "close" follows and settles the request.
    near.on("error", () => undefined);
    const base = { scheme, host, port, serverName: undefined, isHttp2Known };
    new HttpConnection(this.#services(), far, facts, base, undefined).begin(undefined);
    return { near, facts };
  }

  /** A connection that just served a request to the same host, with its origin connection. */
  #takeIdle(request: OutgoingRequest): Connected | undefined {
    const place = placeOf(request);
    const at = this.#idle.findLastIndex((end) => end.place === place && end.near.writable);
    const [end] = at === -1 ? [] : this.#idle.splice(at, 1);
    if (end === undefined) return undefined;
    clearTimeout(end.timer);
    end.near.off("data", end.onGone).off("end", end.onGone).off("close", end.onGone);
    return end;
  }

  #keepIdle(connected: Connected & { readonly place: string }): void {
    const { near } = connected;
    const onGone = (): void => {
      clearTimeout(end.timer);
      const at = this.#idle.indexOf(end);
      if (at !== -1) this.#idle.splice(at, 1);
      endQuietly(near);
    };
    const end: IdleEnd = { ...connected, onGone, timer: setTimeout(onGone, IDLE_MS).unref() };
    // Any byte or event on an idle connection closes it.
    near.on("data", onGone).on("end", onGone).on("close", onGone);
    this.#idle.push(end);
    if (this.#idle.length > MAX_IDLE) this.#idle[0]?.onGone();
  }

  onStarted(exchange: ExchangeView): void {
    this.#sendings.get(exchange.client)?.started();
  }

  onFinished(exchange: ExchangeView): void {
    this.#sendings.get(exchange.client)?.finished(exchange);
  }

  /** Aborts requests in flight and refuses new ones. */
  close(): void {
    this.#isClosed = true;
    for (const sending of this.#sendings.values()) sending.abort(STOPPED);
    for (const end of this.#idle.slice()) end.onGone();
  }
}

function placeOf({ scheme, host, port, isHttp2Known = false }: OutgoingRequest): string {
  return `${isHttp2Known ? "h2c" : scheme}://${host}:${port}`;
}

/** Without a reader the end would never be seen. */
function endQuietly(near: ByteSocket): void {
  near.resume();
  near.end();
}

/**
 * Two in-memory ends that behave like a TCP connection: half-close, backpressure, reset when one is destroyed before
 * it was ended. Bytes never arrive within the call that wrote them.
 */
export function socketPair(): [ByteSocket, ByteSocket] {
  const one = new PairEnd();
  const other = new PairEnd();
  one.join(other);
  other.join(one);
  return [one, other];
}
