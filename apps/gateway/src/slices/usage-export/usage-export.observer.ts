import type { FinishedRequest, Observer } from "#request/phases.ts";
import type { UsageRow, UsageStore } from "#storage/state-store.ts";

const HOUR_MS = 3_600_000;
/** Maximum hours buffered while the store is unavailable. */
const MAX_HOURS = 48;

interface Counts {
  requests: number;
  errors: number;
  rateLimited: number;
  shed: number;
  totalMs: number;
}

type HourCounts = Map<string, Counts>;

/** Counts requests per consumer and hour in memory until flushed to the store. */
export class UsageObserver implements Observer {
  readonly #nowMs: () => number;
  /** By the hour's start in seconds. */
  #hours = new Map<number, HourCounts>();
  #isOn = false;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** No overhead while off. */
  switch(isOn: boolean): void {
    this.#isOn = isOn;
  }

  onFinished({ request, status, durationMs }: FinishedRequest): void {
    if (!this.#isOn || request.consumer === undefined) return;
    const counts = this.#countsOf(this.#nowMs(), request.consumer.name);
    counts.requests += 1;
    if (status >= 500) counts.errors += 1;
    if (request.wasRateLimited) counts.rateLimited += 1;
    if (request.wasShed) counts.shed += 1;
    counts.totalMs += durationMs;
  }

  #countsOf(nowMs: number, consumer: string): Counts {
    const hourStartS = (Math.floor(nowMs / HOUR_MS) * HOUR_MS) / 1000;
    let hour = this.#hours.get(hourStartS);
    if (hour === undefined) {
      hour = new Map();
      this.#hours.set(hourStartS, hour);
    }
    let counts = hour.get(consumer);
    if (counts === undefined) {
      counts = { requests: 0, errors: 0, rateLimited: 0, shed: 0, totalMs: 0 };
      hour.set(consumer, counts);
    }
    return counts;
  }

  /** Flushes all counts. On failure they are kept for the next attempt, and the promise rejects. */
  async flush(store: UsageStore): Promise<void> {
    const hours = this.#hours;
    if (hours.size === 0) return;
    this.#hours = new Map();
    try {
      await store.add(rowsOf(hours));
    } catch (error) {
      this.#takeBack(hours);
      throw error;
    }
  }

  #takeBack(hours: ReadonlyMap<number, HourCounts>): void {
    for (const [hourStartS, hour] of hours) {
      for (const [consumer, back] of hour) {
        const counts = this.#countsOf(hourStartS * 1000, consumer);
        counts.requests += back.requests;
        counts.errors += back.errors;
        counts.rateLimited += back.rateLimited;
        counts.shed += back.shed;
        counts.totalMs += back.totalMs;
      }
    }
    const oldestFirst = [...this.#hours.keys()].toSorted((a, b) => a - b);
    for (const hourStartS of oldestFirst.slice(0, -MAX_HOURS)) this.#hours.delete(hourStartS);
  }
}

function rowsOf(hours: ReadonlyMap<number, HourCounts>): UsageRow[] {
  return [...hours].flatMap(([hourStartS, hour]) =>
    [...hour].map(([consumer, counts]) => ({ consumer, hourStartS, ...counts })),
  );
}
