import { type ByteSocket, cutConnection, NOT_IN_SET, type Timed, trackExternalMemory } from "@headworks/sockets";
import type { BandwidthLimiter, ThrottledPace, ThrottledStream } from "#exchange/bandwidth-limiter.ts";
import type { BodyCapture } from "#exchange/body.ts";
import type { Failure } from "#exchange/failure.ts";
import type { ProxyServices } from "./proxy-services.ts";

/** Output of one direction of a tapped relay. */
export interface TapOutlet {
  send(bytes: Buffer): void;
  /** Buffered messages were sent: reading may resume. */
  release(): void;
}

/** One direction of a relay whose bytes are inspected and may be delayed or changed. */
export interface DirectionTap {
  push(piece: Buffer): void;
  /** The buffer is full: reading must pause. */
  readonly isHolding: boolean;
  /** The sender closed its side; `done` is called when everything buffered was sent. */
  end(done: () => void): void;
}

export interface MessageTap {
  readonly up: DirectionTap;
  readonly down: DirectionTap;
  /** A rule's decision is pending; timeouts are suspended. */
  readonly isDeciding: boolean;
  closed(failure: Failure | undefined): void;
}

/** Creates the tap of a relay. `end` closes the relay gracefully. */
export type OpenTap = (up: TapOutlet, down: TapOutlet, end: () => void) => MessageTap | undefined;

interface RelayOptions {
  readonly client: ByteSocket;
  readonly upstream: ByteSocket;
  /** Bytes read from each side before the relay began. */
  readonly fromClient: Buffer | undefined;
  readonly fromUpstream: Buffer | undefined;
  /** Counts the bytes and limits their rate. */
  readonly counts: {
    readonly requestBody: BodyCapture;
    readonly responseBody: BodyCapture;
    readonly pace: ThrottledPace | undefined;
    /** Inspects messages, and may hold or change them. */
    readonly openTap?: OpenTap | undefined;
  };
  readonly services: ProxyServices;
  /** Called once, when both directions are done or one side failed. */
  readonly onEnd: (failure: Failure | undefined) => void;
}

/** How long to wait for the origin's end after the client was reset. */
const CLOSE_DELAY_MS = 250;

interface Direction {
  readonly from: ByteSocket;
  readonly to: ByteSocket;
  readonly limiter: BandwidthLimiter | undefined;
}

/** The processing of one direction's bytes. */
interface DirectionPath {
  readonly outlet: Outlet;
  readonly tap: DirectionTap | undefined;
  readonly count: BodyCapture;
  readonly first: Buffer | undefined;
}

/** The output of one direction. */
interface Outlet {
  send(piece: Buffer): void;
  /** Calls `next` once the limiter's queue is empty. */
  whenEmpty(next: () => void): void;
  /** Neither the limiter nor the receiver applies backpressure. */
  hasRoom(): boolean;
}

/** Relays bytes both ways, changed only by a tap, with backpressure, limits and half-closes. */
export function relay(options: RelayOptions): { readonly abort: (failure: Failure) => void } {
  const tunnel = new Relay(options);
  return { abort: (failure) => tunnel.end(failure) };
}

