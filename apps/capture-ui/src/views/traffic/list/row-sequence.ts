import type { SORT_COLUMNS, TrafficEvent, TrafficSnapshot } from "@headworks/capture-contract";

/**
 * Rows by ordinal. Ordinals decrease from top to bottom: rows added on top get new, higher ordinals and others keep
 * theirs. A row has one ordinal; setting it elsewhere moves it. Holds at most `capacity` rows near the current
 * position.
 */
export class RowStore {
  readonly #capacity: number;
  readonly #rows = new Map<number, TrafficSnapshot>();
  readonly #ordinals = new Map<string, number>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#rows.size;
  }

  get(ordinal: number): TrafficSnapshot | undefined {
    return this.#rows.get(ordinal);
  }

  ordinalOf(id: string): number | undefined {
    return this.#ordinals.get(id);
  }

  put(ordinal: number, row: TrafficSnapshot): void {
    const before = this.#ordinals.get(row.id);
    if (before !== undefined && before !== ordinal) this.#rows.delete(before);
    const there = this.#rows.get(ordinal);
    if (there !== undefined && there.id !== row.id) this.#ordinals.delete(there.id);
    this.#rows.set(ordinal, row);
    this.#ordinals.set(row.id, ordinal);
  }

  /** Replaces a known row in place. Returns whether it was known. */
  update(row: TrafficSnapshot): boolean {
    const ordinal = this.#ordinals.get(row.id);
    if (ordinal === undefined) return false;
    this.#rows.set(ordinal, row);
    return true;
  }

  /** Removes rows; lower ones move up. Returns their ordinals. */
  remove(ids: readonly string[]): readonly number[] {
    const gone = ids.flatMap((id) => this.#ordinals.get(id) ?? []).toSorted((left, right) => right - left);
    if (gone.length === 0) return gone;
    for (const ordinal of gone) {
      const row = this.#rows.get(ordinal);
      if (row !== undefined) this.#ordinals.delete(row.id);
      this.#rows.delete(ordinal);
    }
    const highest = gone[0] ?? 0;
    const below = [...this.#rows].filter(([ordinal]) => ordinal < highest).toSorted(([left], [right]) => right - left);
    let passed = 0;
    for (const [ordinal] of below) this.#rows.delete(ordinal);
    for (const [ordinal, row] of below) {
      while (passed < gone.length && (gone[passed] ?? -Infinity) > ordinal) passed += 1;
      this.#rows.set(ordinal + passed, row);
      this.#ordinals.set(row.id, ordinal + passed);
    }
    return gone;
  }

  /** Drops the rows farthest from `center` above `capacity`. */
  trim(center: number): void {
    if (this.#rows.size <= this.#capacity) return;
    const reach = this.#capacity / 3;
    for (const [ordinal, row] of this.#rows) {
      if (Math.abs(ordinal - center) <= reach) continue;
      this.#rows.delete(ordinal);
      this.#ordinals.delete(row.id);
    }
  }

  clear(): void {
    this.#rows.clear();
    this.#ordinals.clear();
  }
}

export type SortColumn = (typeof SORT_COLUMNS)[number];

/** Query, order and session of a list. */
export interface ListScope {
  /** Query text; empty matches everything. */
  readonly q: string;
  readonly sort: SortColumn;
  readonly order: "asc" | "desc";
  readonly session: string | null;
}

/** A window of a list, as returned by the service. */
export interface Window {
  readonly total: number;
  /** False while the service has not examined all entries: there may be more. */
  readonly total_complete: boolean;
  readonly rows: readonly TrafficSnapshot[];
}

/** State at the time of a window request: its response describes that moment. */
export interface WindowRequest {
  /** Index of the window's first row in the service's list. */
  readonly offset: number;
  /** Ordinal of the newest row, and number of removed rows. */
  readonly head: number;
  readonly removed: number;
  /** Events before it may have been missed. */
  readonly afterGap: boolean;
}

const CAPACITY = 12_000;

/**
 * Positions of rows in a list of the service, derived from windows and events; independent of time and requests. The
 * newest-first list without a filter is merged exactly: additions on top, changes in place. Other lists apply changes
 * of known rows in place and report when they must be fetched again. Additions are hidden until shown, so that no
 * visible row moves.
 */
export class RowSequence {
  readonly #rows = new RowStore(CAPACITY);
  #scope: ListScope = { q: "", sort: "seq", order: "desc", session: null };
  #head = 0;
  #total = 0;
  #isTotalKnown = true;
  #hidden = 0;
  #removed = 0;
  #unseen = 0;
  #loaded = false;

  get scope(): ListScope {
    return this.#scope;
  }
  /** Number of shown rows, loaded or not. */
  get length(): number {
    return Math.max(0, this.#total - this.#hidden);
  }
  /** Whether `length` is final; until then it grows. */
  get isLengthKnown(): boolean {
    return this.#isTotalKnown;
  }
  /** Number of hidden new rows; for other orders, of events that may affect the list. */
  get newCount(): number {
    return this.isNewestFirst ? this.#hidden : this.#unseen;
  }
  /** Whether the first window has been applied. */
  get loaded(): boolean {
    return this.#loaded;
  }
  get isNewestFirst(): boolean {
    return this.#scope.sort === "seq" && this.#scope.order === "desc";
  }
  get #exact(): boolean {
    return this.isNewestFirst && this.#scope.q === "";
  }

  /** The row at an index, if loaded. */
  at(index: number): TrafficSnapshot | undefined {
    return this.#rows.get(this.ordinalAt(index));
  }

  /** A number that stays with a row while rows are added on top. */
  ordinalAt(index: number): number {
    return this.#head - this.#hidden - index;
  }

  /** Index of an entry, if loaded and shown. */
  indexOf(id: string): number | undefined {
    const ordinal = this.#rows.ordinalOf(id);
    const index = ordinal === undefined ? -1 : this.#head - this.#hidden - ordinal;
    return index >= 0 ? index : undefined;
  }

  byId(id: string): TrafficSnapshot | undefined {
    const ordinal = this.#rows.ordinalOf(id);
    return ordinal === undefined ? undefined : this.#rows.get(ordinal);
  }

  /** Starts a new list; the old rows stay until the first window is applied. */
  restart(scope: ListScope): void {
    this.#scope = scope;
    this.#loaded = false;
    this.#hidden = 0;
    this.#unseen = 0;
  }

  /** Shows new rows. Returns whether there were any. */
  showNew(): boolean {
    const isNew = this.newCount > 0;
    this.#hidden = 0;
    this.#unseen = 0;
    return isNew;
  }

  /** State to pass to {@link applyWindow} with the response of a window that begins at the shown index `first`. */
  windowRequest(first: number, afterGap: boolean): WindowRequest {
    return { offset: this.offsetOf(first), head: this.#head, removed: this.#removed, afterGap };
  }

  /** Index of a shown position in the service's list. */
  offsetOf(index: number): number {
    return index + this.#hidden;
  }

  /** Drops rows far from an index above the capacity. */
  trim(index: number): void {
    this.#rows.trim(this.ordinalAt(index));
  }

  /** Applies an event. Returns whether the list must be fetched again. */
  merge(event: TrafficEvent): boolean {
    switch (event.type) {
      case "Added":
        return this.#add(event.data);
      case "Updated": {
        const known = this.#rows.update(event.data);
        if (this.#exact) return false;
        // A change can add an entry to a filter, remove it, or move it.
        return this.#scope.q !== "" || (known && this.#scope.sort !== "seq");
      }
      case "Deleted":
        return this.remove(event.data);
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

  /** Removes entries; unknown ones count as the oldest, removed by the quota. Returns the same as {@link merge}. */
  remove(ids: readonly string[]): boolean {
    const shownTop = this.#head - this.#hidden;
    const gone = this.#rows.remove(ids);
    const removed = this.#scope.q === "" ? ids.length : gone.length;
    this.#removed += removed;
    this.#total = Math.max(0, this.#total - removed);
    this.#hidden = Math.max(0, this.#hidden - gone.filter((ordinal) => ordinal > shownTop).length);
    return gone.length < ids.length;
  }

  /** Applies the response for a window; while `following`, new rows on top are shown at once. */
  applyWindow(request: WindowRequest, { total, total_complete: isComplete, rows }: Window, following: boolean): void {
    const wasKnown = this.#isTotalKnown;
    this.#isTotalKnown = isComplete;
    if (!this.#loaded) {
      this.#rows.clear();
      this.#loaded = true;
      this.#head = 0;
      this.#hidden = 0;
      this.#total = total;
      this.#putAll(-request.offset, rows);
      return;
    }
    const top = request.head - request.offset;
    if (!this.isNewestFirst) {
      this.#total = total;
      this.#putAll(top, rows);
      return;
    }
    // Rows found by continued counting are older than the known ones, not newer.
    const added = wasKnown ? Math.max(0, total - this.#total) : 0;
    const grown = this.#grown(top, rows, added, request.afterGap);
    // Rows above were removed unseen, or too many were added to align: only this window is certain.
    if (grown === undefined || grown < 0) this.#rows.clear();
    const above = Math.max(0, grown ?? 0);
    this.#putAll(top + above, rows);
    if (this.#exact) {
      // Rows added on top are counted when their events arrive.
      this.#total = total + (this.#head - request.head) - above - (this.#removed - request.removed);
      if (request.afterGap) this.#raise(request.head + above, following);
    } else {
      this.#total = total;
      const head = Math.max(this.#head, request.head + above);
      this.#hidden = following ? 0 : this.#hidden + head - this.#head;
      this.#head = head;
    }
    this.#total = Math.max(this.#hidden, this.#total);
  }

  /** Counts rows on top whose events were missed. */
  #raise(head: number, following: boolean): void {
    const missed = Math.max(0, head - this.#head);
    this.#head += missed;
    this.#total += missed;
    this.#hidden = following ? 0 : this.#hidden + missed;
  }

  /**
   * Number of rows added on top between request and response, derived from known rows, or from the total `added`;
   * undefined if it matters but cannot be determined.
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
