/** Sizes of what is handed over together. */
interface Portion {
  readonly bytes: number;
  readonly entries: number;
}

/** What was on its way when the thread ended. */
export interface LostWork {
  readonly entries: number;
  /** Frames of streams, too. */
  readonly hasFrames: boolean;
}

interface Waiter {
  readonly portion: number;
  readonly resolve: () => void;
}

/** What was handed to the storage thread and is not committed yet, and who waits for that. */
export class SentWork {
  /** Of entries and of pieces of their bodies. */
  bytes = 0;
  entries = 0;
  /** Of frames of streams. */
  frameBytes = 0;
  #sentPortions = 0;
  #donePortions = 0;
  #waiters: Waiter[] = [];

  /** True while everything that was handed over is committed. */
  get isDone(): boolean {
    return this.#donePortions >= this.#sentPortions;
  }

  entriesSent({ bytes, entries }: Portion): void {
    this.#sentPortions += 1;
    this.bytes += bytes;
    this.entries += entries;
  }

  framesSent(bytes: number): void {
    this.#sentPortions += 1;
    this.frameBytes += bytes;
  }

  entriesCommitted({ bytes, entries }: Portion): void {
    this.bytes -= bytes;
    this.entries -= entries;
    this.#portionDone();
  }

  framesCommitted(bytes: number): void {
    this.frameBytes -= bytes;
    this.#portionDone();
  }

  /** Resolves when everything that was handed over so far is committed, or lost. */
  async done(): Promise<void> {
    if (this.isDone) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.push({ portion: this.#sentPortions, resolve });
    await promise;
  }

  /** The thread ended: nothing is on its way any more. Gives what was. */
  lost(): LostWork {
    const lost = { entries: this.entries, hasFrames: this.frameBytes > 0 };
    this.entries = 0;
    this.bytes = 0;
    this.frameBytes = 0;
    this.#donePortions = this.#sentPortions;
    for (const { resolve } of this.#waiters) resolve();
    this.#waiters = [];
    return lost;
  }

  #portionDone(): void {
    this.#donePortions += 1;
    while (this.#waiters[0] !== undefined && this.#waiters[0].portion <= this.#donePortions) {
      this.#waiters.shift()?.resolve();
    }
  }
}
