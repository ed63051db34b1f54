import type { Clock, SliceWorker } from "#slice.ts";
import type { BlocklistStore } from "./blocklist.store.ts";

/** Hits cost a transaction for each batch, not for each request; a crash loses at most this much of the counts. */
const PERSIST_EVERY_MS = 2000;

export interface HitCounter {
  readonly worker: SliceWorker;
  hit(entryId: string): void;
  /** Hits that are not persisted yet. */
  pending(entryId: string): number;
  forget(entryId: string): void;
  forgetAll(): void;
  persist(): void;
}

/** Counts hits in memory and adds them to the stored counts now and then, and once more at the end. */
export function createHitCounter(parts: {
  store: BlocklistStore;
  clock: Clock;
  onFailure: (error: unknown) => void;
}): HitCounter {
  let hits = new Map<string, number>();
  const persist = (): void => {
    if (hits.size === 0) return;
    const batch = hits;
    hits = new Map();
    try {
      parts.store.addHits(batch);
    } catch (error) {
      for (const [id, count] of batch) hits.set(id, (hits.get(id) ?? 0) + count);
      parts.onFailure(error);
    }
  };
  return {
    worker: {
      start: (signal) => {
        const stop = parts.clock.every(PERSIST_EVERY_MS, persist);
        signal.addEventListener("abort", () => {
          stop();
          persist();
        });
      },
    },
    hit: (entryId) => {
      hits.set(entryId, (hits.get(entryId) ?? 0) + 1);
    },
    pending: (entryId) => hits.get(entryId) ?? 0,
    forget: (entryId) => {
      hits.delete(entryId);
    },
    forgetAll: () => hits.clear(),
    persist,
  };
}
