import type { Logger } from "pino";
import type { FinishedRequest, Observer } from "#request/context.ts";
import type { Clock, GatewaySlice } from "#slice.ts";
import type { ExportRun, StateStore, UsageRow, UsageStore } from "#storage/state-store.ts";
import { ExportSchedule, planOf } from "./export-schedule.ts";
import { type ExportKind, lastClosed, windowAt } from "./export-windows.ts";

const HOUR_MS = 3_600_000;

/** Maximum hours buffered while the store is unavailable. */
const MAX_HOURS = 48;

/** Counts requests per consumer and hour in memory until flushed to the store. */
class UsageObserver implements Observer {
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

export interface UsageExportHost {
  /** Undefined without `GATEWAY_STATE_DB`: nothing is counted. */
  readonly store: StateStore | undefined;
  readonly log: Logger;
  readonly clock: Clock;
  /** Calls `run` every `periodMs`; returns a stop function. */
  readonly every: (periodMs: number, run: () => void) => () => void;
}

/** A run in the admin API. */
export interface ExportRunRecord {
  readonly window: ExportKind;
  readonly window_start_ms: number;
  readonly trigger: "schedule" | "manual";
  readonly status: "ok" | "failed";
  readonly partial: boolean;
  readonly formats: readonly string[];
  readonly directory: string;
  readonly consumers: number;
  readonly requests: number;
  readonly windows_nonempty: number;
  readonly error: string | null;
  readonly generated_at_ms: number;
}

/** Mapped to 404, 400, 400 and 500 in the admin API. */
export interface ExportRefusal {
  readonly refused:
    | "analytics_not_configured"
    | "analytics_exports_not_configured"
    | "analytics_export_run_invalid"
    | "analytics_export_failed";
  readonly message: string;
}

/** Default: the last closed window of the configured kind. */
export interface ExportRequest {
  readonly window?: ExportKind;
  readonly window_start_ms?: number;
}

export interface UsageExportSlice extends GatewaySlice {
  /** Writes a statement now, replacing an existing one. */
  runExport(request?: ExportRequest): Promise<ExportRunRecord | ExportRefusal>;
  /** Runs, newest first; `limit` defaults to 25 and is clamped to 1 to 100. Rejects if the store cannot be read. */
  exportRuns(limit?: number): Promise<{ readonly runs: readonly ExportRunRecord[] } | ExportRefusal>;
}

const FLUSH_MS = 5000;
const TICK_MS = 30_000;

/** Usage per consumer, in the state store and as files for billing systems. */
export function usageExport(host: UsageExportHost): UsageExportSlice {
  const { store } = host;
  return store === undefined ? withoutStore() : withStore(host, store);
}

function withoutStore(): UsageExportSlice {
  const refusal: ExportRefusal = {
    refused: "analytics_not_configured",
    message: "Usage is counted in a state store; set GATEWAY_STATE_DB",
  };
  return {
    name: "usage-export",
    runExport: () => Promise.resolve(refusal),
    exportRuns: () => Promise.resolve(refusal),
  };
}

function withStore({ log, clock, every }: UsageExportHost, store: StateStore): UsageExportSlice {
  const observer = new UsageObserver(() => clock.now());
  const flush = async (): Promise<void> => await observer.flush(store.usage);
  const schedule = new ExportSchedule({ store, clock, log, flush });
  // The store logs its own failures; the counts are kept.
  const stops = [
    every(FLUSH_MS, () => void flush().catch(() => undefined)),
    every(TICK_MS, () => void schedule.tick()),
  ];
  return {
    name: "usage-export",
    observer,
    compile: (document) => {
      const plan = planOf(document.analytics, document.consumers);
      return {
        published: () => {
          observer.switch(plan !== undefined);
          schedule.follow(plan);
        },
      };
    },
    stop: async () => {
      for (const stop of stops) stop();
      await schedule.settled();
      await flush().catch((error: unknown) => {
        log.error({ code: "usage_lost", err: error }, "The last counts of usage could not be stored");
      });
    },
    runExport: async (request = {}) => await runExport(schedule, clock.now(), request),
    exportRuns: async (limit = 25) => {
      const runs = await store.usage.runs(Math.min(100, Math.max(1, Math.floor(limit))));
      return { runs: runs.map(recordOf) };
    },
  };
}

async function runExport(
  schedule: ExportSchedule,
  nowMs: number,
  request: ExportRequest,
): Promise<ExportRunRecord | ExportRefusal> {
  const { plan } = schedule;
  if (plan === undefined) {
    return { refused: "analytics_exports_not_configured", message: "The document has no analytics.exports" };
  }
  const kind = request.window ?? plan.kind;
  const closed = lastClosed(kind, nowMs);
  const startMs = request.window_start_ms ?? closed.startMs;
  if (!Number.isSafeInteger(startMs) || Number.isNaN(new Date(startMs).getTime())) return invalid("is no time");
  const window = windowAt(kind, startMs);
  if (window.startMs !== startMs) return invalid(`is not where a UTC ${kind} window begins`);
  if (window.endMs > closed.endMs) return invalid("names a window that is not over");
  try {
    const run = await schedule.run(window, false);
    if (run.status === "ok") return recordOf(run);
    return { refused: "analytics_export_failed", message: run.error ?? "The statement could not be written" };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { refused: "analytics_export_failed", message };
  }
}

const invalid = (what: string): ExportRefusal => ({
  refused: "analytics_export_run_invalid",
  message: `window_start_ms ${what}`,
});

function recordOf(run: ExportRun): ExportRunRecord {
  return {
    window: run.window,
    window_start_ms: run.windowStartS * 1000,
    trigger: run.scheduled ? "schedule" : "manual",
    status: run.status,
    partial: run.partial,
    formats: run.formats,
    directory: run.directory,
    consumers: run.consumers,
    requests: run.requests,
    windows_nonempty: run.windowsNonempty,
    error: run.error ?? null,
    generated_at_ms: Math.floor(run.generatedAtMs),
  };
}

interface Counts {
  requests: number;
  errors: number;
  rateLimited: number;
  shed: number;
  totalMs: number;
}

type HourCounts = Map<string, Counts>;

function rowsOf(hours: ReadonlyMap<number, HourCounts>): UsageRow[] {
  return [...hours].flatMap(([hourStartS, hour]) =>
    [...hour].map(([consumer, counts]) => ({ consumer, hourStartS, ...counts })),
  );
}
