import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite";
import type { ExportRun, UsageRow, UsageSpan } from "./state-store.ts";
import type { StoreResponses } from "./store-messages.ts";

const SPAN_S: Readonly<Record<UsageSpan, number>> = { hour: 3600, day: 86_400 };
const WINDOWS = ["hourly", "daily", "monthly"] as const;
/** Maximum number of runs. */
const MAX_RUNS = 10_000;

/** Usage rollups per consumer and export runs. */
export class UsageTable {
  readonly #add: StatementSync;
  readonly #rollup: StatementSync;
  readonly #next: StatementSync;
  readonly #prune: StatementSync;
  readonly #addRun: StatementSync;
  readonly #dropRuns: StatementSync;
  readonly #runs: StatementSync;
  readonly #lastScheduled: StatementSync;

  constructor(database: DatabaseSync) {
    this.#add = database.prepare(
      `INSERT INTO usage (span_s, start_s, consumer, requests, errors, rate_limited, shed, total_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, errors = errors + excluded.errors,
         rate_limited = rate_limited + excluded.rate_limited, shed = shed + excluded.shed,
         total_ms = total_ms + excluded.total_ms`,
    );
    this.#rollup = database.prepare(
      "SELECT consumer, requests, errors, rate_limited, shed, total_ms FROM usage WHERE span_s = ? AND start_s = ?",
    );
    this.#next = database.prepare(
      "SELECT MIN(start_s) AS start FROM usage WHERE span_s = ? AND start_s >= ? AND start_s < ?",
    );
    this.#prune = database.prepare(
      "DELETE FROM usage WHERE (span_s, start_s, consumer) IN (SELECT span_s, start_s, consumer FROM usage WHERE span_s = ? AND start_s < ? LIMIT ?)",
    );
    this.#addRun = database.prepare(
      `INSERT INTO export_run (window, window_start_s, scheduled, status, partial, formats, directory, consumers,
         requests, windows_nonempty, error, generated_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#dropRuns = database.prepare("DELETE FROM export_run WHERE seq <= (SELECT MAX(seq) FROM export_run) - ?");
    this.#runs = database.prepare("SELECT * FROM export_run ORDER BY seq DESC LIMIT ?");
    this.#lastScheduled = database.prepare(
      "SELECT MAX(window_start_s) AS start FROM export_run WHERE window = ? AND scheduled = 1 AND status = 'ok' AND window_start_s < ?",
    );
  }

  add(rows: readonly UsageRow[]): void {
    for (const row of rows) {
      for (const spanS of [SPAN_S.hour, SPAN_S.day]) {
        const startS = Math.floor(row.hourStartS / spanS) * spanS;
        const { consumer, requests, errors, rateLimited, shed, totalMs } = row;
        this.#add.run(spanS, startS, consumer, requests, errors, rateLimited, shed, totalMs);
      }
    }
  }

  /** The first non-empty rollup in the range. */
  firstRollup(span: UsageSpan, fromS: number, toS: number): StoreResponses["usageTotals"] {
    const spanS = SPAN_S[span];
    const startS = this.#start(spanS, fromS, toS);
    if (startS === undefined) return { totals: [], nextS: undefined };
    const totals = this.#rollup.all(spanS, startS).map((row) => ({
      consumer: String(row["consumer"]),
      requests: Number(row["requests"]),
      errors: Number(row["errors"]),
      rateLimited: Number(row["rate_limited"]),
      shed: Number(row["shed"]),
      totalMs: Number(row["total_ms"]),
    }));
    return { totals, nextS: this.#start(spanS, startS + spanS, toS) };
  }

  oldestHour(): number | undefined {
    return this.#start(SPAN_S.hour, -Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
  }

  #start(spanS: number, fromS: number, toS: number): number | undefined {
    const start = this.#next.get(spanS, fromS, toS)?.["start"];
    return typeof start === "number" ? start : undefined;
  }

  /** Deletes at most `limit` rollups that began before a time; returns their number. */
  prune(span: UsageSpan, beforeS: number, limit: number): number {
    return Number(this.#prune.run(SPAN_S[span], Math.floor(beforeS), limit).changes);
  }

  addRun(run: ExportRun): void {
    this.#addRun.run(
      run.window,
      run.windowStartS,
      run.scheduled ? 1 : 0,
      run.status,
      run.partial ? 1 : 0,
      run.formats.join(","),
      run.directory,
      run.consumers,
      run.requests,
      run.windowsNonempty,
      run.error ?? null,
      Math.floor(run.generatedAtMs),
    );
    this.#dropRuns.run(MAX_RUNS);
  }

  runs(limit: number): readonly ExportRun[] {
    return this.#runs.all(limit).map(runOf);
  }

  lastScheduled(window: ExportRun["window"], beforeS: number): number | undefined {
    const start = this.#lastScheduled.get(window, beforeS)?.["start"];
    return typeof start === "number" ? start : undefined;
  }
}

function runOf(row: Record<string, SQLOutputValue>): ExportRun {
  return {
    window: WINDOWS.find((window) => window === row["window"]) ?? "daily",
    windowStartS: Number(row["window_start_s"]),
    scheduled: row["scheduled"] === 1,
    status: row["status"] === "ok" ? "ok" : "failed",
    partial: row["partial"] === 1,
    formats: String(row["formats"]).split(","),
    directory: String(row["directory"]),
    consumers: Number(row["consumers"]),
    requests: Number(row["requests"]),
    windowsNonempty: Number(row["windows_nonempty"]),
    error: typeof row["error"] === "string" ? row["error"] : undefined,
    generatedAtMs: Number(row["generated_at_ms"]),
  };
}
