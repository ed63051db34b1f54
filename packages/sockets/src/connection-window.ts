// Tested by ../../../apps/gateway/test/http2-unread.test.ts and ../../../apps/capture-proxy/test/http2-unread.test.ts
import type { Http2Session } from "node:http2";

/** What may wait unread on a connection over HTTP/2. */
export interface WindowLimits {
  /** Streams at a time. */
  readonly concurrentStreams: number;
  /** Bytes of one stream. */
  readonly streamWindowBytes: number;
  /** Bytes of all streams together; half as much again where they would block each other. */
  readonly connectionWindowBytes: number;
}

/** What a window is lowered by at once: a DATA frame of usual size. */
const LOWER_STEP_BYTES = 16_384;
/** It is raised in steps of such a part of it, so that a client is not told of each piece that was read. */
const RAISE_PARTS = 16;
const LEAST_NARROW_BYTES = 1024;
/** Leaves room to the protocol's limit of 2^31 - 1 for bytes that are told of one by one. */
const WIDEST_BYTES = 1.5 * 2 ** 30;

/**
 * The window of all bodies of a connection together (RFC 9113, 5.2): bytes that nobody has read take from it. Node gives
 * them back to the client as soon as they arrive, which would let each stream fill its own window.
 *
 * Bodies that wait could leave nothing to one that is read, and wait for that one. So when half of the window is taken,
 * the windows of all streams are narrowed; as soon as the client has taken note, the connection's window is widened by
 * what they can still take, and a quarter of it for those that are read.
 */
export class ConnectionWindow {
  readonly #session: Http2Session;
  readonly #limits: WindowLimits;
  readonly #raiseStepBytes: number;
  readonly #narrowBytes: number;
  #unreadBytes = 0;
  /** What the session was told of that. */
  #loweredBytes = 0;
  #allowedBytes: number;
  /** The widest that the session was told of. */
  #widestBytes: number;
  #isNarrow = false;
  #isChanging = false;
  #isNudging = false;
  #freedAtMs = Number.NEGATIVE_INFINITY;

  constructor(session: Http2Session, limits: WindowLimits) {
    const { connectionWindowBytes, concurrentStreams } = limits;
    this.#session = session;
    this.#limits = limits;
    this.#raiseStepBytes = Math.floor(connectionWindowBytes / RAISE_PARTS);
    this.#narrowBytes = Math.max(LEAST_NARROW_BYTES, Math.floor(connectionWindowBytes / 4 / concurrentStreams));
    this.#allowedBytes = connectionWindowBytes;
    this.#widestBytes = connectionWindowBytes;
    session.setLocalWindowSize(connectionWindowBytes);
  }

  /**
   * Since when bodies that nobody reads keep the client no more from sending others, in monotonic milliseconds; Infinity
   * while they do.
   */
  get freeSinceMs(): number {
    return this.#isUsedUp ? Number.POSITIVE_INFINITY : this.#freedAtMs;
  }

  /** Bytes of a body arrived. */
  came(sizeBytes: number): void {
    this.#unreadBytes += sizeBytes;
    if (this.#unreadBytes - this.#loweredBytes >= LOWER_STEP_BYTES) this.#tell();
  }

  /** Bytes that had arrived were read, or nobody will read them. */
  read(sizeBytes: number): void {
    this.#unreadBytes -= sizeBytes;
    if (this.#loweredBytes - this.#unreadBytes < this.#raiseStepBytes) return;
    this.#tell();
    this.#nudge();
  }

  #tell(): void {
    if (this.#session.destroyed) return;
    const wasUsedUp = this.#isUsedUp;
    this.#loweredBytes = this.#unreadBytes;
    if (wasUsedUp && !this.#isUsedUp) this.#freedAtMs = performance.now();
    this.#setWindow();
    this.#adaptStreams();
  }

  get #isUsedUp(): boolean {
    return this.#loweredBytes + this.#raiseStepBytes > this.#allowedBytes;
  }

  #setWindow(): void {
    const windowBytes = Math.min(Math.max(0, this.#allowedBytes - this.#loweredBytes), WIDEST_BYTES);
    this.#widestBytes = Math.max(this.#widestBytes, windowBytes);
    this.#session.setLocalWindowSize(windowBytes);
  }

  /** Narrows the windows of streams, or gives them back; one change at a time. */
  #adaptStreams(): void {
    const { connectionWindowBytes, streamWindowBytes, concurrentStreams } = this.#limits;
    const isNarrow = this.#loweredBytes > connectionWindowBytes / (this.#isNarrow ? 4 : 2);
    if (isNarrow === this.#isNarrow || this.#isChanging) return;
    this.#isNarrow = isNarrow;
    this.#isChanging = true;
    const initialWindowSize = isNarrow ? Math.min(this.#narrowBytes, streamWindowBytes) : streamWindowBytes;
    const moreBytes = isNarrow ? concurrentStreams * initialWindowSize + connectionWindowBytes / 4 : 0;
    // What was given in addition is taken back before the streams are wide again, and given when they are narrow.
    if (!isNarrow) this.#allowedBytes = connectionWindowBytes;
    this.#session.settings({ initialWindowSize }, (error) => {
      this.#isChanging = false;
      if (error !== null || this.#session.destroyed) return;
      this.#allowedBytes = connectionWindowBytes + moreBytes;
      this.#tell();
      this.#nudge();
    });
  }

  /**
   * nghttp2 looks whether the client should know of a wider window when data arrive, which a client without a window
   * cannot send, and when it has told of one. So it is made to tell of one byte, and by a PING to send that; one at a
   * time. It counts these bytes for the life of the connection, and has room for more than there can be: each stands for
   * a step that was read.
   */
  #nudge(): void {
    const session = this.#session;
    if (this.#isNudging || session.destroyed) return;
    const { effectiveRecvDataLength: owedBytes = 0, effectiveLocalWindowSize: localBytes = 0 } = session.state;
    if (owedBytes === 0 || owedBytes < localBytes / 2) return;
    this.#widestBytes += 1;
    session.setLocalWindowSize(this.#widestBytes);
    this.#setWindow();
    this.#isNudging = session.ping((error) => {
      this.#isNudging = false;
      if (error === null) this.#nudge();
    });
  }
}
