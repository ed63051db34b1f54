import { ENHANCE_YOUR_CALM } from "./codes.ts";
import { Http2Error } from "./http2-error.ts";

/** Frames that move nothing, ahead of those that do. */
const BURST = 10_000;
/** So many more in each second. */
const PER_S = 1000;

/**
 * What a peer may make us work for nothing: pings, settings, priorities, windows that nobody waits for, empty frames, streams
 * that break the rules. What moves something earns some: windows are widened for each frame of a long body.
 */
export class FrameBudget {
  #left = BURST;
  #atMs = performance.now();

  /** Something was moved. */
  earn(frames: number): void {
    if (this.#left < BURST) this.#left += frames;
  }

  /** @throws Http2Error when nothing is left */
  spend(frames: number, what: string): void {
    this.#left -= frames;
    if (this.#left > 0) return;
    const nowMs = performance.now();
    this.#left = Math.min(BURST, this.#left + ((nowMs - this.#atMs) / 1000) * PER_S);
    this.#atMs = nowMs;
    if (this.#left <= 0) throw new Http2Error(ENHANCE_YOUR_CALM, `Too many frames for nothing, the last one ${what}`);
  }
}
