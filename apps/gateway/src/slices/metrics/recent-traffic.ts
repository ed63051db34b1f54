/** How far back requests of single routes are counted. */
const MAX_MINUTES = 60;
const MINUTE_MS = 60_000;

/** What routes had to do lately. */
export interface RecentTraffic {
  /** How much time that is: an hour, or since the start if that is less. */
  readonly spanMs: number;
  /** Finished requests of each route that had any. */
  readonly requests: readonly (readonly [route: string, count: number])[];
}

/** Requests in each of the last 60 minutes; a moment is in milliseconds of a clock that never goes back. */
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

  /** A request may have ended a moment before another one that was counted already. */
  #forgetUntil(minute: number): void {
    for (let one = Math.max(this.#minute + 1, minute - MAX_MINUTES + 1); one <= minute; one += 1) {
      this.#counts[one % MAX_MINUTES] = 0;
    }
    this.#minute = Math.max(this.#minute, minute);
  }
}

/** How much time counts of a process stand for that started at `startedMs`. */
export function spanMs(startedMs: number, nowMs: number): number {
  return Math.min(Math.max(0, nowMs - startedMs), MAX_MINUTES * MINUTE_MS);
}
