import type { TrafficEvent, TrafficSnapshot } from "@headworks/capture-contract";
import { type ListScope, RowSequence, type Window, type WindowRequest } from "./row-sequence.ts";

/** Fetches rows `offset` to `offset + limit` of a list. Rejects when the signal aborts. */
export type WindowSource = (scope: ListScope, offset: number, limit: number, signal: AbortSignal) => Promise<Window>;

/** Timers, replaceable by tests. */
export interface ListClock {
  now(): number;
  /** Calls back once after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void;
}

const WINDOW_SIZE = 200;
/** Rows loaded beyond the visible ones. */
const MARGIN = 40;
/** Minimum interval of screen updates. */
const FLUSH_MS = 100;
/** Minimum interval of window requests during fast scrolling. */
const FETCH_GAP_MS = 40;
/** Minimum interval of refetches of lists that cannot be merged from events. */
const REFRESH_MS = 1000;

interface Flight {
  readonly controller: AbortController;
  readonly first: number;
  readonly request: WindowRequest;
}

/**
 * A list on the service, loaded in windows on demand and kept current by events. While not at the top, additions are
 * hidden (counted by `newCount`) and no visible row moves.
 */
export class TrafficList {
  readonly #source: WindowSource;
  readonly #clock: ListClock;
  readonly #rows = new RowSequence();
  readonly #watchers = new Set<() => void>();
  #version = 0;
  #following = true;
  #range = { first: 0, last: 60 };
  #error: unknown = undefined;
  #flight: Flight | undefined;
  #events: TrafficEvent[] = [];
  #cancelFlush: (() => void) | undefined;
  #cancelFetch: (() => void) | undefined;
  #cancelRefresh: (() => void) | undefined;
  #lastFetch = -Infinity;
  #lastRefresh = -Infinity;

  constructor(source: WindowSource, clock: ListClock) {
    this.#source = source;
    this.#clock = clock;
  }

  /** Increases with every visible change. */
  readonly version = (): number => this.#version;

  readonly subscribe = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  get scope(): ListScope {
    return this.#rows.scope;
  }
  get length(): number {
    return this.#rows.length;
  }
  get isLengthKnown(): boolean {
    return this.#rows.isLengthKnown;
  }
  /** Rows added since leaving the top; for other orders, events that may affect the list. */
  get newCount(): number {
    return this.#rows.newCount;
  }
  /** Whether the first window has loaded. */
  get loaded(): boolean {
    return this.#rows.loaded;
  }
  /** Error of the last request; undefined after a success. */
  get error(): unknown {
    return this.#error;
  }

  rowAt(index: number): TrafficSnapshot | undefined {
    return this.#rows.at(index);
  }

  ordinalAt(index: number): number {
    return this.#rows.ordinalAt(index);
  }

  indexOf(id: string): number | undefined {
    return this.#rows.indexOf(id);
  }

  byId(id: string): TrafficSnapshot | undefined {
    return this.#rows.byId(id);
  }

  /** Switches to another list; the old rows stay until its first window has loaded. */
  setScope(scope: ListScope): void {
    const { q, sort, order, session } = this.scope;
    const isSame = scope.q === q && scope.sort === sort && scope.order === order && scope.session === session;
    if (this.loaded && isSame) return;
    this.#restart(scope);
  }

  /** Discards everything and starts at the top. */
  reload(): void {
    this.#restart(this.scope);
  }

  #restart(scope: ListScope): void {
    this.#abort();
    this.#events = [];
    this.#rows.restart(scope);
    this.#range = { first: 0, last: 60 };
    this.#fetch(0);
    this.#changed();
  }

