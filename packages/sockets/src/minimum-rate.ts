import type { Duplex } from "node:stream";

/** The least speed of a peer; 0 bytes per second demand nothing. */
export interface RateRule {
  readonly bytesPerS: number;
  /** The speed is measured over stretches of this time. */
  readonly graceMs: number;
}

/**
 * Demands a least speed of a peer, in each stretch of time in which the peer is the one waited for. Time in which it is not
 * (its body is not read, no byte waits for it) does not count. The owner says when waiting begins and ends, and
 * asks at {@link deadlineMs}; nothing is done for single bytes.
 */
export class MinimumRate {
  readonly #graceMs: number;
  readonly #minBytes: number;
  /** Of the present stretch: waited before the present wait, and the count of bytes at its beginning. */
  #waitedMs = 0;
  #fromBytes = 0;
  #isFresh = true;
  #sinceMs = Number.POSITIVE_INFINITY;

  constructor({ bytesPerS, graceMs }: RateRule) {
    this.#graceMs = graceMs;
    this.#minBytes = (bytesPerS * graceMs) / 1000;
  }

  /** The end of the present stretch, if the peer is waited for until then; Infinity while it is not. */
  get deadlineMs(): number {
    return this.#sinceMs + this.#graceMs - this.#waitedMs;
  }

  /** The peer is waited for from now on. `totalBytes`: what came of it, or was taken by it, so far. */
  wait(nowMs: number, totalBytes: number): void {
    if (this.#sinceMs !== Number.POSITIVE_INFINITY) return;
    this.#sinceMs = nowMs;
    if (!this.#isFresh) return;
    this.#isFresh = false;
    this.#fromBytes = totalBytes;
  }

  /** The peer is not waited for now. */
  rest(nowMs: number): void {
    if (this.#sinceMs === Number.POSITIVE_INFINITY) return;
    this.#waitedMs = Math.min(this.#graceMs, this.#waitedMs + nowMs - this.#sinceMs);
    this.#sinceMs = Number.POSITIVE_INFINITY;
  }

  /** Forgets everything: what was measured is over. */
  end(): void {
    this.#sinceMs = Number.POSITIVE_INFINITY;
    this.#waitedMs = 0;
    this.#isFresh = true;
  }

  /** Whether a stretch is over that brought too little. One that brought enough is followed by the next. */
  isTooSlow(nowMs: number, totalBytes: number): boolean {
    if (nowMs < this.deadlineMs) return false;
    if (totalBytes - this.#fromBytes < this.#minBytes) return true;
    this.#waitedMs = 0;
    this.#sinceMs = nowMs;
    this.#fromBytes = totalBytes;
    return false;
  }
}

interface Handle {
  readonly bytesWritten?: number;
  readonly writeQueueSize?: number;
}

/**
 * Bytes of a socket that the system took so far, a write under way counted as far as it got. Where the socket does not tell
 * that, whole writes count.
 */
export function takenBytes(socket: Duplex & { readonly bytesWritten?: number }): number {
  const { _handle: own, _parent: below } = socket as { _handle?: Handle | null; _parent?: { _handle?: Handle | null } };
  const handle = below?._handle ?? own;
  const { bytesWritten, writeQueueSize } = handle ?? {};
  if (bytesWritten !== undefined && writeQueueSize !== undefined) return bytesWritten - writeQueueSize;
  return (socket.bytesWritten ?? 0) - socket.writableLength;
}
