import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import type { EventLoopUtilization } from "node:perf_hooks";
import type { Clock } from "#slice.ts";

/** How busy the main thread is. */
export interface LoopSample {
  /** How late timers fire. */
  readonly delayP50Ms: number;
  readonly delayP99Ms: number;
  /** Share of time spent working, 0 to 1. */
  readonly utilization: number;
}

const RESOLUTION_MS = 20;
const WINDOW_MS = 60_000;

/** Watches the event loop in windows of a minute; a sample is of the window that runs, or of the last one while it is young. */
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

  /** The histogram measures from timer to timer: an idle loop shows the resolution itself. */
  #delayMs(percentile: number): number {
    if (this.#histogram.count === 0) return 0;
    return Math.max(0, Math.round((this.#histogram.percentile(percentile) / 1e6 - RESOLUTION_MS) * 100) / 100);
  }
}
