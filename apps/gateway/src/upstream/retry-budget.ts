const WINDOW_MS = 10_000;
const SLOTS = 10;
/** So that the first failure after a silence may be tried again. */
const FREE_RETRIES = 3;

/** Allows retries up to a share of the requests of the last ten seconds, so that a failing upstream is not hit twice as hard. */
export class RetryBudget {
  #percent: number;
  readonly #nowMs: () => number;
  readonly #requests = new Float64Array(SLOTS);
  readonly #retries = new Float64Array(SLOTS);
  #slot = 0;

  constructor(percent: number, nowMs: () => number) {
    this.#percent = percent;
    this.#nowMs = nowMs;
    this.#slot = this.#present();
  }

  adopt(percent: number): void {
    this.#percent = percent;
  }

  countRequest(): void {
    this.#roll();
    this.#requests[this.#slot % SLOTS] = (this.#requests[this.#slot % SLOTS] ?? 0) + 1;
  }

  /** Takes a retry; false when the budget is spent. */
  spend(): boolean {
    this.#roll();
    const requests = sum(this.#requests);
    const retries = sum(this.#retries);
    if (retries + 1 > Math.max(FREE_RETRIES, (requests * this.#percent) / 100)) return false;
    this.#retries[this.#slot % SLOTS] = (this.#retries[this.#slot % SLOTS] ?? 0) + 1;
    return true;
  }

  #present(): number {
    return Math.floor(this.#nowMs() / (WINDOW_MS / SLOTS));
  }

  #roll(): void {
    const present = this.#present();
    for (let gone = Math.max(this.#slot + 1, present - SLOTS + 1); gone <= present; gone++) {
      this.#requests[gone % SLOTS] = 0;
      this.#retries[gone % SLOTS] = 0;
    }
    this.#slot = present;
  }
}

function sum(numbers: Float64Array): number {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}
