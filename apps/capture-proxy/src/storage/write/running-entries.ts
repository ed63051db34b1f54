import type { RecordedBefore } from "./entry-record.ts";

/** Which entries were recorded while they ran, and may have to be rewritten at their end. */
export class RunningEntries {
  readonly #recorded = new Set<number>();
  /** Those whose thread ended before it was known what is stored of them. */
  readonly #unsure = new Set<number>();

  /** Whether the store has an earlier state of the entry. */
  recordedBefore(seq: number): RecordedBefore {
    return this.#recorded.has(seq) ? "yes" : this.#unsure.has(seq) ? "maybe" : "no";
  }

  recorded(seq: number): void {
    this.#recorded.add(seq);
  }

  ended(seq: number): void {
    this.#recorded.delete(seq);
    this.#unsure.delete(seq);
  }

  /** What was on its way to the store is gone, and nobody knows how much of it. */
  storeLost(): void {
    for (const seq of this.#recorded) this.#unsure.add(seq);
    this.#recorded.clear();
  }
}
