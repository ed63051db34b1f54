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
  /** The peer's write that waits until this end is read. */
  #written: (() => void) | undefined;
  #isBroken = false;

  constructor() {
    super({ allowHalfOpen: true });
  }

  /** To be called once, before anything is written. */
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
      // Nobody is there any more, which a network would tell by a reset.
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

  /** Bytes of the peer; `done` is called when there is room for more. */
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
 * How long a connection waits for another request. Short, since an origin that closes its own at the wrong moment would
 * fail a request that must not be sent twice.
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
 * The client that Weir itself is: its requests reach the data path through a connection in memory, so that rules,
 * capture and the settings of upstream connections apply to them as to anybody's. As an observer it learns which
 * exchange became of which request.
 */
export class InternalClient implements Observer {
  readonly name = "replay";
  readonly #services: () => ProxyServices;
  readonly #sendings = new Map<ClientFacts, Sending>();
  readonly #idle: IdleEnd[] = [];
  #isClosed = false;

  /** `services` are asked for when something is sent: they are made of this client too. */
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
    // Not from the network. An object of each connection's own, since exchanges are told by it.
    const facts: ClientFacts = { address: undefined, connection: undefined, sni: undefined, tls: undefined };
    const [near, far] = socketPair();
    // "close" follows and says what there is to say.
    near.on("error", () => undefined);
    const base = { scheme, host, port, serverName: undefined, isHttp2Known };
    new HttpConnection(this.#services(), far, facts, base, undefined).begin(undefined);
    return { near, facts };
  }

  /** A connection that just served another request to the same place, and the one to the origin with it. */
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
    // Nothing is expected: whatever comes ends it.
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

  /** Ends what is under way and sends nothing more. */
  close(): void {
    this.#isClosed = true;
    for (const sending of this.#sendings.values()) sending.abort(STOPPED);
    for (const end of this.#idle.slice()) end.onGone();
  }
}

function placeOf({ scheme, host, port, isHttp2Known = false }: OutgoingRequest): string {
  return `${isHttp2Known ? "h2c" : scheme}://${host}:${port}`;
}

/** What still comes is of no interest; without a reader the end would never be seen. */
function endQuietly(near: ByteSocket): void {
  near.resume();
  near.end();
}

/**
 * Two ends in memory that behave as the two ends of a TCP connection: half-closed ends, backpressure, a break when one
 * is destroyed before it was ended. Bytes never arrive within the call that wrote them.
 */
export function socketPair(): [ByteSocket, ByteSocket] {
  const one = new PairEnd();
  const other = new PairEnd();
  one.join(other);
  other.join(one);
  return [one, other];
}
