import { MOCK_LIMITS } from "@headworks/capture-contract";
import type { Database, SqlRow } from "#storage/database.ts";
import type { MockProgress } from "./response-choice.ts";

export interface StoredHit {
  readonly mockId: string;
  readonly atMs: number;
  readonly url: string;
  readonly method: string;
  readonly status: number;
  readonly timeMs: number;
  readonly index: number | null;
}

export interface HitStats {
  total: number;
  sumMs: number;
  minMs: number;
  maxMs: number;
  firstMs: number;
  lastMs: number;
}

export interface HitBatch {
  readonly hits: readonly StoredHit[];
  readonly progress: ReadonlyMap<string, Readonly<MockProgress>>;
  readonly stats: ReadonlyMap<string, Readonly<HitStats>>;
}

export interface HitStore {
  /** Oldest first. */
  hits(): StoredHit[];
  stats(): Map<string, HitStats>;
  /** One transaction; parts of deleted rules are skipped. */
  save(batch: HitBatch): void;
  clear(): void;
}

export function createHitStore(database: Database): HitStore {
  const hits = database.prepare("SELECT * FROM mock_hits ORDER BY number");
  const stats = database.prepare("SELECT * FROM mock_hit_stats");
  const add = database.prepare(
    `INSERT INTO mock_hits (mock_id, at_ms, request_url, request_method, response_status, response_time_ms,
       response_index) VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const trim = database.prepare("DELETE FROM mock_hits WHERE number <= (SELECT MAX(number) FROM mock_hits) - ?");
  const progress = database.prepare("UPDATE mock_rules SET hit_count = ?, next_index = ? WHERE id = ?");
  const saveStats = database.prepare(
    `INSERT OR REPLACE INTO mock_hit_stats (mock_id, total_hits, sum_ms, min_ms, max_ms, first_ms, last_ms)
     SELECT id, ?, ?, ?, ?, ?, ? FROM mock_rules WHERE id = ?`,
  );
  return {
    hits: () => hits.all().map(toHit),
    stats: () => new Map(stats.all().map((row) => [String(row["mock_id"]), toStats(row)])),
    save: (batch) =>
      database.transaction(() => {
        for (const { mockId, atMs, url, method, status, timeMs, index } of batch.hits) {
          add.run(mockId, atMs, url, method, status, timeMs, index);
        }
        if (batch.hits.length > 0) trim.run(MOCK_LIMITS.history);
        for (const [id, { hits: count, nextIndex }] of batch.progress) progress.run(count, nextIndex, id);
        for (const [id, { total, sumMs, minMs, maxMs, firstMs, lastMs }] of batch.stats) {
          saveStats.run(total, sumMs, minMs, maxMs, firstMs, lastMs, id);
        }
      }),
    clear: () =>
      database.transaction(() => {
        database.exec("DELETE FROM mock_hits");
        database.exec("DELETE FROM mock_hit_stats");
      }),
  };
}

function toHit(row: SqlRow): StoredHit {
  const index = row["response_index"];
  return {
    mockId: String(row["mock_id"]),
    atMs: Number(row["at_ms"]),
    url: String(row["request_url"]),
    method: String(row["request_method"]),
    status: Number(row["response_status"]),
    timeMs: Number(row["response_time_ms"]),
    index: index === null ? null : Number(index),
  };
}

function toStats(row: SqlRow): HitStats {
  return {
    total: Number(row["total_hits"]),
    sumMs: Number(row["sum_ms"]),
    minMs: Number(row["min_ms"]),
    maxMs: Number(row["max_ms"]),
    firstMs: Number(row["first_ms"]),
    lastMs: Number(row["last_ms"]),
  };
}
