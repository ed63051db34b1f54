import type { SORT_COLUMNS, TrafficEvent, TrafficSnapshot } from "@headworks/capture-contract";
import { RowStore } from "./row-store.ts";

export type SortColumn = (typeof SORT_COLUMNS)[number];

/** What a list shows, and in which order. */
export interface ListScope {
  /** Text of the query language; empty for everything. */
  readonly q: string;
  readonly sort: SortColumn;
  readonly order: "asc" | "desc";
}

export interface Window {
  readonly total: number;
  /** False while the service has not looked at everything: there may be more. */
  readonly total_complete: boolean;
  readonly rows: readonly TrafficSnapshot[];
}

/** Fetches rows `offset` to `offset + limit` of a list. Rejects when the signal aborts. */
export type WindowSource = (scope: ListScope, offset: number, limit: number, signal: AbortSignal) => Promise<Window>;

/** Timers, so that tests can move the time. */
export interface ListClock {
  now(): number;
  /** Calls back once after `ms`; the answer cancels it. */
  after(ms: number, callback: () => void): () => void;
}

/** Rows per request. */
const WINDOW_SIZE = 200;
const CAPACITY = 12_000;
/** Rows beyond the visible ones that are wanted too. */
const MARGIN = 40;
/** At most ten changes a second reach the screen. */
const FLUSH_MS = 100;
/** While somebody drags the scroll bar, only every so often a window is asked for. */
const FETCH_GAP_MS = 40;
/** Lists that cannot be merged from events are fetched again at most this often. */
const REFRESH_MS = 1000;

interface Flight {
  readonly controller: AbortController;
  /** First position that was asked for, and its place in the list of the service. */
  readonly first: number;
  readonly offset: number;
  /** Ordinal of the newest row, and how many rows had been taken out, when it was sent. */
  readonly head: number;
  readonly removed: number;
  /** Events may have been missed before it. */
  readonly afterGap: boolean;
}

/**
 * A list on the server, seen through windows, kept current by events. The newest-first list without a filter is merged
 * exactly: additions go on top, changes in place. Every other list takes changes of rows it knows in place and is
 * fetched again soon. While the reader is not at the top, additions stay hidden (`hidden` counts them) and no visible row
 * moves.
 */
export class TrafficList {
  readonly #source: WindowSource;
  readonly #clock: ListClock;
  readonly #rows = new RowStore(CAPACITY);
  readonly #watchers = new Set<() => void>();
  #scope: ListScope = { q: "", sort: "seq", order: "desc" };
  #version = 0;
  #head = 0;
  #total = 0;
  #isTotalKnown = true;
  #hidden = 0;
  #removed = 0;
  #following = true;
  #range = { first: 0, last: 60 };
  #loaded = false;
  #error: unknown = undefined;
  #flight: Flight | undefined;
  #events: TrafficEvent[] = [];
  #cancelFlush: (() => void) | undefined;
  #cancelFetch: (() => void) | undefined;
  #cancelRefresh: (() => void) | undefined;
  #lastFetch = -Infinity;
  #lastRefresh = -Infinity;
  #unseen = 0;

  constructor(source: WindowSource, clock: ListClock) {
    this.#source = source;
    this.#clock = clock;
  }

  /** Grows with every visible change. */
  readonly version = (): number => this.#version;

