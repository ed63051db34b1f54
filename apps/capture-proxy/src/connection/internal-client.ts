import { Duplex } from "node:stream";
import { hostPortText } from "@headworks/host-patterns";
import {
  CHUNK_END,
  CHUNKED,
  chunkPrefix,
  type Framing,
  hasBody,
  hasField,
  LAST_CHUNK,
  lengthFraming,
  NO_BODY,
  requestHeadText,
  type ResponseHead,
  ResponseReader,
  setFraming,
} from "@headworks/http1";
import { SharedBytes, type ByteSocket } from "@headworks/sockets";
import { type ClientFacts, type ExchangeView, stageTimings } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { OutgoingRequest, SendExchange, SendOptions, SendOutcome, SentExchange } from "#exchange/outgoing.ts";
import type { Observer } from "#exchange/phases.ts";
import { HttpConnection } from "./http-connection.ts";
import type { ProxyServices } from "./proxy-services.ts";

const PIECE_BYTES = 65_536;
/** Methods whose requests state Content-Length even when it is zero (RFC 9110, 8.6). */
const ANNOUNCING = new Set(["POST", "PUT", "PATCH"]);

/** A serialized request head and the framing of its body. */
interface WrittenHead {
  readonly text: string;
  readonly framing: Framing;
}

/** Serializes a request head. Throws Http1Error for a part that would break the syntax. */
function writtenHead({ method, path, host, port, scheme, fields, body }: OutgoingRequest): WrittenHead {
  const framing = framingOf(method, body, hasField(fields, "transfer-encoding"));
  const framed = fields.slice();
  if (framing === NO_BODY) setFraming(framed, { kind: "until-close" });
  else setFraming(framed, framing);
  if (!hasField(framed, "host")) framed.unshift("Host", hostPortText(host, port, scheme === "https" ? 443 : 80));
  return { text: requestHeadText(method, path, framed), framing };
}

function framingOf(method: string, body: Uint8Array | undefined, isChunked: boolean): Framing {
  if (isChunked && body !== undefined) return CHUNKED;
  if (body !== undefined && body.length > 0) return lengthFraming(body.length);
  return ANNOUNCING.has(method) ? lengthFraming(0) : NO_BODY;
}

/** One request sent by Weir over an in-memory connection, until its exchange ends. */
class Sending {
  readonly #socket: ByteSocket;
  readonly #request: OutgoingRequest;
  readonly #options: SendOptions;
  readonly #settle: (outcome: SendOutcome, isReusable: boolean) => void;
  readonly #reader: ResponseReader;
  #head: ResponseHead | undefined;
  #isExchange = false;
  #isReadToEnd = false;
  #isWritten = false;
  #isClosed = false;
  #exchange: SentExchange | undefined;
  #failure: Failure | undefined;
  #isSettled = false;

  constructor(
    socket: ByteSocket,
    request: OutgoingRequest,
    options: SendOptions,
    settle: (outcome: SendOutcome, isReusable: boolean) => void,
  ) {
    this.#socket = socket;
    this.#request = request;
    this.#options = options;
    this.#settle = settle;
    this.#reader = new ResponseReader(
      {
        onInformational: () => undefined,
        onHead: (head) => {
          this.#head = head;
        },
        onData: (piece) => options.onBody?.(SharedBytes.copy(piece)),
        onTrailers: () => undefined,
        onEnd: () => {
          this.#isReadToEnd = true;
          this.#settleWhenDone();
        },
        onError: () => this.#socket.destroy(),
      },
      { lenient: true },
    );
    this.#reader.expect(request.method);
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("close", this.#onClose);
    if (options.signal?.aborted === true) this.abort(CANCELLED);
    else options.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** Writes the request; the body obeys backpressure. */
  write({ text, framing }: WrittenHead): void {
    this.#socket.write(text, "latin1");
    if (framing.kind === "chunked" || hasBody(framing)) this.#writeBody(framing.kind === "chunked", 0);
    else this.#isWritten = true;
  }

  #writeBody(isChunked: boolean, from: number): void {
    const body = this.#request.body ?? new Uint8Array(0);
    let at = from;
    while (at < body.length && this.#socket.writable) {
      const piece = body.subarray(at, at + PIECE_BYTES);
      if (isChunked) this.#socket.write(chunkPrefix(piece.length), "latin1");
      const hasRoom = this.#socket.write(piece);
      if (isChunked) this.#socket.write(CHUNK_END, "latin1");
      at += piece.length;
      if (!hasRoom && at < body.length) {
        this.#socket.once("drain", () => this.#writeBody(isChunked, at));
        return;
      }
    }
    if (isChunked && this.#socket.writable) this.#socket.write(LAST_CHUNK, "latin1");
    this.#isWritten = at === body.length;
  }

  started(): void {
    this.#isExchange = true;
  }

  /** The exchange ended; only its facts are kept. */
  finished(exchange: ExchangeView): void {
    const { state } = exchange;
    this.#exchange = factsOf(exchange);
    if (state.step === "failed") this.#failure ??= state.failure;
    this.#settleWhenDone();
  }

  abort(failure: Failure): void {
    this.#failure ??= failure;
    this.#socket.destroy();
  }

  readonly #onAbort = (): void => this.abort(CANCELLED);

  readonly #onData = (chunk: Buffer): void => void this.#reader.read(chunk);
  readonly #onEnd = (): void => this.#reader.end();
  readonly #onClose = (): void => {
    this.#isClosed = true;
    this.#settleWhenDone();
  };

