import type { BodyQueue, Receiver } from "./body.ts";

export interface LimiterClock {
  /** Monotonic milliseconds. */
  monotonic(): number;
  after(delayMs: number, callback: () => void): () => void;
}

/** Low-water mark of a queue; it rises with the rate and falls with the number of streams. */
const LOW_BYTES = 32_768;
const MAX_LOW_BYTES = 262_144;
const LOW_MS = 50;
/** Smaller slices cost more than they smooth. */
const MIN_SLICE_BYTES = 256;
const MAX_SLICE_BYTES = 65_536;
/** Interval between slices, if the rate is high enough. */
const SLICE_MS = 8;
/** Credit kept while idle: the time a source may need for its next piece. */
const BURST_MS = 10;
/** Time for which a busy process may catch up. */
const CATCH_UP_MS = 250;

/**
 * Limits one direction to a bandwidth that all its streams share: a token bucket with round-robin scheduling. Sources
 * pause when their queue is full enough, so that it holds about one read of each.
 */
export class BandwidthLimiter {
  /** Bytes forwarded, limited or not. */
  carriedBytes = 0;
  readonly #clock: LimiterClock;
  #bytesPerMs = 0;
  #credit = 0;
  #countedMs = 0;
  /** Streams that have bytes and no backpressure, next one first. */
  #turns: ThrottledStream[] = [];
  #stopTimer: (() => void) | undefined;
  #isSharing = false;

  constructor(clock: LimiterClock) {
    this.#clock = clock;
  }

  get isLimited(): boolean {
    return this.#bytesPerMs > 0;
  }

  /** Streams queued for their turn. */
  get waitingStreams(): number {
    return this.#turns.length;
  }

  /** Bytes per second, 0 for no limit. Takes effect at once, also for queued bytes. */
  setRate(bytesPerSecond: number): void {
    this.#count(CATCH_UP_MS);
    this.#bytesPerMs = bytesPerSecond / 1000;
    this.#credit = Math.min(this.#credit, 0);
    this.#rearm();
    if (!this.isLimited) this.#share();
  }

  /** Opens a stream to `receiver`. */
  open(receiver: Receiver): ThrottledStream {
    return new ThrottledStream(this, receiver);
  }

  /** Charges bytes sent outside the streams, such as heads. */
  charge(bytes: number): void {
    this.carriedBytes += bytes;
    if (!this.isLimited) return;
    this.#count(this.#turns.length === 0 ? BURST_MS : CATCH_UP_MS);
    this.#credit -= bytes;
  }

