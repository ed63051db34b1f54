import { Buffer } from "node:buffer";
import type { BodyWatcher } from "#exchange/body.ts";

/** Bytes that all bodies on their way into the log may take together. */
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

/** Keeps the first bytes of a body while it passes, as it came; gives up where memory for that is used up. */
export class WatchedBody implements BodyWatcher {
  pieces: Buffer[] = [];
  /** Bytes that passed, kept or not. */
  sizeBytes = 0;
  /** There was no room for it: nothing of it is logged. */
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
    // A small piece may be all that is wanted of a large buffer.
    this.pieces.push(kept.length * 2 < kept.buffer.byteLength ? Buffer.from(kept) : kept);
  }

  end(): void {}

  /** A rule put another body in the place of this one. */
  replaced(): void {
    this.release();
    this.sizeBytes = 0;
    this.isGivenUp = false;
  }

  /** The bytes are not needed any more. */
  release(): void {
    this.#budget.giveBack(this.#keptBytes);
    this.#keptBytes = 0;
    this.pieces = [];
  }
}