  readonly subscribe = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  get scope(): ListScope {
    return this.#scope;
  }
  /** Rows that are shown, loaded or not. */
  get length(): number {
    return Math.max(0, this.#total - this.#hidden);
  }
  /** Whether `length` is that of the whole list; until then it grows. */
  get isLengthKnown(): boolean {
    return this.#isTotalKnown;
  }
  /** Rows that arrived since the reader left the top; for lists with another order, events that may concern it. */
  get newCount(): number {
    return this.#newestFirst ? this.#hidden : this.#unseen;
  }
  /** Whether the first window has been answered. */
  get loaded(): boolean {
    return this.#loaded;
  }
  /** Why the last request failed; undefined after a success. */
  get error(): unknown {
    return this.#error;
  }
  get #newestFirst(): boolean {
    return this.#scope.sort === "seq" && this.#scope.order === "desc";
  }
  get #exact(): boolean {
    return this.#newestFirst && this.#scope.q === "";
  }

  /** The row at a position, 0 at the top, if it is loaded. */
  rowAt(index: number): TrafficSnapshot | undefined {
    return this.#rows.get(this.#ordinal(index));
  }

  /** A number that stays with the row at a position while rows come on top of it. */
  ordinalAt(index: number): number {
    return this.#ordinal(index);
  }

  /** Where an entry is, if it is loaded and shown. */
  indexOf(id: string): number | undefined {
    const ordinal = this.#rows.ordinalOf(id);
    const index = ordinal === undefined ? -1 : this.#head - this.#hidden - ordinal;
    return index >= 0 ? index : undefined;
  }

  /** A loaded row by id, shown or not. */
  byId(id: string): TrafficSnapshot | undefined {
    const ordinal = this.#rows.ordinalOf(id);
    return ordinal === undefined ? undefined : this.#rows.get(ordinal);
  }

  #ordinal(index: number): number {
    return this.#head - this.#hidden - index;
  }

  /** Shows another list; the rows of the old one stay until the first window of the new one is here. */
  setScope(scope: ListScope): void {
    if (
      this.#loaded &&
      scope.q === this.#scope.q &&
      scope.sort === this.#scope.sort &&
      scope.order === this.#scope.order
    ) {
      return;
    }
    this.#scope = scope;
    this.reload();
  }

  /** Forgets everything and starts at the top. */
  reload(): void {
    this.#abort();
    this.#events = [];
    this.#loaded = false;
    this.#hidden = 0;
    this.#unseen = 0;
    this.#range = { first: 0, last: 60 };
    this.#fetch(0);
    this.#changed();
  }

  /** Tells which rows are on screen, so that they are loaded. */
  setRange(first: number, last: number): void {
    if (first === this.#range.first && last === this.#range.last) return;
    this.#range = { first, last };
    this.#ensure();
  }

  /** Whether the reader is at the top; then additions appear at once. */
  setFollowing(following: boolean): void {
    if (this.#following === following) return;
    this.#following = following;
    if (following) this.showNew();
  }

  /** Shows the rows that arrived meanwhile. */
  showNew(): void {
    if (this.#newestFirst) {
      if (this.#hidden === 0) return;
      this.#hidden = 0;
    } else {
      if (this.#unseen === 0) return;
      this.#unseen = 0;
      this.#refresh();
    }
    this.#ensure();
    this.#changed();
  }

  /** Takes events of the live channel; they reach the screen at the next flush. */
  apply(events: readonly TrafficEvent[]): void {
    this.#events.push(...events);
    this.#cancelFlush ??= this.#clock.after(FLUSH_MS, () => {
      this.#cancelFlush = undefined;
      this.#flush();
    });
  }

  /** Takes entries out at once, before the service says so. */
  remove(ids: readonly string[]): void {
    this.#remove(ids);
    this.#ensure();
    this.#changed();
  }

  /** Fetches what is on screen again: events were missed. */
  resync(): void {
    if (this.#loaded) this.#fetch(this.#windowStart(), true);
    else this.reload();
  }

  /**
   * Ids of the rows from one position to another, both included, also of those that are not loaded; at most `limit`.
   */
  async idsBetween(from: number, to: number, limit: number): Promise<readonly string[]> {
    const first = Math.max(0, Math.min(from, to));
    const last = Math.min(this.length - 1, Math.max(from, to), first + limit - 1);
    const ids: string[] = [];
    for (let index = first; index <= last; index += 1) {
      const row = this.rowAt(index);
      if (row !== undefined) {
        ids.push(row.id);
        continue;
      }
      const wanted = Math.min(1000, last - index + 1);
      const signal = new AbortController().signal;
      const { rows } = await this.#source(this.#scope, index + this.#hidden, wanted, signal);
      ids.push(...rows.map((loaded) => loaded.id));
      if (rows.length < wanted) break;
      index += rows.length - 1;
    }
    return [...new Set(ids)];
  }

  /** Stops timers and requests. */
  dispose(): void {
    this.#abort();
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
  }

  #changed(): void {
    this.#version += 1;
    for (const watcher of this.#watchers) watcher();
  }

  #abort(): void {
    this.#flight?.controller.abort();
    this.#flight = undefined;
    this.#cancelFetch?.();
    this.#cancelFetch = undefined;
    this.#cancelRefresh?.();
    this.#cancelRefresh = undefined;
  }

  #flush(): void {
    const events = this.#events;
    this.#events = [];
    let stale = false;
    for (const event of events) stale = this.#merge(event) || stale;
    if (this.#loaded && stale) this.#scheduleRefresh();
    if (this.#newestFirst && this.#following) this.#hidden = 0;
    this.#rows.trim(this.#ordinal((this.#range.first + this.#range.last) / 2));
    this.#ensure();
    this.#changed();
  }

  /** Answers whether the list has to be fetched again to be right. */
  #merge(event: TrafficEvent): boolean {
    switch (event.type) {
      case "Added":
        return this.#add(event.data);
      case "Updated": {
        const known = this.#rows.update(event.data);
        if (this.#exact) return false;
        // A change can bring an entry into a filter, out of it, or to another place.
        return this.#scope.q !== "" || (known && this.#scope.sort !== "seq");
      }
      case "Deleted":
        return this.#remove(event.data);
      case "Cleared":
        this.#rows.clear();
        this.#total = 0;
        this.#isTotalKnown = true;
        this.#hidden = 0;
        this.#unseen = 0;
        return this.#scope.q !== "";
      case "CountUpdate":
        if (this.#scope.q === "") this.#total = Math.max(this.#hidden, event.data);
        return false;
    }
  }

  #add(row: TrafficSnapshot): boolean {
    const known = this.#rows.ordinalOf(row.id);
    if (known !== undefined && known <= this.#head) {
      this.#rows.update(row);
      return false;
    }
    if (!this.#exact) {
      this.#unseen += 1;
      return true;
    }
    this.#head += 1;
    this.#total += 1;
    this.#hidden += 1;
    this.#rows.put(this.#head, row);
    return false;
  }

  /** Entries nobody knows here are taken for the oldest ones, which the quota removes. */
  #remove(ids: readonly string[]): boolean {
    const shownTop = this.#head - this.#hidden;
    const gone = this.#rows.remove(ids);
    const removed = this.#scope.q === "" ? ids.length : gone.length;
    this.#removed += removed;
    this.#total = Math.max(0, this.#total - removed);
    this.#hidden = Math.max(0, this.#hidden - gone.filter((ordinal) => ordinal > shownTop).length);
    return gone.length < ids.length;
  }

  #scheduleRefresh(): void {
    if (this.#cancelRefresh !== undefined) return;
    // Another order would shuffle the rows under the reader's eyes; the "new" button does it.
    if (!this.#following && !this.#newestFirst && this.#scope.order === "desc") return;
    const wait = Math.max(FLUSH_MS, this.#lastRefresh + REFRESH_MS - this.#clock.now());
    this.#cancelRefresh = this.#clock.after(wait, () => {
      this.#cancelRefresh = undefined;
      this.#refresh();
    });
  }

  #refresh(): void {
    this.#lastRefresh = this.#clock.now();
    if (this.#following) this.#unseen = 0;
    this.#fetch(this.#windowStart());
  }

  #windowStart(): number {
    const { first, last } = this.#range;
    return Math.max(0, Math.round((first + last) / 2 - WINDOW_SIZE / 2));
  }

  /** Asks for what is visible and missing, but not on every frame of a fast scroll. */
  #ensure(): void {
    if (!this.#loaded || this.#cancelFetch !== undefined || !this.#missing()) return;
    const wait = this.#lastFetch + FETCH_GAP_MS - this.#clock.now();
    const start = () => {
      this.#cancelFetch = undefined;
      if (this.#missing()) this.#fetch(this.#windowStart());
    };
    if (wait <= 0) start();
    else this.#cancelFetch = this.#clock.after(wait, start);
  }

  #missing(): boolean {
    const first = Math.max(0, this.#range.first - MARGIN);
    const last = Math.min(this.length - 1, this.#range.last + MARGIN);
    const flight = this.#flight;
    for (let index = first; index <= last; index += 1) {
      if (this.rowAt(index) !== undefined) continue;
      return flight === undefined || index < flight.first || index >= flight.first + WINDOW_SIZE;
    }
    return false;
  }

  #fetch(first: number, afterGap = false): void {
    this.#flight?.controller.abort();
    const controller = new AbortController();
    const offset = first + this.#hidden;
    // An answer that was to close a gap and is given up leaves the gap to the next one.
    const gap = afterGap || this.#flight?.afterGap === true;
    const flight: Flight = { controller, first, offset, head: this.#head, removed: this.#removed, afterGap: gap };
    this.#flight = flight;
    this.#lastFetch = this.#clock.now();
    this.#source(this.#scope, offset, WINDOW_SIZE, controller.signal).then(
      (window) => {
        if (this.#flight !== flight) return;
        this.#flight = undefined;
        this.#error = undefined;
        this.#place(flight, window);
        // The service went on counting for this answer only: it does again when it is asked again.
        if (!window.total_complete) this.#scheduleRefresh();
        this.#ensure();
        this.#changed();
      },
      (error: unknown) => {
        if (this.#flight !== flight) return;
        this.#flight = undefined;
        this.#error = error;
        this.#changed();
      },
    );
  }

  #place(flight: Flight, { total, total_complete: isComplete, rows }: Window): void {
    const wasKnown = this.#isTotalKnown;
    this.#isTotalKnown = isComplete;
    if (!this.#loaded) {
      this.#rows.clear();
      this.#loaded = true;
      this.#head = 0;
      this.#hidden = 0;
      this.#total = total;
      this.#putAll(-flight.offset, rows);
      return;
    }
    const top = flight.head - flight.offset;
    if (!this.#newestFirst) {
      this.#total = total;
      this.#putAll(top, rows);
      return;
    }
    // What is found while the service counts on is older than what is known, not newer.
    const added = wasKnown ? Math.max(0, total - this.#total) : 0;
    const grown = this.#grown(top, rows, added, flight.afterGap);
    // Something above was taken away that we never saw, or too much came to see how: only this window is certain.
    if (grown === undefined || grown < 0) this.#rows.clear();
    const above = Math.max(0, grown ?? 0);
    this.#putAll(top + above, rows);
    if (this.#exact) {
      // Rows that came on top are counted when their events arrive.
      this.#total = total + (this.#head - flight.head) - above - (this.#removed - flight.removed);
      if (flight.afterGap) this.#raise(flight.head + above);
    } else {
      this.#total = total;
      const head = Math.max(this.#head, flight.head + above);
      this.#hidden = this.#following ? 0 : this.#hidden + head - this.#head;
      this.#head = head;
    }
    this.#total = Math.max(this.#hidden, this.#total);
  }

  /** Counts rows on top whose events never came. */
  #raise(head: number): void {
    const missed = Math.max(0, head - this.#head);
    this.#head += missed;
    this.#total += missed;
    this.#hidden = this.#following ? 0 : this.#hidden + missed;
  }

  /**
   * How many rows came on top between what we knew at the request and the answer, told from rows that are known, else
   * from how many were `added` in all; undefined when that cannot be told but matters.
   */
  #grown(top: number, rows: readonly TrafficSnapshot[], added: number, afterGap: boolean): number | undefined {
    for (const [index, row] of rows.entries()) {
      const known = this.#rows.ordinalOf(row.id);
      if (known !== undefined) return known - (top - index);
    }
    if (afterGap) return undefined;
    return this.#exact ? 0 : added;
  }

  #putAll(top: number, rows: readonly TrafficSnapshot[]): void {
    for (const [index, row] of rows.entries()) this.#rows.put(top - index, row);
    this.#rows.trim(top - rows.length / 2);
  }
}
