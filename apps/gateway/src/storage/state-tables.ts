import type { DatabaseSync, SQLOutputValue, StatementSync } from "node:sqlite";
import type {
  ExportRun,
  GenerationFacts,
  GenerationRecord,
  IssuedCredential,
  OutboxEvent,
  UsageRow,
  UsageSpan,
} from "./state-store.ts";
import type { StoreResponses } from "./store-messages.ts";

const MAX_GENERATIONS = 100;
/** Maximum total size of their texts. */
const MAX_TEXT_BYTES = 67_108_864;
/** Minimum number kept regardless of size. */
const MIN_GENERATIONS = 5;
const SOURCES = ["startup", "reload", "admin", "rollback"] as const;
const FACTS = "number, content_hash, route_count, published_ms, source, actor";

/** Published configurations. */
export class GenerationTable {
  readonly #add: StatementSync;
  readonly #newest: StatementSync;
  readonly #one: StatementSync;
  readonly #dropOldest: StatementSync;

  constructor(database: DatabaseSync) {
    this.#add = database.prepare(`INSERT INTO generation (${FACTS}, text) VALUES (?, ?, ?, ?, ?, ?, ?)`);
    this.#newest = database.prepare(`SELECT ${FACTS} FROM generation ORDER BY number DESC LIMIT ?`);
    this.#one = database.prepare(`SELECT ${FACTS}, text FROM generation WHERE number = ?`);
    // Sized in SQL: reading rows would promote short-lived texts to the old generation of the heap.
    this.#dropOldest = database.prepare(
      `DELETE FROM generation WHERE number <= (
         SELECT MAX(number) FROM (
           SELECT number, ROW_NUMBER() OVER (ORDER BY number DESC) AS position,
             SUM(octet_length(text)) OVER (ORDER BY number DESC) AS bytes
           FROM generation)
         WHERE position > ${MIN_GENERATIONS} AND (position > ${MAX_GENERATIONS} OR bytes > ${MAX_TEXT_BYTES}))`,
    );
  }

  add(record: GenerationRecord): void {
    const { generation, contentHash, routeCount, publishedMs, source, actor, text } = record;
    this.#add.run(generation, contentHash, routeCount, Math.floor(publishedMs), source, actor ?? null, text);
    this.#dropOldest.run();
  }

  newest(limit: number): readonly GenerationFacts[] {
    return this.#newest.all(limit).map((row) => factsOf(row));
  }

  find(number: number): GenerationRecord | undefined {
    const row = this.#one.get(number);
    return row === undefined ? undefined : { ...factsOf(row), text: String(row["text"]) };
  }
}

function factsOf(row: Readonly<Record<string, SQLOutputValue>>): GenerationFacts {
  return {
    generation: Number(row["number"]),
    contentHash: Number(row["content_hash"]),
    routeCount: Number(row["route_count"]),
    publishedMs: Number(row["published_ms"]),
    source: SOURCES.find((source) => source === row["source"]) ?? "startup",
    actor: typeof row["actor"] === "string" ? row["actor"] : undefined,
  };
}

/** Maximum number of rows. */
const MAX_EVENTS = 10_000;
/** An envelope has at most 16 KiB, so a page fits into one message. */
const PAGE_EVENTS = 500;

/** Critical events with their pending targets. */
export class OutboxTable {
  readonly #add: StatementSync;
  readonly #addTarget: StatementSync;
  readonly #removeTarget: StatementSync;
  readonly #acknowledge: StatementSync;
  readonly #page: StatementSync;
  readonly #targets: StatementSync;
  readonly #count: StatementSync;
  readonly #dropSurplus: StatementSync;
  readonly #dropOld: StatementSync;

