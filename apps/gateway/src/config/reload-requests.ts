/**
 * Serializes reloads. Queued requests are merged into one reload that reads the newest document, so that frequent
 * requests cannot fill memory.
 */
export class ReloadRequests<Outcome> {
  readonly #run: (force: boolean) => Promise<Outcome>;
  #last: Promise<unknown> = Promise.resolve();
  #waiting: { force: boolean; readonly outcome: Promise<Outcome> } | undefined;

  constructor(run: (force: boolean) => Promise<Outcome>) {
    this.#run = run;
  }

  /** Resolves with the outcome of the reload that covers this request; it is forced if any merged request is. */
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
