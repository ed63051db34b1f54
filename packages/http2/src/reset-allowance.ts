/** Initial allowance of streams ended before their responses. */
const BURST = 500;
/** Refill per second. */
const PER_S = 100;

/**
 * Limits how many streams of a connection end before their responses, whichever side ends them, since their work was
 * wasted. The owner counts, as only it knows whether a response was complete.
 */
export class ResetAllowance {
  #left = BURST;
  #atMs = performance.now();

  /** Counts one. False: the limit is exceeded. */
  take(nowMs = performance.now()): boolean {
    const back = ((nowMs - this.#atMs) / 1000) * PER_S;
    this.#left = Math.min(BURST, this.#left + back) - 1;
    this.#atMs = nowMs;
    return this.#left >= 0;
  }
}
