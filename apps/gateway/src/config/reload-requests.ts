/**
 * Reloads that are asked for, one at a time. Those that would wait become one, which finds what is newest when its turn
 * comes: whoever asks faster than reloads are done fills no memory with documents.
 */
export class ReloadRequests<Outcome> {
  readonly #run: (force: boolean) => Promise<Outcome>;
  #last: Promise<unknown> = Promise.resolve();
  #waiting: { force: boolean; readonly outcome: Promise<Outcome> } | undefined;

  constructor(run: (force: boolean) => Promise<Outcome>) {
    this.#run = run;
  }

  /** What came of the reload that this one is, or has become part of; that one is forced if any part of it is. */
  async ask(force: boolean): Promise<Outcome> {
    if (this.#waiting !== undefined) {
      this.#waiting.force ||= force;
      return await this.#waiting.outcome;
    }
    const outcome = this.#last.then(async () => {
      const isForced = this.#waiting?.force ?? force;
      this.#waiting = undefined;
      return await this.#run(isForced);
    });
    this.#last = outcome.catch(() => undefined);
    this.#waiting = { force, outcome };
    return await outcome;
  }
}
