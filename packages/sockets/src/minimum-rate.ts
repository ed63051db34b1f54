import type { Duplex } from "node:stream";

/** A minimum transfer rate; 0 bytes per second disables it. */
export interface RateRule {
  readonly bytesPerS: number;
  /** The rate is measured over intervals of this length. */
  readonly graceMs: number;
}

/**
 * Enforces a minimum rate per interval, counting only time spent waiting for the peer (not while its body is paused or
 * nothing is queued for it). The owner reports when waiting begins and ends and checks at {@link deadlineMs}; there is
 * no cost per byte.
 */
export class MinimumRate {
  readonly #graceMs: number;
  readonly #minBytes: number;
  /** Of the current interval: time waited before the current wait, and the byte count at its start. */
  #waitedMs = 0;
  #fromBytes = 0;
  #isFresh = true;
  #sinceMs = Number.POSITIVE_INFINITY;

  constructor({ bytesPerS, graceMs }: RateRule) {
    this.#graceMs = graceMs;
    this.#minBytes = (bytesPerS * graceMs) / 1000;
  }

  /** End of the current interval if the peer is awaited until then; Infinity while it is not. */
  get deadlineMs(): number {
    return this.#sinceMs + this.#graceMs - this.#waitedMs;
  }

  /** Waiting begins. `totalBytes`: received from or sent to the peer so far. */
  wait(nowMs: number, totalBytes: number): void {
    if (this.#sinceMs !== Number.POSITIVE_INFINITY) return;
    this.#sinceMs = nowMs;
    if (!this.#isFresh) return;
    this.#isFresh = false;
    this.#fromBytes = totalBytes;
  }

  /** Waiting ends. */
  rest(nowMs: number): void {
    if (this.#sinceMs === Number.POSITIVE_INFINITY) return;
    this.#waitedMs = Math.min(this.#graceMs, this.#waitedMs + nowMs - this.#sinceMs);
    this.#sinceMs = Number.POSITIVE_INFINITY;
  }

  /** Resets the measurement. */
  end(): void {
    this.#sinceMs = Number.POSITIVE_INFINITY;
    this.#waitedMs = 0;
    this.#isFresh = true;
  }

  /** Whether a completed interval was too slow; otherwise the next one begins. */
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

/** Bytes accepted by the system so far, including part of a write in progress where the socket reports it. */
export function takenBytes(socket: Duplex & { readonly bytesWritten?: number }): number {
  const { _handle: own, _parent: below } = socket as { _handle?: Handle | null; _parent?: { _handle?: Handle | null } };
  const handle = below?._handle ?? own;
  const { bytesWritten, writeQueueSize } = handle ?? {};
  if (bytesWritten !== undefined && writeQueueSize !== undefined) return bytesWritten - writeQueueSize;
  return (socket.bytesWritten ?? 0) - socket.writableLength;
}
