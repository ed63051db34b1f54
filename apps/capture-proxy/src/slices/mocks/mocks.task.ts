import { MOCK_LIMITS } from "@headworks/capture-contract";
import type { Clock, SliceTask } from "#slice.ts";
import type { Database, SqlRow } from "#storage/database.ts";
import type { MockProgress } from "./mock-rule.ts";

/** Hits are written in batches, one transaction each; a crash loses at most this interval. */
const PERSIST_EVERY_MS = 2000;
const MAX_URL_LENGTH = 4096;

/**
 * Hit counts, history and sequence indexes, kept in memory and written periodically. After a crash an unwritten index
 * is used again: a sequence may repeat responses but never skips one.
 */
export interface MockHits {
  readonly task: SliceTask;
  /** A rule's mutable state, created on first use. After a change the caller calls `touched`. */
  readonly progress: (id: string) => MockProgress;
  readonly touched: (id: string) => void;
  readonly answered: (hit: StoredHit) => void;
  /** Oldest first. */
  readonly history: () => readonly StoredHit[];
  readonly stats: (id: string) => Readonly<HitStats> | undefined;
  readonly forget: (id: string) => void;
  readonly clearHistory: () => void;
  /** Drops unwritten state after the stored rules were replaced. */
  readonly reload: (progress: ReadonlyMap<string, Readonly<MockProgress>>) => void;
  readonly persist: () => void;
}

export function createMockHits(parts: {
  readonly store: HitStore;
  readonly progress: ReadonlyMap<string, Readonly<MockProgress>>;
  readonly clock: Clock;
  readonly onFailure: (error: unknown) => void;
}): MockHits {
  const { store, clock } = parts;
  const progress = new Map([...parts.progress].map(copied));
  const stats = store.stats();
  const history = store.hits();
  let unsaved: StoredHit[] = [];
  const moved = new Set<string>();
  const counted = new Set<string>();

  const persist = (): void => {
    if (moved.size === 0 && counted.size === 0 && unsaved.length === 0) return;
    try {
      store.save({
        hits: unsaved.slice(-MOCK_LIMITS.history),
        progress: only(progress, moved),
        stats: only(stats, counted),
      });
    } catch (error) {
      // A failed batch is retried; only its history is bounded.
      unsaved = unsaved.slice(-MOCK_LIMITS.history);
      return parts.onFailure(error);
    }
    unsaved = [];
    moved.clear();
    counted.clear();
  };
  return {
    history: () => history.slice(-MOCK_LIMITS.history),
    task: { start: (signal) => persistNowAndThen(clock, persist, signal) },
    progress: (id) => progressOf(progress, id),
    touched: (id) => {
      moved.add(id);
    },
    answered: (given) => {
      const hit = { ...given, url: given.url.slice(0, MAX_URL_LENGTH) };
      history.push(hit);
      unsaved.push(hit);
      // Removing one element at a time would copy the array for each hit.
      if (history.length > 2 * MOCK_LIMITS.history) history.splice(0, history.length - MOCK_LIMITS.history);
      if (unsaved.length > 2 * MOCK_LIMITS.history) unsaved = unsaved.slice(-MOCK_LIMITS.history);
      stats.set(hit.mockId, withHit(stats.get(hit.mockId), hit));
      counted.add(hit.mockId);
    },
    stats: (id) => stats.get(id),
    forget: (id) => {
      progress.delete(id);
      stats.delete(id);
      moved.delete(id);
      counted.delete(id);
    },
    clearHistory: () => {
      store.clear();
      history.length = 0;
      unsaved = [];
      stats.clear();
      counted.clear();
    },
    reload: (stored) => {
      moved.clear();
      counted.clear();
      refill(progress, [...stored].map(copied));
      refill(stats, [...store.stats()]);
    },
    persist,
  };
}

function progressOf(progress: Map<string, MockProgress>, id: string): MockProgress {
  const known = progress.get(id);
  if (known !== undefined) return known;
  const made = { hits: 0, nextIndex: 0 };
  progress.set(id, made);
  return made;
}

function copied([id, { hits, nextIndex }]: readonly [string, Readonly<MockProgress>]): [string, MockProgress] {
  return [id, { hits, nextIndex }];
}

function refill<T>(map: Map<string, T>, entries: readonly (readonly [string, T])[]): void {
  map.clear();
  for (const [id, value] of entries) map.set(id, value);
}

function persistNowAndThen(clock: Clock, persist: () => void, signal: AbortSignal): void {
  const stop = clock.every(PERSIST_EVERY_MS, persist);
  signal.addEventListener("abort", () => {
    stop();
    persist();
  });
}

function only<T>(all: ReadonlyMap<string, T>, ids: ReadonlySet<string>): Map<string, T> {
  const chosen = new Map<string, T>();
  for (const id of ids) {
    const value = all.get(id);
    if (value !== undefined) chosen.set(id, value);
  }
  return chosen;
}

function withHit(before: HitStats | undefined, { timeMs, atMs }: StoredHit): HitStats {
  if (before === undefined) {
    return { total: 1, sumMs: timeMs, minMs: timeMs, maxMs: timeMs, firstMs: atMs, lastMs: atMs };
  }
  return {
    total: before.total + 1,
    sumMs: before.sumMs + timeMs,
    minMs: Math.min(before.minMs, timeMs),
    maxMs: Math.max(before.maxMs, timeMs),
    firstMs: before.firstMs,
    lastMs: atMs,
  };
}

export interface StoredHit {
  readonly mockId: string;
  readonly atMs: number;
  readonly url: string;
  readonly method: string;
  readonly status: number;
  readonly timeMs: number;
  readonly index: number | null;
}

interface HitStats {
  total: number;
  sumMs: number;
  minMs: number;
  maxMs: number;
  firstMs: number;
  lastMs: number;
}

interface HitBatch {
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
