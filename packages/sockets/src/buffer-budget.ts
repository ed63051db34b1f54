/**
 * Bounds what waits in memory for slow peers, of all messages together. Each place that buffers asks before it takes more,
 * and holds its peer back when there is none left; nothing waits for the budget itself.
 */
export class BufferBudget {
  #maxBytes: number;
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that wait now. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Another bound from now on; what waits already stays. */
  adopt(maxBytes: number): void {
    this.#maxBytes = maxBytes;
  }

  /** Takes so many bytes, to be given back exactly once; false, and takes none, when there are not so many. */
  take(sizeBytes: number): boolean {
    if (this.#usedBytes + sizeBytes > this.#maxBytes) return false;
    this.#usedBytes += sizeBytes;
    return true;
  }

  giveBack(sizeBytes: number): void {
    this.#usedBytes -= sizeBytes;
  }
}
