// Tested by breakpoints.slice.test.ts
import type { Clock, SliceWorker } from "#slice.ts";
import type { BreakpointsStore } from "./breakpoints.store.ts";

/** Hits cost a transaction for each batch, not for each pause; a crash loses at most this much of the counts. */
const PERSIST_EVERY_MS = 2000;

export interface HitCounter {
  readonly worker: SliceWorker;
  hit(ruleId: string): void;
  /** Hits that are not persisted yet. */
  pending(ruleId: string): number;
  forget(ruleId: string): void;
  forgetAll(): void;
}

/** Counts hits in memory and adds them to the stored counts now and then, and once more at the end. */
export function createHitCounter(parts: {
  store: BreakpointsStore;
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
    hit: (ruleId) => {
      hits.set(ruleId, (hits.get(ruleId) ?? 0) + 1);
    },
    pending: (ruleId) => hits.get(ruleId) ?? 0,
    forget: (ruleId) => {
      hits.delete(ruleId);
    },
    forgetAll: () => hits.clear(),
  };
}
