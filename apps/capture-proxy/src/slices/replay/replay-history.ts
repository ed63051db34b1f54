import { readJson } from "@headworks/json";
import type { ReplayResult } from "@headworks/capture-contract";
import type { Database, SqlRow, SqlValue } from "#storage/database.ts";
import type { BatchSummary } from "./batch-summary.ts";

export type BatchState = "running" | "done" | "cancelled" | "interrupted";

export interface StoredBatch {
  readonly id: string;
  readonly savedRequestId: string | null;
  readonly sourceEntryId: string | null;
  readonly state: BatchState;
  readonly iterations: number;
  readonly concurrency: number;
  readonly delayMs: number | null;
  readonly summary: BatchSummary | undefined;
  readonly startedAtMs: number;
  readonly finishedAtMs: number | null;
}

export interface HistoryFilter {
  /** Undefined for replays outside of batches. */
  readonly batchId: string | undefined;
  readonly savedRequestId: string | undefined;
}

/** Retention; the oldest are removed first. */
export interface HistoryBounds {
  readonly singles: number;
  readonly batches: number;
  readonly batchResults: number;
}

/** Replays and batches in SQLite; a change is durable when its call returns. */
export interface HistoryStore {
  add(results: readonly ReplayResult[]): void;
  /** Newest first; for a batch in order of iterations. */
  list(
    filter: HistoryFilter,
    limit: number,
    offset: number,
  ): { readonly results: ReplayResult[]; readonly total: number };
  get(id: string): ReplayResult | undefined;
  /** Makes room for the batch's results and inserts it; false when the id is taken. */
  begin(batch: StoredBatch): boolean;
  end(id: string, state: BatchState, summary: BatchSummary, finishedAtMs: number): void;
  batch(id: string): StoredBatch | undefined;
  batches(limit: number, offset: number): { readonly batches: StoredBatch[]; readonly total: number };
  unfinished(): StoredBatch[];
  /** Removes everything except running batches and their results. */
  clear(): void;
}

export function createHistoryStore(database: Database, bounds: HistoryBounds): HistoryStore {
  const insert = database.prepare(
    "INSERT INTO replay_result (id, batch_id, iteration, saved_request_id, result) VALUES (?, ?, ?, ?, ?)",
  );
  const prune = database.prepare(
    "DELETE FROM replay_result WHERE batch_id IS NULL AND seq <= (SELECT seq FROM replay_result WHERE batch_id IS NULL ORDER BY seq DESC LIMIT 1 OFFSET ?)",
  );
  const get = database.prepare("SELECT result FROM replay_result WHERE id = ?");
  return {
    add: (results) =>
      database.transaction(() => {
        for (const result of results) {
          const { id, batch_id: batchId, iteration, saved_request_id: savedId } = result;
          insert.run(id, batchId, iteration, savedId, JSON.stringify(result));
        }
        prune.run(bounds.singles);
      }),
    list: (filter, limit, offset) => listed(database, filter, limit, offset),
    get: (id) => {
      const row = get.get(id);
      return row && resultOfRow(row);
    },
    ...batchesIn(database, bounds),
    clear: () =>
      database.transaction(() => {
        const others = "IN (SELECT id FROM replay_batch WHERE state <> 'running')";
        database.exec(`DELETE FROM replay_result WHERE batch_id IS NULL OR batch_id ${others}`);
        database.exec("DELETE FROM replay_batch WHERE state <> 'running'");
      }),
  };
}

