/** Hits are written in batches, one transaction each; a crash loses at most this interval of counts. */
const PERSIST_EVERY_MS = 2000;

export interface HitCounter {
  /** Writes counts periodically, and a last time when the signal aborts. */
  start(signal: AbortSignal): void;
  hit(ruleId: string): void;
  pending(ruleId: string): number;
  forget(ruleId: string): void;
  forgetAll(): void;
}

/** Counts in memory and passes batches to `addHits`; a batch that fails is reported and retried. */
export function createHitCounter(parts: {
  readonly addHits: (hits: ReadonlyMap<string, number>) => void;
  readonly every: (intervalMs: number, callback: () => void) => () => void;
  readonly onFailure: (error: unknown) => void;
}): HitCounter {
  let hits = new Map<string, number>();
  const persist = (): void => {
    if (hits.size === 0) return;
    const batch = hits;
    hits = new Map();
    try {
      parts.addHits(batch);
    } catch (error) {
      for (const [id, count] of batch) hits.set(id, (hits.get(id) ?? 0) + count);
      parts.onFailure(error);
    }
  };
  return {
    start: (signal) => {
      const stop = parts.every(PERSIST_EVERY_MS, persist);
      signal.addEventListener("abort", () => {
        stop();
        persist();
      });
    },
    hit: (ruleId) => {
      hits.set(ruleId, (hits.get(ruleId) ?? 0) + 1);
    },
    pending: (ruleId) => hits.get(ruleId) ?? 0,
    forget: (ruleId) => {
      hits.delete(ruleId);
    },
    forgetAll: () => {
      hits.clear();
    },
  };
}
