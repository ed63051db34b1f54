import { ENHANCE_YOUR_CALM, Http2Error } from "./codes.ts";

/** Initial allowance of frames without effect. */
const FRAME_BURST = 10_000;

/** Refill per second. */
const FRAMES_PER_S = 1000;

/**
 * A token bucket for frames that cause work without progress: PING, SETTINGS, PRIORITY, unneeded WINDOW_UPDATE, empty
 * frames, stream errors. Progress earns tokens, as a long body needs a WINDOW_UPDATE per frame.
 */
export class FrameBudget {
  #left = FRAME_BURST;
  #atMs = performance.now();

  /** Progress was made. */
  earn(frames: number): void {
    if (this.#left < FRAME_BURST) this.#left += frames;
  }

  /** @throws Http2Error when the budget is exhausted */
  spend(frames: number, what: string): void {
    this.#left -= frames;
    if (this.#left > 0) return;
    const nowMs = performance.now();
    this.#left = Math.min(FRAME_BURST, this.#left + ((nowMs - this.#atMs) / 1000) * FRAMES_PER_S);
    this.#atMs = nowMs;
    if (this.#left <= 0) throw new Http2Error(ENHANCE_YOUR_CALM, `Too many frames without progress, last ${what}`);
  }
}

/** Initial allowance of streams ended before their responses. */
const RESET_BURST = 500;

/** Refill per second. */
const RESETS_PER_S = 100;

/**
 * Limits how many streams of a connection end before their responses, whichever side ends them, since their work was
 * wasted. The owner counts, as only it knows whether a response was complete.
 */
export class ResetAllowance {
  #left = RESET_BURST;
  #atMs = performance.now();

  /** Counts one. False: the limit is exceeded. */
  take(nowMs = performance.now()): boolean {
    const back = ((nowMs - this.#atMs) / 1000) * RESETS_PER_S;
    this.#left = Math.min(RESET_BURST, this.#left + back) - 1;
    this.#atMs = nowMs;
    return this.#left >= 0;
  }
}
