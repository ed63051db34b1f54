import { hostPortText } from "@headworks/host-patterns";
import { ownText } from "@headworks/http1";
import { Http2Session, NO_ERROR, sectionLimits } from "@headworks/http2";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { ConnectionHistory } from "./connection-history.ts";
import { ownDestination } from "./destination.ts";
import type { Destination, Dialled } from "./destination.ts";
import { OriginStream } from "./origin-stream.ts";
import type { StreamOwner } from "./origin-stream.ts";
import type { HeadLimits, Origin } from "./origin.ts";

/** Upper limit, even if the origin allows more. */
const MAX_CONCURRENT_STREAMS = 256;
/** Until SETTINGS arrive, further requests could exceed the origin's limit (RFC 9113, 5.1.2). */
const STREAMS_BEFORE_SETTINGS = 1;
/** An origin that does not acknowledge a PING in this time counts as gone. */
const PING_MS = 5000;

export interface SessionEvents {
  /** The session can no longer be used. */
  gone(session: OriginSession): void;
  /** The origin accepts no new requests on this session. */
  closing(session: OriginSession): void;
  /** The origin requires HTTP/1.1. */
  http1Required(session: OriginSession): void;
}

interface SessionParts {
  readonly events: SessionEvents;
  readonly limits: HeadLimits;
  /** Timeout for the origin's SETTINGS. */
  readonly settingsMs: number;
}

/**
 * One HTTP/2 connection to an origin, with concurrent exchanges of one client connection; its history decides whether
 * another may inherit it.
 */
export class OriginSession implements StreamOwner {
  readonly session: Http2Session;
  readonly scheme: "http" | "https";
  readonly history: ConnectionHistory | undefined;
  readonly address: string;
  readonly tls: UpstreamTlsFacts | undefined;
  hasAnswered = false;
  goawayCode: number | undefined;
  #destination: Destination;
  #place: string;
  #events: SessionEvents;
  #streams = 0;
  #isClosing = false;
  #isPinging = false;
  #whenSettled: (() => void) | undefined;
  readonly #settingsTimer: NodeJS.Timeout;

  constructor(
    destination: Destination,
    dialled: Dialled,
    history: ConnectionHistory | undefined,
    { events, limits, settingsMs }: SessionParts,
  ) {
    const { host, port, secure } = destination;
    this.#destination = destination;
    this.history = history;
    this.#events = events;
    this.scheme = secure ? "https" : "http";
    this.#place = hostPortText(host, port);
    this.address = dialled.address;
    this.tls = dialled.tls;
    this.session = new Http2Session(
      dialled.socket,
      { role: "client", section: sectionLimits(limits) },
      {
        onSettings: () => this.#settled(),
        onGoaway: (code) => {
          if (code !== NO_ERROR) this.goawayCode = code;
          this.#events.closing(this);
        },
        onClose: () => {
          this.#events.gone(this);
          this.#settled();
        },
      },
    );
    this.#settingsTimer = setTimeout(() => this.session.destroy(), settingsMs).unref();
  }

  get destination(): Destination {
    return this.#destination;
  }

  get place(): string {
    return this.#place;
  }

  get isIdle(): boolean {
    return this.#streams === 0;
  }

  /** No exchange is in progress, and the origin is alive and accepts more. */
  get mayRest(): boolean {
    return this.isIdle && this.hasSettings && this.hasRoom && !this.#isPinging;
  }

  /** Becomes idle and releases references to its last client's requests. */
  rest(onGone: () => void): void {
    this.#destination = ownDestination(this.#destination);
    this.#place = ownText(this.#place);
    this.#events = { gone: onGone, closing: () => this.destroy(), http1Required: () => undefined };
  }

  /** Assigns the session to another client connection. */
  serve(events: SessionEvents): void {
    this.#events = events;
  }

  /** SETTINGS were received, which proves that the origin speaks HTTP/2. */
  get hasSettings(): boolean {
    return this.session.hasSettings;
  }

  /** Whether the origin supports WebSockets on streams (RFC 8441, 3). */
  get acceptsWebSockets(): boolean {
    return this.session.peer.acceptsWebSockets;
  }

  /** Whether another request may be sent now. */
  get hasRoom(): boolean {
    const { acceptsStreams, hasSettings, peer } = this.session;
    if (this.#isClosing || !acceptsStreams) return false;
    return (
      this.#streams <
      (hasSettings ? Math.min(peer.maxConcurrentStreams, MAX_CONCURRENT_STREAMS) : STREAMS_BEFORE_SETTINGS)
    );
  }

  /** Calls back once SETTINGS were received or the session ended without them. */
  whenSettled(callback: () => void): void {
    if (this.session.hasSettings || this.session.isFinished) callback();
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
    if (this.#isPinging || this.session.isFinished) return;
    this.#isPinging = true;
    const timer = setTimeout(() => this.session.destroy(), PING_MS).unref();
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
    clearTimeout(this.#settingsTimer);
    const callback = this.#whenSettled;
    this.#whenSettled = undefined;
    callback?.();
  }
}
