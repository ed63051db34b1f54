// Tested by buffer-budget.test.ts

/**
 * Bounds what waits in memory for slow peers, of all messages together. Each place that buffers asks before it takes more,
 * and holds its peer back when there is none left; nothing waits for the budget itself.
 */
export class BufferBudget {
  #mostBytes: number;
  #usedBytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  /** Bytes that wait now. */
  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Another bound from now on; what waits already stays. */
  adopt(mostBytes: number): void {
    this.#mostBytes = mostBytes;
  }

  /** Takes so many bytes, to be given back exactly once; false, and takes none, when there are not so many. */
  take(sizeBytes: number): boolean {
    if (this.#usedBytes + sizeBytes > this.#mostBytes) return false;
    this.#usedBytes += sizeBytes;
    return true;
  }

  giveBack(sizeBytes: number): void {
    this.#usedBytes -= sizeBytes;
  }
}
