import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** Rows of a long list, loaded in blocks on demand. */
export interface Blocks<T> {
  /** A row, if loaded. */
  readonly row: (index: number) => T | undefined;
  /** Loads the missing rows of `[from, to)`. */
  readonly want: (from: number, to: number) => void;
}

const KEPT_BLOCKS = 40;

/**
 * Loads rows through `load` in blocks. A change of `version` makes all rows stale; stale rows are kept until replaced,
 * to avoid flicker. A partial last block is loaded again after the list has grown.
 */
export function useBlocks<T>(
  load: (from: number, to: number) => Promise<readonly T[]>,
  version: string,
  blockRows = 200,
): Blocks<T> {
  const [, setTick] = useState(0);
  const held = useRef(new Map<number, { readonly version: string; readonly rows: readonly T[] }>());
  const requested = useRef(new Map<number, string>());
  const latest = useRef({ load, version });
  // Runs before the effects of child components, which request rows.
  useLayoutEffect(() => {
    latest.current = { load, version };
  });
  const alive = useRef(true);
  useEffect(() => {
    alive.current = true;
    return () => {
      alive.current = false;
    };
  }, []);

  const fetchBlock = useCallback(
    (block: number, needed: number) => {
      const { load: loadRows, version: current } = latest.current;
      const key = `${current}:${needed}`;
      if (requested.current.get(block) === key) return;
      requested.current.set(block, key);
      loadRows(block * blockRows, (block + 1) * blockRows).then(
        (rows) => {
          if (!alive.current || latest.current.version !== current) return;
          held.current.delete(block);
          held.current.set(block, { version: current, rows });
          for (const old of held.current.keys()) {
            if (held.current.size <= KEPT_BLOCKS) break;
            held.current.delete(old);
            requested.current.delete(old);
          }
          setTick((tick) => tick + 1);
        },
        () => requested.current.delete(block),
      );
    },
    [blockRows],
  );

  const row = useCallback(
    (index: number) => held.current.get(Math.floor(index / blockRows))?.rows[index % blockRows],
    [blockRows],
  );
  const want = useCallback(
    (from: number, to: number) => {
      for (let block = Math.floor(from / blockRows); block * blockRows < to; block++) {
        const needed = Math.min(to - block * blockRows, blockRows);
        const found = held.current.get(block);
        const fresh = found !== undefined && found.version === latest.current.version;
        if (!fresh || found.rows.length < needed) fetchBlock(block, fresh ? needed : 0);
      }
    },
    [blockRows, fetchBlock],
  );
  return { row, want };
}