  /** Schedules a stream that has bytes to deliver. */
  queue(stream: ThrottledStream): void {
    if (this.#turns.length === 0 && !this.#isSharing) {
      this.#count(BURST_MS);
      // After idling, credit is capped at one burst.
      this.#credit = Math.min(this.#credit, BURST_MS * this.#bytesPerMs);
    }
    this.#turns.push(stream);
    if (!this.isLimited) this.#share();
    else if (this.#stopTimer === undefined && !this.#isSharing) this.#rearm();
  }

  /** Low-water mark of one stream. */
  get lowBytes(): number {
    const even = (this.#bytesPerMs * LOW_MS) / Math.max(1, this.#turns.length);
    return Math.min(Math.max(even, LOW_BYTES), MAX_LOW_BYTES);
  }

  /** Removes a stream from the schedule. */
  drop(stream: ThrottledStream): void {
    const at = this.#turns.indexOf(stream);
    if (at !== -1) this.#turns.splice(at, 1);
  }

  /** Adds credit for the elapsed time, capped at `maxMs` or, at low rates, one slice. */
  #count(maxMs: number): void {
    const nowMs = this.#clock.monotonic();
    const grown = this.#credit + (nowMs - this.#countedMs) * this.#bytesPerMs;
    this.#credit = Math.min(grown, Math.max(this.#credit, maxMs * this.#bytesPerMs, MIN_SLICE_BYTES));
    this.#countedMs = nowMs;
  }

  /** Serves the streams round-robin while there is credit for a slice. */
  #share(): void {
    if (this.#isSharing) return;
    this.#isSharing = true;
    try {
      for (let stream = this.#turns[0]; stream !== undefined; stream = this.#turns[0]) {
        const wantedBytes = Math.min(stream.waitingBytes, this.#sliceBytes);
        if (this.isLimited && this.#credit < wantedBytes) break;
        this.#turns.shift();
        const share = this.isLimited ? Math.floor(this.#credit / (this.#turns.length + 1)) : stream.waitingBytes;
        const sentBytes = stream.deliver(Math.max(share, wantedBytes));
        this.carriedBytes += sentBytes;
        if (this.isLimited) this.#credit -= sentBytes;
      }
    } finally {
      this.#isSharing = false;
    }
    this.#rearm();
  }

  get #sliceBytes(): number {
    const even = this.#bytesPerMs * SLICE_MS;
    return Math.min(Math.max(even / Math.max(1, this.#turns.length), MIN_SLICE_BYTES), MAX_SLICE_BYTES);
  }

  #rearm(): void {
    this.#stopTimer?.();
    this.#stopTimer = undefined;
    const [next] = this.#turns;
    if (next === undefined || !this.isLimited) return;
    const missing = Math.min(next.waitingBytes, this.#sliceBytes) - this.#credit;
    // A timer per slice of each stream would exceed timer resolution.
    const waitMs = Math.max(missing / this.#bytesPerMs, Math.min(SLICE_MS, next.waitingBytes / this.#bytesPerMs));
    this.#stopTimer = this.#clock.after(Math.max(1, waitMs), () => {
      this.#stopTimer = undefined;
      this.#count(CATCH_UP_MS);
      this.#share();
    });
  }
}

/** One transfer through a limiter. */
export class ThrottledStream implements BodyQueue {
  waitingBytes = 0;
  readonly #limiter: BandwidthLimiter;
  readonly #receiver: Receiver;
  #pieces: Buffer[] = [];
  #isBlocked = false;
  #isQueued = false;

  constructor(limiter: BandwidthLimiter, receiver: Receiver) {
    this.#limiter = limiter;
    this.#receiver = receiver;
  }

  get isEmpty(): boolean {
    return this.waitingBytes === 0;
  }

  /** The queue is below its low-water mark: the source should supply more. */
  get isLow(): boolean {
    return this.waitingBytes < this.#limiter.lowBytes;
  }

  /** Queues bytes by reference. */
  add(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.waitingBytes += piece.length;
    this.#queue();
  }

  /** The receiver drained. */
  resume(): void {
    this.#isBlocked = false;
    this.#queue();
  }

  /** Discards the queue. */
  close(): void {
    this.#pieces = [];
    this.waitingBytes = 0;
    this.#isBlocked = true;
    if (this.#isQueued) this.#limiter.drop(this);
    this.#isQueued = false;
  }

  /** Delivers at most `maxBytes` and returns how many. Leaves the schedule and re-enters it if needed. */
  deliver(maxBytes: number): number {
    this.#isQueued = false;
    let leftBytes = Math.floor(maxBytes);
    const startBytes = leftBytes;
    while (leftBytes > 0 && !this.#isBlocked) {
      const [piece] = this.#pieces;
      if (piece === undefined) break;
      const part = piece.length <= leftBytes ? piece : piece.subarray(0, leftBytes);
      if (part.length === piece.length) this.#pieces.shift();
      else this.#pieces[0] = piece.subarray(part.length);
      leftBytes -= part.length;
      this.waitingBytes -= part.length;
      this.#isBlocked = !this.#receiver.take(part);
    }
    const sentBytes = startBytes - leftBytes;
    this.#queue();
    if (sentBytes > 0) this.#receiver.moved();
    return sentBytes;
  }

  #queue(): void {
    if (this.#isQueued || this.#isBlocked || this.waitingBytes === 0) return;
    this.#isQueued = true;
    this.#limiter.queue(this);
  }
}

/** The limiters of an exchange. */
export interface ThrottledPace {
  /** Towards the client. */
  readonly down: BandwidthLimiter;
  /** Towards the origin. */
  readonly up: BandwidthLimiter;
}
