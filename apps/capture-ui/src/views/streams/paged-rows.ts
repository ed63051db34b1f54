import { useEffect, useState, useSyncExternalStore } from "react";

/** A page of a list, and the list's length. */
export interface RowPage<T> {
  readonly rows: readonly T[];
  readonly total: number;
}

/** Loads the rows from `offset`. `showEarly` accepts rows that lack a slower part. */
type LoadRows<T> = (
  offset: number,
  limit: number,
  signal: AbortSignal,
  showEarly: (page: RowPage<T>) => void,
) => Promise<RowPage<T>>;

interface Page<T> {
  readonly rows: readonly T[];
  isStale: boolean;
}

/**
 * A list of any length that holds only the pages near the view. Stale rows are kept until replaced. The snapshot is a
 * version number for `useSyncExternalStore`.
 */
export class PagedRows<T> {
  total = 0;
  isLoaded = false;
  error: unknown = null;
  readonly #load: LoadRows<T>;
  readonly #pageRows: number;
  readonly #maxPages: number;
  /** Ordered by last use, most recent last. */
  readonly #pages = new Map<number, Page<T>>();
  readonly #loading = new Map<number, AbortController>();
  /** Pages that became stale while being fetched. */
  readonly #staleAgain = new Set<number>();
  readonly #listeners = new Set<() => void>();
  #from = 0;
  #to = 0;
  #version = 0;

  constructor(load: LoadRows<T>, pageRows = 100, maxPages = 24) {
    this.#load = load;
    this.#pageRows = pageRows;
    this.#maxPages = maxPages;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly snapshot = (): number => this.#version;

  get heldRows(): number {
    return [...this.#pages.values()].reduce((sum, { rows }) => sum + rows.length, 0);
  }

  /** A row, or undefined while not loaded. */
  row(index: number): T | undefined {
    return this.#pages.get(Math.floor(index / this.#pageRows))?.rows[index % this.#pageRows];
  }

  /** Sets the rows `[from, to)` in view; missing or stale pages are fetched. */
  want(from: number, to: number): void {
    this.#from = from;
    this.#to = Math.min(to, this.total);
    if (this.#to <= from) return;
    for (const page of this.#wanted()) {
      const held = this.#pages.get(page);
      if (held !== undefined) {
        this.#pages.delete(page);
        this.#pages.set(page, held);
      }
      // Failed pages are not requested again with every render.
      if ((held === undefined || held.isStale) && this.error === null) void this.#fetch(page);
    }
  }

  refresh(): void {
    for (const page of this.#pages.values()) page.isStale = true;
    for (const page of this.#loading.keys()) this.#staleAgain.add(page);
    for (const page of this.#wanted()) this.#renew(page);
  }

  /** Rows were added at the end. */
  grow(): void {
    for (const page of this.#pages.values()) if (page.rows.length < this.#pageRows) page.isStale = true;
    // The last page reports the new length.
    this.#renew(Math.floor(this.total / this.#pageRows));
  }

  /** Stops fetching. */
  close(): void {
    for (const controller of this.#loading.values()) controller.abort();
    this.#loading.clear();
    this.#listeners.clear();
  }

  /** Pages in view; the first page initially. */
  #wanted(): number[] {
    const first = Math.floor(this.#from / this.#pageRows);
    const last = Math.max(first, Math.floor(Math.max(0, this.#to - 1) / this.#pageRows));
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  }

  #renew(page: number): void {
    if (this.#loading.has(page)) this.#staleAgain.add(page);
    else void this.#fetch(page);
  }

  async #fetch(page: number): Promise<void> {
    if (this.#loading.has(page)) return;
    const controller = new AbortController();
    this.#loading.set(page, controller);
    const { signal } = controller;
    const showEarly = (part: RowPage<T>): void => {
      // Complete stale rows are preferred to incomplete ones.
      if (signal.aborted || this.#pages.has(page)) return;
      this.#take(page, part, true);
      this.#changed();
    };
    try {
      const whole = await this.#load(page * this.#pageRows, this.#pageRows, signal, showEarly);
      if (signal.aborted) return;
      this.#take(page, whole, false);
      this.error = null;
    } catch (error) {
      if (signal.aborted) return;
      this.error = error;
    }
    this.#loading.delete(page);
    if (this.#staleAgain.delete(page) && this.error === null) void this.#fetch(page);
    this.#changed();
  }

  #take(page: number, { rows, total }: RowPage<T>, isStale: boolean): void {
    this.total = total;
    this.isLoaded = true;
    this.#pages.delete(page);
    this.#pages.set(page, { rows, isStale });
    const wanted = new Set(this.#wanted());
    for (const other of this.#pages.keys()) {
      if (this.#pages.size <= this.#maxPages) break;
      if (!wanted.has(other) && other !== page) this.#pages.delete(other);
    }
  }

  #changed(): void {
    this.#version += 1;
    for (const listener of this.#listeners) listener();
  }
}

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
): { readonly trigger: () => void; readonly stop: () => void } {
  let timer: number | undefined;
  return {
    trigger: () => {
      timer ??= window.setTimeout(() => {
        timer = undefined;
        action();
      }, everyMs);
    },
    stop: () => window.clearTimeout(timer),
  };
}
