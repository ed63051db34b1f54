import { MOCK_LIMITS } from "@headworks/capture-contract";
import type { Clock, SliceTask } from "#slice.ts";
import type { HitStats, HitStore, StoredHit } from "./hit-store.ts";
import type { MockProgress } from "./response-choice.ts";

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