  constructor(database: DatabaseSync) {
    this.#add = database.prepare(
      "INSERT INTO event (id, kind, created_ms, envelope, acked_ms) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING seq",
    );
    this.#addTarget = database.prepare(
      "INSERT INTO event_target (event_seq, target) VALUES (?, ?) ON CONFLICT DO NOTHING",
    );
    this.#removeTarget = database.prepare(
      "DELETE FROM event_target WHERE event_seq = (SELECT seq FROM event WHERE id = ?) AND target = ?",
    );
    this.#acknowledge = database.prepare(
      "UPDATE event SET acked_ms = ? WHERE id = ? AND acked_ms IS NULL AND NOT EXISTS (SELECT 1 FROM event_target WHERE event_seq = event.seq)",
    );
    this.#page = database.prepare(
      "SELECT seq, id, kind, created_ms, envelope FROM event WHERE acked_ms IS NULL AND seq > ? ORDER BY seq LIMIT ?",
    );
    this.#targets = database.prepare("SELECT target FROM event_target WHERE event_seq = ? ORDER BY target");
    this.#count = database.prepare("SELECT COUNT(*) AS events FROM event");
    // Acknowledged ones first, oldest first; then the oldest others.
    this.#dropSurplus = database.prepare(
      "DELETE FROM event WHERE seq IN (SELECT seq FROM event ORDER BY acked_ms IS NULL, seq LIMIT ?)",
    );
    this.#dropOld = database.prepare(
      "DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE acked_ms < ? LIMIT ?)",
    );
  }

  append(event: OutboxEvent, nowMs: number): void {
    const ackedMs = event.targets.length === 0 ? Math.floor(nowMs) : null;
    const row = this.#add.get(event.id, event.kind, Math.floor(event.createdMs), event.envelope, ackedMs);
    const seq = row?.["seq"];
    if (typeof seq !== "number") return;
    for (const target of event.targets) this.#addTarget.run(seq, target);
    const surplus = Number(this.#count.get()?.["events"]) - MAX_EVENTS;
    if (surplus > 0) this.#dropSurplus.run(surplus);
  }

  acknowledge(id: string, target: string, nowMs: number): void {
    this.#removeTarget.run(id, target);
    this.#acknowledge.run(Math.floor(nowMs), id);
  }

  /** A page of unacknowledged events in insertion order. */
  pending(afterSeq: number): StoreResponses["pendingEvents"] {
    const rows = this.#page.all(afterSeq, PAGE_EVENTS);
    const events = rows.map((row) => ({
      id: String(row["id"]),
      kind: String(row["kind"]),
      createdMs: Number(row["created_ms"]),
      envelope: String(row["envelope"]),
      targets: this.#targets.all(Number(row["seq"])).map((target) => String(target["target"])),
    }));
    const last = rows.at(-1);
    return { events, nextSeq: rows.length < PAGE_EVENTS ? undefined : Number(last?.["seq"]) };
  }

  /** Deletes at most `limit` events acknowledged before a time; returns their number. */
  prune(ackedBeforeMs: number, limit: number): number {
    return Number(this.#dropOld.run(Math.floor(ackedBeforeMs), limit).changes);
  }
}

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

/** API keys issued through the admin API. */
export class CredentialTable {
  readonly #all: StatementSync;
  readonly #add: StatementSync;
  readonly #retire: StatementSync;
  readonly #prune: StatementSync;

  constructor(database: DatabaseSync) {
    this.#all = database.prepare("SELECT * FROM issued_credential ORDER BY created_ms, id");
    this.#add = database.prepare(
      "INSERT INTO issued_credential (id, consumer, digest, created_ms, retire_ms) VALUES (?, ?, ?, ?, ?)",
    );
    this.#retire = database.prepare("UPDATE issued_credential SET retire_ms = ? WHERE id = ?");
    this.#prune = database.prepare(
      "DELETE FROM issued_credential WHERE id IN (SELECT id FROM issued_credential WHERE retire_ms < ? LIMIT ?)",
    );
  }

  /** Oldest first. */
  all(): readonly IssuedCredential[] {
    return this.#all.all().map((row) => ({
      id: String(row["id"]),
      consumer: String(row["consumer"]),
      digest: row["digest"] as Uint8Array,
      createdMs: Number(row["created_ms"]),
      retireMs: row["retire_ms"] === null ? undefined : Number(row["retire_ms"]),
    }));
  }

  add({ id, consumer, digest, createdMs, retireMs }: IssuedCredential): void {
    this.#add.run(id, consumer, digest, Math.floor(createdMs), retireMs === undefined ? null : Math.floor(retireMs));
  }

  retire(id: string, atMs: number): void {
    this.#retire.run(Math.floor(atMs), id);
  }

  /** Deletes keys retired before a time; returns their number. */
  prune(beforeMs: number, max: number): number {
    return Number(this.#prune.run(Math.floor(beforeMs), max).changes);
  }
}
