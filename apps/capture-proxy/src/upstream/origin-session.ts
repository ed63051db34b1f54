// Tested by ../../test/http2-resets.test.ts
import { connect as connectHttp2 } from "node:http2";
import type { ClientHttp2Session, Settings } from "node:http2";
import { RESPONSE_LIMITS } from "@headworks/http1";
import { ConnectionWindow } from "@headworks/sockets";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Destination, Dialled } from "./dial.ts";
import { CONNECTION_WINDOW_BYTES, HEADER_LIST_BYTES, SESSION_MB, STREAM_WINDOW_BYTES } from "./http2-limits.ts";
import { OriginStream } from "./origin-stream.ts";
import type { StreamOwner } from "./origin-stream.ts";
import type { Origin } from "./origin.ts";

/** Requests on one connection at most, whatever the origin allows. */
const MOST_STREAMS = 256;
/** How many an origin allows until it said so (RFC 9113, 6.5.2 asks for no fewer). */
const FIRST_STREAMS = 100;
/** An origin that does not answer a ping in this time is not there any more. */
const PING_MS = 5000;
/** Pseudo-fields count too. */
const MOST_FIELDS = RESPONSE_LIMITS.fieldCount + 4;

/** Told by a connection over HTTP/2. */
export interface SessionEvents {
  /** It cannot be used any more. */
  gone(session: OriginSession): void;
  /** The origin takes no new requests on it. */
  closing(session: OriginSession): void;
  /** The origin wants to be asked over HTTP/1.1. */
  http1Required(session: OriginSession): void;
}

/**
 * One HTTP/2 connection to an origin: any number of exchanges at a time, all of one client connection, so nothing of one
 * client can reach another.
 */
export class OriginSession implements StreamOwner {
  readonly destination: Destination;
  readonly session: ClientHttp2Session;
  readonly scheme: "http" | "https";
  readonly place: string;
  readonly address: string;
  readonly tls: UpstreamTlsFacts | undefined;
  hasAnswered = false;
  window: ConnectionWindow | undefined;
  error: NodeJS.ErrnoException | undefined;
  goawayCode: number | undefined;
  readonly #events: SessionEvents;
  #streams = 0;
  #isClosing = false;
  #isPinging = false;
  #hasSettings = false;
  #whenSettled: (() => void) | undefined;

  constructor(destination: Destination, dialled: Dialled, events: SessionEvents) {
    const { host, port, secure } = destination;
    this.destination = destination;
    this.#events = events;
    this.scheme = secure ? "https" : "http";
    this.place = `${host.includes(":") ? `[${host}]` : host}:${port}`;
    this.address = dialled.address;
    this.tls = dialled.tls;
    // Not written in the call, since one option is missing in node's types.
    const options = {
      createConnection: () => dialled.socket,
      maxHeaderListPairs: MOST_FIELDS,
      maxSessionMemory: SESSION_MB,
      // What clients say twice is passed on twice; the stricter way throws.
      strictSingleValueFields: false,
      peerMaxConcurrentStreams: FIRST_STREAMS,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES, maxHeaderListSize: HEADER_LIST_BYTES },
    };
    const session = connectHttp2(`${this.scheme}://${this.place}`, options);
    this.session = session;
    session.once("connect", () => {
      this.window = new ConnectionWindow(session, {
        concurrentStreams: MOST_STREAMS,
        streamWindowBytes: STREAM_WINDOW_BYTES,
        connectionWindowBytes: CONNECTION_WINDOW_BYTES,
      });
    });
    session.on("error", (error: NodeJS.ErrnoException) => {
      this.error ??= error;
    });
    session.once("remoteSettings", () => {
      this.#hasSettings = true;
      this.#settled();
    });
    session.on("goaway", (code: number) => {
      this.#isClosing = true;
      if (code !== 0) this.goawayCode = code;
      events.closing(this);
    });
    session.once("close", () => {
      events.gone(this);
      this.#settled();
    });
  }

  get isIdle(): boolean {
    return this.#streams === 0;
  }

  /** The origin said what it allows: it does speak HTTP/2. */
  get hasSettings(): boolean {
    return this.#hasSettings;
  }

  /** Whether the origin takes WebSockets on streams (RFC 8441, 3). */
  get takesWebSockets(): boolean {
    return this.#hasSettings && this.session.remoteSettings.enableConnectProtocol === true;
  }

  /** Whether another request may be sent on it now. */
  get hasRoom(): boolean {
    const { session } = this;
    if (this.#isClosing || session.closed || session.destroyed) return false;
    // Typed as always there; it is not before the origin's settings came.
    const settings: Settings | undefined = this.#hasSettings ? session.remoteSettings : undefined;
    return this.#streams < Math.min(settings?.maxConcurrentStreams ?? FIRST_STREAMS, MOST_STREAMS);
  }

  /** Calls once the origin's settings came, or the connection ended without them. */
  whenSettled(callback: () => void): void {
    if (this.#hasSettings || this.session.destroyed) callback();
    else this.#whenSettled = callback;
  }

  open(): Origin {
    this.#streams += 1;
    return new OriginStream(this);
  }

  ended(isAnswered: boolean): void {
    this.#streams -= 1;
    if (isAnswered) this.hasAnswered = true;
  }

  doubted(): void {
    if (this.#isPinging || this.session.destroyed) return;
    this.#isPinging = true;
    const timer = setTimeout(() => this.session.destroy(), PING_MS).unref();
    // Called with an error where none can be sent.
    this.session.ping(() => {
      clearTimeout(timer);
      this.#isPinging = false;
    });
  }

  http1Required(): void {
    this.#isClosing = true;
    this.#events.http1Required(this);
  }

  destroy(): void {
    this.session.destroy();
  }

  #settled(): void {
    const callback = this.#whenSettled;
    this.#whenSettled = undefined;
    callback?.();
  }
}
