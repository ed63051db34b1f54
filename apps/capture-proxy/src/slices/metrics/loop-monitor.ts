import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import type { EventLoopUtilization } from "node:perf_hooks";
import type { Clock } from "#slice.ts";

/** Load of the main thread. */
export interface LoopSample {
  /** Delay of timers. */
  readonly delayP50Ms: number;
  readonly delayP99Ms: number;
  /** Share of time spent working, 0 to 1. */
  readonly utilization: number;
}

const RESOLUTION_MS = 20;
const WINDOW_MS = 60_000;

/**
 * Measures the event loop in windows of a minute; a sample covers the current window, or the last one while the current
 * is young.
 */
export class LoopMonitor {
  readonly #clock: Clock;
  readonly #histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #begin: EventLoopUtilization = performance.eventLoopUtilization();
  #beganMs = 0;
  #last: LoopSample | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(signal: AbortSignal): void {
    this.#histogram.enable();
    this.#beganMs = this.#clock.monotonic();
    const stop = this.#clock.every(WINDOW_MS, () => this.#nextWindow());
    signal.addEventListener("abort", () => {
      stop();
      this.#histogram.disable();
    });
  }

  sample(): LoopSample {
    const isYoung = this.#clock.monotonic() - this.#beganMs < WINDOW_MS / 6;
    return isYoung && this.#last ? this.#last : this.#measure();
  }

  #nextWindow(): void {
    this.#last = this.#measure();
    this.#histogram.reset();
    this.#begin = performance.eventLoopUtilization();
    this.#beganMs = this.#clock.monotonic();
  }

  #measure(): LoopSample {
    return {
      delayP50Ms: this.#delayMs(50),
      delayP99Ms: this.#delayMs(99),
      utilization: Math.round(performance.eventLoopUtilization(this.#begin).utilization * 1000) / 1000,
    };
  }

  /**
   * The histogram measures intervals between timers, so an idle loop shows the timer resolution, which is subtracted.
   */
  #delayMs(percentile: number): number {
    if (this.#histogram.count === 0) return 0;
    return Math.max(0, Math.round((this.#histogram.percentile(percentile) / 1e6 - RESOLUTION_MS) * 100) / 100);
  }
}
