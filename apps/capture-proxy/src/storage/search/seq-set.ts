/** Entry numbers of a filter, newest first, growing at both ends: scans go backwards, new entries go in front. */
export class SeqSet {
  /** Descending. */
  #older: number[] = [];
  /** Ascending, all above the first of `older`. */
  #newer: number[] = [];

  get length(): number {
    return this.#older.length + this.#newer.length;
  }

  /** Indexed from the newest. */
  at(place: number): number | undefined {
    const newer = this.#newer.length;
    return place < newer ? this.#newer[newer - 1 - place] : this.#older[place - newer];
  }

  /** Newest first. */
  slice(from: number, count: number): number[] {
    const found: number[] = [];
    for (let place = from; place < Math.min(from + count, this.length); place += 1) found.push(this.at(place) ?? 0);
    return found;
  }

  /** Must be below all others. */
  addOldest(seq: number): void {
    this.#older.push(seq);
  }

  /** Must be above all others. */
  addNewest(seq: number): void {
    this.#newer.push(seq);
  }

  /** Must not be contained yet. */
  insert(seq: number): void {
    const newest = this.#newer[0];
    if (newest !== undefined && seq > newest) {
      this.#newer.splice(
        lowerBound(this.#newer, (value) => value > seq),
        0,
        seq,
      );
    } else {
      this.#older.splice(
        lowerBound(this.#older, (value) => value < seq),
        0,
        seq,
      );
    }
  }

  removeAll(seqs: ReadonlySet<number>): void {
    this.#older = this.#older.filter((seq) => !seqs.has(seq));
    this.#newer = this.#newer.filter((seq) => !seqs.has(seq));
  }

  /** Index of the first number below `seq`. */
  placeBelow(seq: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.at(middle) ?? 0) < seq) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** First index for which `holds` is true; `holds` must be monotonic. */
function lowerBound(values: readonly number[], holds: (value: number) => boolean): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(values[middle] ?? 0)) high = middle;
    else low = middle + 1;
  }
  return low;
}
