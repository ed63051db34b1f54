/** Retention of per-route counts. */
const MAX_MINUTES = 60;
const MINUTE_MS = 60_000;

export interface RecentTraffic {
  /** Covered time: an hour, or the uptime if shorter. */
  readonly spanMs: number;
  /** Finished requests of routes with traffic. */
  readonly requests: readonly (readonly [route: string, count: number])[];
}

/** Requests per minute for the last 60 minutes, by a monotonic clock in milliseconds. */
export class MinuteCounts {
  readonly #counts = new Uint32Array(MAX_MINUTES);
  #minute = 0;

  add(nowMs: number): void {
    const minute = Math.floor(nowMs / MINUTE_MS);
    if (minute !== this.#minute) this.#forgetUntil(minute);
    const at = this.#minute % MAX_MINUTES;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
  }

  total(nowMs: number): number {
    this.#forgetUntil(Math.floor(nowMs / MINUTE_MS));
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  /** Requests may be reported slightly out of order. */
  #forgetUntil(minute: number): void {
    for (let one = Math.max(this.#minute + 1, minute - MAX_MINUTES + 1); one <= minute; one += 1) {
      this.#counts[one % MAX_MINUTES] = 0;
    }
    this.#minute = Math.max(this.#minute, minute);
  }
}

/** The time covered by the counts of a process started at `startedMs`. */
export function spanMs(startedMs: number, nowMs: number): number {
  return Math.min(Math.max(0, nowMs - startedMs), MAX_MINUTES * MINUTE_MS);
}
