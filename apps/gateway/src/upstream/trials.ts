/** When a trial ended: within its time, after it, or as an unknown trial. */
export type TrialEnd = "in-time" | "overdue" | "unknown";

interface Trial {
  readonly epoch: number;
  readonly startMs: number;
}

/**
 * The trials of a breaker or endpoint after failures: a limited number at a time, each with a slot for a bounded
 * time, so that one without a result does not block other requests. Each ends once. Times are monotonic.
 */
export class Trials {
  /** Oldest first. */
  #inTime: Trial[] = [];
  /** Epochs of trials that lost their slot. */
  #overdue: number[] = [];

  /** Milliseconds until another trial may begin; 0 for now. */
  waitMs(most: number, limitMs: number, nowMs: number): number {
    const [oldest] = this.#inTime;
    if (oldest === undefined || this.#inTime.length < most) return 0;
    return Math.max(0, oldest.startMs + limitMs - nowMs);
  }

  /** Starts a trial in place of expired ones; `epoch` is unique. */
  begin(epoch: number, limitMs: number, nowMs: number): void {
    while (this.#inTime[0] !== undefined && this.#inTime[0].startMs + limitMs <= nowMs) {
      this.#overdue.push(this.#inTime[0].epoch);
      this.#inTime.shift();
    }
    this.#inTime.push({ epoch, startMs: nowMs });
  }

  end(epoch: number): TrialEnd {
    const at = this.#inTime.findIndex((trial) => trial.epoch === epoch);
    if (at !== -1) {
      this.#inTime.splice(at, 1);
      return "in-time";
    }
    const place = this.#overdue.indexOf(epoch);
    if (place === -1) return "unknown";
    this.#overdue.splice(place, 1);
    return "overdue";
  }

  /** Drops all trials; their results are ignored. */
  clear(): void {
    this.#inTime = [];
    this.#overdue = [];
  }
}