function listed(
  database: Database,
  { batchId, savedRequestId }: HistoryFilter,
  limit: number,
  offset: number,
): { results: ReplayResult[]; total: number } {
  const conditions = [batchId === undefined ? "batch_id IS NULL" : "batch_id = ?"];
  const values: SqlValue[] = batchId === undefined ? [] : [batchId];
  if (savedRequestId !== undefined) {
    conditions.push("saved_request_id = ?");
    values.push(savedRequestId);
  }
  const where = conditions.join(" AND ");
  const order = batchId === undefined ? "seq DESC" : "iteration";
  const total = database.prepare(`SELECT count(*) AS n FROM replay_result WHERE ${where}`).get(...values);
  const rows = database
    .prepare(`SELECT result FROM replay_result WHERE ${where} ORDER BY ${order} LIMIT ? OFFSET ?`)
    .all(...values, limit, offset);
  return { results: rows.map(resultOfRow), total: Number(total?.["n"]) };
}

function resultOfRow(row: SqlRow): ReplayResult {
  return readJson(String(row["result"])) as unknown as ReplayResult;
}

function batchesIn(
  database: Database,
  bounds: HistoryBounds,
): Pick<HistoryStore, "begin" | "end" | "batch" | "batches" | "unfinished"> {
  const insert = database.prepare(
    "INSERT INTO replay_batch (id, saved_request_id, source_entry_id, state, iterations, concurrency, delay_ms, started_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING",
  );
  const end = database.prepare("UPDATE replay_batch SET state = ?, summary = ?, finished_ms = ? WHERE id = ?");
  const get = database.prepare("SELECT * FROM replay_batch WHERE id = ?");
  const list = database.prepare("SELECT * FROM replay_batch ORDER BY seq DESC LIMIT ? OFFSET ?");
  const count = database.prepare("SELECT count(*) AS n FROM replay_batch");
  const unfinished = database.prepare("SELECT * FROM replay_batch WHERE state = 'running'");
  const counts = database.prepare(
    "SELECT b.id, b.state, (SELECT count(*) FROM replay_result r WHERE r.batch_id = b.id) AS n FROM replay_batch b ORDER BY b.seq DESC",
  );
  const removeBatch = database.prepare("DELETE FROM replay_batch WHERE id = ?");
  const removeResults = database.prepare("DELETE FROM replay_result WHERE batch_id = ?");
  const makeRoom = (newResults: number): void => {
    let kept = 1;
    let results = newResults;
    for (const { id, state, n } of counts.all()) {
      kept += 1;
      results += Number(n);
      if ((kept <= bounds.batches && results <= bounds.batchResults) || state === "running") continue;
      removeResults.run(id ?? null);
      removeBatch.run(id ?? null);
    }
  };
  return {
    begin: (batch) =>
      database.transaction(() => {
        const { id, savedRequestId, sourceEntryId, state, iterations, concurrency, delayMs, startedAtMs } = batch;
        if (get.get(id) !== undefined) return false;
        makeRoom(iterations);
        insert.run(id, savedRequestId, sourceEntryId, state, iterations, concurrency, delayMs, startedAtMs);
        return true;
      }),
    end: (id, state, summary, finishedAtMs) => void end.run(state, JSON.stringify(summary), finishedAtMs, id),
    batch: (id) => {
      const row = get.get(id);
      return row && batchOfRow(row);
    },
    batches: (limit, offset) => ({
      batches: list.all(limit, offset).map(batchOfRow),
      total: Number(count.get()?.["n"]),
    }),
    unfinished: () => unfinished.all().map(batchOfRow),
  };
}

function batchOfRow(row: SqlRow): StoredBatch {
  const text = (name: string): string | null => (row[name] === null ? null : String(row[name]));
  const number = (name: string): number | null => (row[name] === null ? null : Number(row[name]));
  const summary = text("summary");
  return {
    id: String(row["id"]),
    savedRequestId: text("saved_request_id"),
    sourceEntryId: text("source_entry_id"),
    state: String(row["state"]) as BatchState,
    iterations: Number(row["iterations"]),
    concurrency: Number(row["concurrency"]),
    delayMs: number("delay_ms"),
    summary: summary === null ? undefined : (JSON.parse(summary) as BatchSummary),
    startedAtMs: Number(row["started_ms"]),
    finishedAtMs: number("finished_ms"),
  };
}