class Relay implements Timed {
  setIndex = NOT_IN_SET;
  deadlineMs = Number.POSITIVE_INFINITY;
  readonly #options: RelayOptions;
  #openDirections = 2;
  #isFinished = false;
  /** Set when the client was reset, until the origin shows whether that was due to its closing bytes. */
  #clientFailure: Failure | undefined;
  readonly #streams: ThrottledStream[] = [];
  readonly #tap: MessageTap | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    const { client, upstream, fromClient, fromUpstream, counts, services } = options;
    services.gauges.activeTunnels += 1;
    services.gauges.tunnelsTotal += 1;
    services.deadlines.add(this);
    this.#touch();
    const up = { from: client, to: upstream, limiter: counts.pace?.up };
    const down = { from: upstream, to: client, limiter: counts.pace?.down };
    const upOutlet = this.#outlet(up);
    const downOutlet = this.#outlet(down);
    this.#tap = counts.openTap?.(
      { send: (bytes) => upOutlet.send(bytes), release: () => this.#release(up, upOutlet) },
      { send: (bytes) => downOutlet.send(bytes), release: () => this.#release(down, downOutlet) },
      () => this.end(undefined),
    );
    // Opening a tap may replace the bodies, so they are read after it.
    this.#relayDirection(up, { outlet: upOutlet, tap: this.#tap?.up, count: counts.requestBody, first: fromClient });
    this.#relayDirection(down, {
      outlet: downOutlet,
      tap: this.#tap?.down,
      count: counts.responseBody,
      first: fromUpstream,
    });
    client.on("error", (error: NodeJS.ErrnoException) => this.#clientBroke(error));
    upstream.on("error", (error: NodeJS.ErrnoException) =>
      this.end(this.#clientFailure ?? originBroke(upstream, error)),
    );
    client.resume();
    upstream.resume();
  }

  onDeadline(): void {
    if (this.#clientFailure !== undefined) return this.end(this.#clientFailure);
    if (this.#tap?.isDeciding === true) return this.#touch();
    const message = `No byte moved for ${this.#options.services.policy().idleTimeoutMs} ms`;
    this.end({ stage: "receive", side: "upstream", code: "UPSTREAM_TIMEOUT", message });
  }

  end(failure: Failure | undefined): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    const { client, upstream, services, counts, onEnd } = this.#options;
    services.deadlines.delete(this);
    services.gauges.activeTunnels -= 1;
    for (const stream of this.#streams) stream.close();
    finishOrDestroy(client, failure);
    finishOrDestroy(upstream, failure);
    counts.requestBody.end();
    counts.responseBody.end();
    this.#tap?.closed(failure);
    onEnd(failure);
  }

  #outlet({ from, to, limiter }: Direction): Outlet {
    const waiting: (() => void)[] = [];
    const stream = limiter?.open({
      take: (piece) => to.write(piece),
      moved: () => {
        this.#touch();
        if (stream?.isLow === true) from.resume();
        if (stream?.isEmpty === true) for (const next of waiting.splice(0)) next();
      },
    });
    if (stream !== undefined) this.#streams.push(stream);
    to.on("drain", () => {
      stream?.resume();
      if (stream === undefined || stream.isLow) from.resume();
    });
    return {
      send: (piece) => {
        if (limiter !== undefined && stream !== undefined && (limiter.isLimited || !stream.isEmpty)) {
          stream.add(piece);
          if (!stream.isLow) from.pause();
          return;
        }
        limiter?.charge(piece.length);
        if (!to.write(piece)) from.pause();
      },
      whenEmpty: (next) => {
        if (stream === undefined || stream.isEmpty) next();
        else waiting.push(next);
      },
      hasRoom() {
        return (stream === undefined || stream.isLow) && !to.writableNeedDrain;
      },
    };
  }

  #relayDirection({ from, to }: Direction, { outlet, tap, count, first }: DirectionPath): void {
    const pass = (piece: Buffer): void => {
      if (this.#clientFailure !== undefined) return this.end(this.#clientFailure);
      this.#touch();
      trackExternalMemory(piece.length);
      count.add(piece);
      if (tap === undefined) return outlet.send(piece);
      tap.push(piece);
      if (tap.isHolding) from.pause();
    };
    const whenEmpty = (next: () => void): void => {
      if (tap === undefined) outlet.whenEmpty(next);
      else tap.end(() => outlet.whenEmpty(next));
    };
    let isEnding = false;
    if (first) pass(first);
    from.on("data", pass);
    from.on("end", () => {
      isEnding = true;
      if (this.#clientFailure !== undefined) return this.end(undefined);
      whenEmpty(() => {
        to.end();
        this.#openDirections -= 1;
        if (this.#openDirections === 0) this.end(undefined);
      });
    });
    from.on("close", () => {
      if (this.#clientFailure !== undefined && from === this.#options.client) return;
      // Buffered bytes of a sender that closed in order are still delivered.
      if (!isEnding || tap === undefined) outlet.whenEmpty(() => this.end(undefined));
    });
  }

  /**
   * A program that closes its connection and then receives the peer's last bytes, such as a TLS close alert, triggers
   * a reset by its system. This is a normal close if the client had ended its sending side, or if nothing but the
   * origin's end follows the bytes that caused the reset.
   */
  #clientBroke(cause: NodeJS.ErrnoException): void {
    const { client, upstream } = this.#options;
    if (isClosed(client, cause) || isClosed(upstream, cause)) return this.end(undefined);
    const message = "The client reset the tunnel";
    const failure: Failure = { stage: "client-write", side: "client", code: "CLIENT_ABORTED", message, cause };
    if (!CLOSED_CODES.includes(cause.code)) return this.end(failure);
    this.#clientFailure = failure;
    this.deadlineMs = performance.now() + CLOSE_DELAY_MS;
  }

  #release({ from }: Direction, outlet: Outlet): void {
    this.#touch();
    if (outlet.hasRoom()) from.resume();
  }

  #touch(): void {
    this.deadlineMs = performance.now() + this.#options.services.policy().idleTimeoutMs;
  }
}

/** Without a failure, buffered bytes are still sent; with one, the other side is cut at once. */
function finishOrDestroy(socket: ByteSocket, failure: Failure | undefined): void {
  if (failure) cutConnection(socket);
  else if (!socket.destroyed) socket.destroySoon();
}

/** Error codes of writes to a connection that the peer has closed (RFC 9293, 3.10.7.1). */
const CLOSED_CODES: readonly (string | undefined)[] = ["ECONNRESET", "EPIPE"];

function originBroke(upstream: ByteSocket, cause: NodeJS.ErrnoException): Failure | undefined {
  if (isClosed(upstream, cause)) return undefined;
  const message = `The origin reset the tunnel (${cause.code ?? cause.message})`;
  return { stage: "receive", side: "upstream", code: "UPSTREAM_RESET", message, cause };
}

function isClosed(ended: ByteSocket, { code }: NodeJS.ErrnoException): boolean {
  return ended.readableEnded && CLOSED_CODES.includes(code);
}
