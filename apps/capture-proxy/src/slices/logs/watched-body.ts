import { Buffer } from "node:buffer";
import type { BodyWatcher } from "#exchange/body.ts";

/** Limit of bytes shared by all bodies queued for the log. */
export class ByteBudget {
  #leftBytes: number;

  constructor(bytes: number) {
    this.#leftBytes = bytes;
  }

  take(bytes: number): boolean {
    if (bytes > this.#leftBytes) return false;
    this.#leftBytes -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#leftBytes += bytes;
  }
}

/** Keeps the first bytes of a passing body; stops if the budget is exhausted. */
export class WatchedBody implements BodyWatcher {
  pieces: Buffer[] = [];
  /** Bytes that passed, kept or not. */
  sizeBytes = 0;
  /** True if the budget was exhausted; nothing of the body is logged. */
  isGivenUp = false;
  #keptBytes = 0;
  readonly #maxBytes: number;
  readonly #budget: ByteBudget;

  constructor(maxBytes: number, budget: ByteBudget) {
    this.#maxBytes = maxBytes;
    this.#budget = budget;
  }

  get isCut(): boolean {
    return this.#keptBytes < this.sizeBytes;
  }

  piece(bytes: Buffer): void {
    this.sizeBytes += bytes.length;
    const kept = bytes.subarray(0, this.#maxBytes - this.#keptBytes);
    if (kept.length === 0 || this.isGivenUp) return;
    if (!this.#budget.take(kept.length)) {
      this.release();
      this.isGivenUp = true;
      return;
    }
    this.#keptBytes += kept.length;
    // Copy a small slice, so that it does not retain a large buffer.
    this.pieces.push(kept.length * 2 < kept.buffer.byteLength ? Buffer.from(kept) : kept);
  }

  end(): void {}

  /** A rule replaced this body. */
  replaced(): void {
    this.release();
    this.sizeBytes = 0;
    this.isGivenUp = false;
  }

  release(): void {
    this.#budget.giveBack(this.#keptBytes);
    this.#keptBytes = 0;
    this.pieces = [];
  }
}
