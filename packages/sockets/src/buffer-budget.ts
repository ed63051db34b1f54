/**
 * A shared limit on bytes buffered for slow peers. A buffer reserves bytes before it grows and pauses its peer if none
 * are left; nothing is queued for the budget itself.
 */
export class BufferBudget {
  #maxBytes: number;
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Changes the limit; reserved bytes remain reserved. */
  adopt(maxBytes: number): void {
    this.#maxBytes = maxBytes;
  }

  /** Reserves bytes, to be released exactly once; false and no reservation if the limit would be exceeded. */
  take(sizeBytes: number): boolean {
    if (this.#usedBytes + sizeBytes > this.#maxBytes) return false;
    this.#usedBytes += sizeBytes;
    return true;
  }

  giveBack(sizeBytes: number): void {
    this.#usedBytes -= sizeBytes;
  }
}
