import type { SORT_COLUMNS, TrafficEvent, TrafficSnapshot } from "@headworks/capture-contract";

/**
 * Rows by ordinal. Ordinals fall from top to bottom, so that rows which arrive on top of a list get new, higher ordinals
 * and all others keep theirs. A row has one ordinal: putting it elsewhere moves it. Holds at most `capacity` rows near
 * the place that is looked at.
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

  /** Replaces a known row where it is. Answers whether it was known. */
  update(row: TrafficSnapshot): boolean {
    const ordinal = this.#ordinals.get(row.id);
    if (ordinal === undefined) return false;
    this.#rows.set(ordinal, row);
    return true;
  }

  /** Takes rows out; what lies below each of them moves up. Answers the ordinals they had. */
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

  /** Drops rows far from `center` when there are more than `capacity`. */
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

/** What a list shows, and in which order. */
export interface ListScope {
  /** Text of the query language; empty for everything. */
  readonly q: string;
  readonly sort: SortColumn;
  readonly order: "asc" | "desc";
  /** Id of a session; null for the active one. */
  readonly session: string | null;
}

/** A part of a list as the service answers it. */
export interface Window {
  readonly total: number;
  /** False while the service has not looked at everything: there may be more. */
  readonly total_complete: boolean;
  readonly rows: readonly TrafficSnapshot[];
}

/** What was known when a window was asked for: its answer is about the list of that moment. */
export interface Asked {
  /** Place of the window's first row in the list of the service. */
  readonly offset: number;
  /** Ordinal of the newest row, and how many rows had been taken out. */
  readonly head: number;
  readonly removed: number;
  /** Events may have been missed before it. */
  readonly afterGap: boolean;
}

const CAPACITY = 12_000;

/**
 * Which row stands where in a list of the service, as far as windows and events tell; knows neither time nor requests.
 * The newest-first list without a filter is merged exactly: additions go on top, changes in place. Every other list takes
 * changes of rows it knows in place and says when it has to be asked for again. Additions stay hidden until they are
 * shown, so that no visible row moves.
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
  /** Rows that are shown, loaded or not. */
  get length(): number {
    return Math.max(0, this.#total - this.#hidden);
  }
  /** Whether `length` is that of the whole list; until then it grows. */
  get isLengthKnown(): boolean {
    return this.#isTotalKnown;
  }
  /** Rows that arrived and are not shown; for lists with another order, events that may concern it. */
  get newCount(): number {
    return this.isNewestFirst ? this.#hidden : this.#unseen;
  }
  /** Whether the first window has been placed. */
  get loaded(): boolean {
    return this.#loaded;
  }
  get isNewestFirst(): boolean {
    return this.#scope.sort === "seq" && this.#scope.order === "desc";
  }
  get #exact(): boolean {
    return this.isNewestFirst && this.#scope.q === "";
  }

  /** The row at a position, 0 at the top, if it is loaded. */
  at(index: number): TrafficSnapshot | undefined {
    return this.#rows.get(this.ordinalAt(index));
  }

  /** A number that stays with the row at a position while rows come on top of it. */
  ordinalAt(index: number): number {
    return this.#head - this.#hidden - index;
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

  /** Begins anew; the rows of before stay until the first window is placed. */
  restart(scope: ListScope): void {
    this.#scope = scope;
    this.#loaded = false;
    this.#hidden = 0;
    this.#unseen = 0;
  }

  /** Shows what arrived. Answers whether there was anything. */
  showNew(): boolean {
    const isNew = this.newCount > 0;
    this.#hidden = 0;
    this.#unseen = 0;
    return isNew;
  }

  /** What to hold against the answer for a window that begins at the shown position `first`. */
  ask(first: number, afterGap: boolean): Asked {
    return { offset: this.offsetOf(first), head: this.#head, removed: this.#removed, afterGap };
  }

  /** Place of a shown position in the list of the service. */
  offsetOf(index: number): number {
    return index + this.#hidden;
  }

  /** Drops rows far from a position when there are too many. */
  trim(index: number): void {
    this.#rows.trim(this.ordinalAt(index));
  }

  /** Takes a change. Answers whether the list has to be asked for again to be right. */
  merge(event: TrafficEvent): boolean {
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

  /**
   * Takes entries out; those nobody knows here are taken for the oldest ones, which the quota removes. Answers as
   * {@link merge} does.
   */
  remove(ids: readonly string[]): boolean {
    const shownTop = this.#head - this.#hidden;
    const gone = this.#rows.remove(ids);
    const removed = this.#scope.q === "" ? ids.length : gone.length;
    this.#removed += removed;
    this.#total = Math.max(0, this.#total - removed);
    this.#hidden = Math.max(0, this.#hidden - gone.filter((ordinal) => ordinal > shownTop).length);
    return gone.length < ids.length;
  }

  /** Takes the answer for a window; while `following`, rows found on top are shown at once. */
  place(asked: Asked, { total, total_complete: isComplete, rows }: Window, following: boolean): void {
    const wasKnown = this.#isTotalKnown;
    this.#isTotalKnown = isComplete;
    if (!this.#loaded) {
      this.#rows.clear();
      this.#loaded = true;
      this.#head = 0;
      this.#hidden = 0;
      this.#total = total;
      this.#putAll(-asked.offset, rows);
      return;
    }
    const top = asked.head - asked.offset;
    if (!this.isNewestFirst) {
      this.#total = total;
      this.#putAll(top, rows);
      return;
    }
    // What is found while the service counts on is older than what is known, not newer.
    const added = wasKnown ? Math.max(0, total - this.#total) : 0;
    const grown = this.#grown(top, rows, added, asked.afterGap);
    // Something above was taken away that we never saw, or too much came to see how: only this window is certain.
    if (grown === undefined || grown < 0) this.#rows.clear();
    const above = Math.max(0, grown ?? 0);
    this.#putAll(top + above, rows);
    if (this.#exact) {
      // Rows that came on top are counted when their events arrive.
      this.#total = total + (this.#head - asked.head) - above - (this.#removed - asked.removed);
      if (asked.afterGap) this.#raise(asked.head + above, following);
    } else {
      this.#total = total;
      const head = Math.max(this.#head, asked.head + above);
      this.#hidden = following ? 0 : this.#hidden + head - this.#head;
      this.#head = head;
    }
    this.#total = Math.max(this.#hidden, this.#total);
  }

  /** Counts rows on top whose events never came. */
  #raise(head: number, following: boolean): void {
    const missed = Math.max(0, head - this.#head);
    this.#head += missed;
    this.#total += missed;
    this.#hidden = following ? 0 : this.#hidden + missed;
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
