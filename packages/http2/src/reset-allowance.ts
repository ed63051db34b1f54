/** Streams that a peer may have ended before their answers, ahead of those that do not; */
const BURST = 500;
/** so many more in each second. */
const PER_S = 100;

/**
 * Bounds how many streams of a connection end before their answers do, whoever's doing that is: each was work for nothing.
 * Counted by whoever answers, since only that knows whether an answer was taken.
 */
export class ResetAllowance {
  #left = BURST;
  #atMs = performance.now();

  /** Another one was ended. False: that was one too many. */
  take(nowMs = performance.now()): boolean {
    const back = ((nowMs - this.#atMs) / 1000) * PER_S;
    this.#left = Math.min(BURST, this.#left + back) - 1;
    this.#atMs = nowMs;
    return this.#left >= 0;
  }
}
