/** Time as a line needs it. */
export interface LimiterClock {
  /** Monotonic milliseconds. */
  monotonic(): number;
  after(delayMs: number, callback: () => void): () => void;
}

/** What a flow delivers to. */
export interface Receiver {
  /** Takes bytes; false: it is full, and the flow waits for {@link Flow.resume}. */
  take(piece: Buffer): boolean;
  /** Bytes left the flow: it may be low or empty now. */
  moved(): void;
}

/** A flow with less waiting than this asks its source for more; fast lines with few flows have more in stock. */
const LOW_BYTES = 32_768;
const MAX_LOW_BYTES = 262_144;
const LOW_MS = 50;
/** Smaller slices would cost more than they smooth. */
const MIN_SLICE_BYTES = 256;
const MAX_SLICE_BYTES = 65_536;
/** Slices are this far apart, where the rate is high enough for that. */
const SLICE_MS = 8;
/** Credit that an idle line keeps: as long as a source may take to come with its next piece. */
const BURST_MS = 10;
/** Time that a busy process may make up for; what is later is lost. */
const CATCH_UP_MS = 250;

/**
 * One direction of a line with a bandwidth, shared by all flows on it: a token bucket that fills by the time that passed,
 * and gives the flows their turns in a circle. Bytes wait here only as far as a flow took them in, and a flow tells when
 * it has enough, so that memory stays what one read of each source is.
 */
export class BandwidthLimiter {
  /** Bytes that passed, limited or not. */
  carriedBytes = 0;
  readonly #clock: LimiterClock;
  #bytesPerMs = 0;
  #credit = 0;
  #countedMs = 0;
  /** Flows that have something and whose receiver takes it, next one first. */
  #turns: LimitedStream[] = [];
  #stopTimer: (() => void) | undefined;
  #isSharing = false;

  constructor(clock: LimiterClock) {
    this.#clock = clock;
  }

  /** Whether there is a bandwidth; else everything passes at once. */
  get isLimited(): boolean {
    return this.#bytesPerMs > 0;
  }

  /** Flows that wait for their turn. */
  get waitingFlows(): number {
    return this.#turns.length;
  }

  /** Bytes per second, 0 for no limit. Holds at once, for what waits too. */
  setRate(bytesPerSecond: number): void {
    this.#count(CATCH_UP_MS);
    this.#bytesPerMs = bytesPerSecond / 1000;
    this.#credit = Math.min(this.#credit, 0);
    this.#rearm();
    if (!this.isLimited) this.#share();
  }

  /** Opens a flow that delivers to `receiver`. */
  open(receiver: Receiver): ThrottledStream {
    return new LimitedStream(this, receiver);
  }

  /** Bytes that were sent beside the flows, such as heads: what follows waits for them. */
  charge(bytes: number): void {
    this.carriedBytes += bytes;
    if (!this.isLimited) return;
    this.#count(this.#turns.length === 0 ? BURST_MS : CATCH_UP_MS);
    this.#credit -= bytes;
  }

  /** A flow has something to deliver. */
  queue(flow: LimitedStream): void {
    if (this.#turns.length === 0 && !this.#isSharing) {
      this.#count(BURST_MS);
      // What nobody had use for while there was time is not made up for.
      this.#credit = Math.min(this.#credit, BURST_MS * this.#bytesPerMs);
    }
    this.#turns.push(flow);
    if (!this.isLimited) this.#share();
    else if (this.#stopTimer === undefined && !this.#isSharing) this.#rearm();
  }

  /** Bytes of one flow below which it should get more. */
  get lowBytes(): number {
    const even = (this.#bytesPerMs * LOW_MS) / Math.max(1, this.#turns.length);
    return Math.min(Math.max(even, LOW_BYTES), MAX_LOW_BYTES);
  }

  /** A flow has no more turns. */
  drop(flow: LimitedStream): void {
    const at = this.#turns.indexOf(flow);
    if (at !== -1) this.#turns.splice(at, 1);
  }

  /** Adds what the passed time is worth, as far as `maxMs` of credit. */
  #count(maxMs: number): void {
    const nowMs = this.#clock.monotonic();
    const grown = this.#credit + (nowMs - this.#countedMs) * this.#bytesPerMs;
    this.#credit = Math.min(grown, Math.max(this.#credit, maxMs * this.#bytesPerMs));
    this.#countedMs = nowMs;
  }

  /** One round after the other while there is credit for a slice. */
  #share(): void {
    if (this.#isSharing) return;
    this.#isSharing = true;
    try {
      for (let flow = this.#turns[0]; flow !== undefined; flow = this.#turns[0]) {
        const wantedBytes = Math.min(flow.waitingBytes, this.#sliceBytes);
        if (this.isLimited && this.#credit < wantedBytes) break;
        this.#turns.shift();
        const share = this.isLimited ? Math.floor(this.#credit / (this.#turns.length + 1)) : flow.waitingBytes;
        const sentBytes = flow.deliver(Math.max(share, wantedBytes));
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
    // Waking for each flow's slice apart would be more often than timers can.
    const waitMs = Math.max(missing / this.#bytesPerMs, Math.min(SLICE_MS, next.waitingBytes / this.#bytesPerMs));
    this.#stopTimer = this.#clock.after(Math.max(1, waitMs), () => {
      this.#stopTimer = undefined;
      this.#count(CATCH_UP_MS);
      this.#share();
    });
  }
}

/** One transfer in one direction of a line. */
export interface ThrottledStream {
  /** Nothing waits in it. */
  readonly isEmpty: boolean;
  /** Little waits in it: its source should come with more. */
  readonly isLow: boolean;
  /** Takes bytes in, by reference. */
  add(piece: Buffer): void;
  /** The receiver takes bytes again. */
  resume(): void;
  /** Forgets what waits. */
  close(): void;
}

class LimitedStream implements ThrottledStream {
  waitingBytes = 0;
  readonly #line: BandwidthLimiter;
  readonly #receiver: Receiver;
  #pieces: Buffer[] = [];
  #isBlocked = false;
  #isQueued = false;

  constructor(line: BandwidthLimiter, receiver: Receiver) {
    this.#line = line;
    this.#receiver = receiver;
  }

  get isEmpty(): boolean {
    return this.waitingBytes === 0;
  }

  get isLow(): boolean {
    return this.waitingBytes < this.#line.lowBytes;
  }

  add(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.waitingBytes += piece.length;
    this.#queue();
  }

  resume(): void {
    this.#isBlocked = false;
    this.#queue();
  }

  close(): void {
    this.#pieces = [];
    this.waitingBytes = 0;
    this.#isBlocked = true;
    if (this.#isQueued) this.#line.drop(this);
    this.#isQueued = false;
  }

  /** Hands out at most `maxBytes`; gives how many it were. Takes itself out of the turns and in again. */
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
    this.#line.queue(this);
  }
}

/** Both directions of a line, as an exchange is given it. */
export interface ThrottledPace {
  /** Towards the client. */
  readonly down: BandwidthLimiter;
  /** Towards the origin. */
  readonly up: BandwidthLimiter;
}