  /** The end of the response and the end of the exchange arrive in either order. */
  #settleWhenDone(): void {
    const isRead = this.#isReadToEnd || this.#isClosed;
    if (this.#isSettled || !isRead || (this.#isExchange && this.#exchange === undefined)) return;
    this.#isSettled = true;
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#socket.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    const outcome = this.#outcome();
    const isReusable = outcome.kind === "responded" && this.#isWritten && this.#head?.keepAlive === true;
    this.#settle(outcome, isReusable && !this.#socket.destroyed);
  }

  #outcome(): SendOutcome {
    const exchange = this.#exchange;
    if (this.#failure !== undefined) return { kind: "failed", failure: this.#failure, exchange };
    const response = exchange?.response;
    if (exchange !== undefined && response !== undefined && this.#isReadToEnd) {
      return { kind: "responded", exchange: { ...exchange, response } };
    }
    return { kind: "failed", failure: this.#unexplained(), exchange };
  }

  #unexplained(): Failure {
    const status = this.#head?.status;
    const message =
      status === undefined
        ? "The connection broke before the response was complete"
        : `The request was refused with ${status} before it was sent`;
    return { stage: "client-read", side: "client", code: "CLIENT_PROTOCOL", message };
  }
}

const CANCELLED: Failure = {
  stage: "client-read",
  side: "client",
  code: "CLIENT_ABORTED",
  message: "The request was cancelled",
};

function factsOf(exchange: ExchangeView): SentExchange {
  const { id, isRecorded, startedAtMs, moments, request, response, responseBody, state } = exchange;
  return {
    id,
    isRecorded,
    startedAtMs,
    durationMs: Math.round((moments.ended - moments.started) * 100) / 100,
    timings: stageTimings(moments),
    request,
    response: state.step === "failed" ? undefined : response,
    responseBytes: responseBody.sizeBytes,
  };
}

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

/** Idle time of a connection. Short: a close at the wrong moment fails requests that must not be resent. */
const IDLE_MS = 1000;
const MAX_IDLE = 128;

interface Connected {
  readonly near: ByteSocket;
  readonly facts: ClientFacts;
}

interface IdleEnd extends Connected {
  readonly key: string;
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
        if (isReusable && !this.#isClosed) this.#keepIdle({ near, facts, key: originKey(request) });
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
    const key = originKey(request);
    const at = this.#idle.findLastIndex((end) => end.key === key && end.near.writable);
    const [end] = at === -1 ? [] : this.#idle.splice(at, 1);
    if (end === undefined) return undefined;
    clearTimeout(end.timer);
    end.near.off("data", end.onGone).off("end", end.onGone).off("close", end.onGone);
    return end;
  }

  #keepIdle(connected: Connected & { readonly key: string }): void {
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

function originKey({ scheme, host, port, isHttp2Known = false }: OutgoingRequest): string {
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
