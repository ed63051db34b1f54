import { useEffect, useState, useSyncExternalStore } from "react";
import { PagedRows } from "./paged-rows.ts";
import type { LoadRows } from "./paged-rows.ts";

/** A list fetched on demand; another `key` is another list. `load` is taken from the first render of a key. */
export function usePagedRows<T>(key: string, load: LoadRows<T>): PagedRows<T> {
  const [current, setCurrent] = useState(() => ({ key, rows: new PagedRows(load) }));
  let { rows } = current;
  if (current.key !== key) {
    rows = new PagedRows(load);
    setCurrent({ key, rows });
  }
  useEffect(() => {
    rows.refresh();
    return () => rows.close();
  }, [rows]);
  useSyncExternalStore(rows.subscribe, rows.snapshot);
  return rows;
}

/** Calls `action` at most once per `everyMs`, after a request. */
export function throttled(
  action: () => void,
  everyMs: number,
): { readonly ask: () => void; readonly stop: () => void } {
  let timer: number | undefined;
  return {
    ask: () => {
      timer ??= window.setTimeout(() => {
        timer = undefined;
        action();
      }, everyMs);
    },
    stop: () => window.clearTimeout(timer),
  };
}
