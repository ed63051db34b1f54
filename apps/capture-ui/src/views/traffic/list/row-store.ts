import type { TrafficSnapshot } from "@headworks/capture-contract";

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
