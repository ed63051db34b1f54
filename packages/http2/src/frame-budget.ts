import { ENHANCE_YOUR_CALM } from "./codes.ts";
import { Http2Error } from "./http2-error.ts";

/** Initial allowance of frames without effect. */
const BURST = 10_000;
/** Refill per second. */
const PER_S = 1000;

/**
 * A token bucket for frames that cause work without progress: PING, SETTINGS, PRIORITY, unneeded WINDOW_UPDATE, empty
 * frames, stream errors. Progress earns tokens, as a long body needs a WINDOW_UPDATE per frame.
 */
export class FrameBudget {
  #left = BURST;
  #atMs = performance.now();

  /** Progress was made. */
  earn(frames: number): void {
    if (this.#left < BURST) this.#left += frames;
  }

  /** @throws Http2Error when the budget is exhausted */
  spend(frames: number, what: string): void {
    this.#left -= frames;
    if (this.#left > 0) return;
    const nowMs = performance.now();
    this.#left = Math.min(BURST, this.#left + ((nowMs - this.#atMs) / 1000) * PER_S);
    this.#atMs = nowMs;
    if (this.#left <= 0) throw new Http2Error(ENHANCE_YOUR_CALM, `Too many frames for nothing, the last one ${what}`);
  }
}
