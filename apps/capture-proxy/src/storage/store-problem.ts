/** Why nothing can be stored at present, and who would wait in vain for that to end. */
export class StoreProblem {
  readonly #changed: (began: string | undefined) => void;
  readonly #waiting = new Set<(reason: Error) => void>();
  #sentence: string | null = null;

  /** @param changed  told of each change, with the sentence when there was no problem before */
  constructor(changed: (began: string | undefined) => void) {
    this.#changed = changed;
  }

  /** A sentence; null while all is well. */
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

  /** What is said of a store that has ended; nobody is told. */
  conclude(sentence: string): void {
    this.#sentence = sentence;
  }

  /** Waits for the end of `work`; rejects with the problem once there is one. */
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
