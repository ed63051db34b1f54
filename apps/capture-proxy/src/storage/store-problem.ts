/** The current storage problem, with the operations that it makes fail. */
export class StoreProblem {
  readonly #changed: (began: string | undefined) => void;
  readonly #waiting = new Set<(reason: Error) => void>();
  #sentence: string | null = null;

  /** @param changed called on each change, with the sentence if there was no problem before */
  constructor(changed: (began: string | undefined) => void) {
    this.#changed = changed;
  }

  /** Null without a problem. */
  get sentence(): string | null {
    return this.#sentence;
  }

  set(sentence: string | null): void {
    if (sentence === this.#sentence) return;
    const began = this.#sentence === null ? (sentence ?? undefined) : undefined;
    this.#sentence = sentence;
    if (sentence !== null) for (const reject of this.#waiting) reject(new Error(sentence));
    this.#changed(began);
  }

  /** Final state after close; no notification. */
  conclude(sentence: string): void {
    this.#sentence = sentence;
  }

  /** Awaits `work`; rejects with the problem as soon as there is one. */
  async orProblem(work: () => Promise<void>): Promise<void> {
    const errorKind = Promise.withResolvers<never>();
    this.#waiting.add(errorKind.reject);
    try {
      if (this.#sentence !== null) throw new Error(this.#sentence);
      await Promise.race([work(), errorKind.promise]);
    } finally {
      this.#waiting.delete(errorKind.reject);
    }
  }
}