  /** Sets the visible rows, which are then loaded. */
  setRange(first: number, last: number): void {
    if (first === this.#range.first && last === this.#range.last) return;
    this.#range = { first, last };
    this.#ensure();
  }

  /** Whether the list is at the top, where additions appear at once. */
  setFollowing(following: boolean): void {
    if (this.#following === following) return;
    this.#following = following;
    if (following) this.showNew();
  }

  showNew(): void {
    if (!this.#rows.showNew()) return;
    if (!this.#rows.isNewestFirst) this.#refresh();
    this.#ensure();
    this.#changed();
  }

  /** Applies live events at the next flush. */
  apply(events: readonly TrafficEvent[]): void {
    this.#events.push(...events);
    this.#cancelFlush ??= this.#clock.after(FLUSH_MS, () => {
      this.#cancelFlush = undefined;
      this.#flush();
    });
  }

  /** Removes entries before the service confirms it. */
  remove(ids: readonly string[]): void {
    this.#rows.remove(ids);
    this.#ensure();
    this.#changed();
  }

  /** Refetches the visible rows after missed events. */
  resync(): void {
    if (this.loaded) this.#fetch(this.#windowStart(), true);
    else this.reload();
  }

  /** Ids of the rows from one index to another, inclusive, also of rows not loaded; at most `limit`. */
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
      const { rows } = await this.#source(this.scope, this.#rows.offsetOf(index), wanted, signal);
      ids.push(...rows.map((loaded) => loaded.id));
      if (rows.length < wanted) break;
      index += rows.length - 1;
    }
    return [...new Set(ids)];
  }

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
    for (const event of events) stale = this.#rows.merge(event) || stale;
    if (this.loaded && stale) this.#scheduleRefresh();
    if (this.#rows.isNewestFirst && this.#following) this.#rows.showNew();
    this.#rows.trim((this.#range.first + this.#range.last) / 2);
    this.#ensure();
    this.#changed();
  }

  #scheduleRefresh(): void {
    if (this.#cancelRefresh !== undefined) return;
    // Resorting would move rows under the user's eyes; the "new" button does it.
    if (!this.#following && !this.#rows.isNewestFirst && this.scope.order === "desc") return;
    const wait = Math.max(FLUSH_MS, this.#lastRefresh + REFRESH_MS - this.#clock.now());
    this.#cancelRefresh = this.#clock.after(wait, () => {
      this.#cancelRefresh = undefined;
      this.#refresh();
    });
  }

  #refresh(): void {
    this.#lastRefresh = this.#clock.now();
    if (this.#following) this.#rows.showNew();
    this.#fetch(this.#windowStart());
  }

  #windowStart(): number {
    const { first, last } = this.#range;
    return Math.max(0, Math.round((first + last) / 2 - WINDOW_SIZE / 2));
  }

  /** Requests visible missing rows, but not on every frame of a fast scroll. */
  #ensure(): void {
    if (!this.loaded || this.#cancelFetch !== undefined || !this.#missing()) return;
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
    // An aborted request that was to close a gap passes this on to the next one.
    const request = this.#rows.windowRequest(first, afterGap || this.#flight?.request.afterGap === true);
    const flight: Flight = { controller, first, request };
    this.#flight = flight;
    this.#lastFetch = this.#clock.now();
    this.#source(this.scope, request.offset, WINDOW_SIZE, controller.signal).then(
      (window) => {
        if (this.#flight !== flight) return;
        this.#flight = undefined;
        this.#error = undefined;
        this.#rows.applyWindow(request, window, this.#following);
        // The service counts only during a request, and continues with the next one.
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
}

/** Returns the first row matching a query, and the total count. */
type FirstRowSource = (q: string) => Promise<Window>;

/** Number of rows above an entry. Undefined if not in the list, or the order or count is unknown. */
export async function positionOfEntry(
  list: Pick<TrafficList, "indexOf" | "scope" | "newCount" | "length">,
  id: string,
  firstRow: FirstRowSource,
): Promise<number | undefined> {
  const known = list.indexOf(id);
  if (known !== undefined) return known;
  const { q, sort, order } = list.scope;
  if (sort !== "seq") return undefined;
  const narrowed = async (term: string) => await firstRow(q === "" ? term : `(${q}) ${term}`);
  const [row] = (await narrowed(`id:${id}`)).rows;
  if (row?.id !== id) return undefined;
  const above = await narrowed(`seq:${order === "desc" ? ">" : "<"}${row.seq}`);
  if (!above.total_complete) return undefined;
  const index = order === "desc" ? above.total - list.newCount : above.total;
  return index < list.length ? index : undefined;
}
