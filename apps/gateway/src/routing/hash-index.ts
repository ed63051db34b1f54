export const NONE = -1;

/** The hash of a text is that of its code units in order, starting with 0. */
export function nextHash(hash: number, unit: number): number {
  return (Math.imul(hash, 31) + unit) | 0;
}

/**
 * A multimap from hashes to numbers in two flat arrays: a table of thousands stays in the processor's cache, and a
 * lookup creates no substring of a path. Clients choose the hashed text, so compare the entries found.
 */
export class HashIndex {
  #hashes = new Int32Array(16);
  /** Entries plus one; 0 for an empty slot. */
  #entries = new Int32Array(16);
  #count = 0;

  /** `entry` must not be negative. Several entries may have the same hash. */
  add(hash: number, entry: number): void {
    if (2 * (this.#count + 1) > this.#hashes.length) this.#grow();
    let place = this.#home(hash);
    while (this.#entries[place] !== 0) place = this.#after(place);
    this.#hashes[place] = hash;
    this.#entries[place] = entry + 1;
    this.#count += 1;
  }

  /** The slot of the first entry with that hash, or {@link NONE}. */
  first(hash: number): number {
    return this.#seek(hash, this.#home(hash));
  }

  /** The slot of the next entry with the same hash. */
  next(hash: number, place: number): number {
    return this.#seek(hash, this.#after(place));
  }

  entryAt(place: number): number {
    return (this.#entries[place] ?? 0) - 1;
  }

  #seek(hash: number, from: number): number {
    let place = from;
    while (this.#entries[place] !== 0) {
      if (this.#hashes[place] === hash) return place;
      place = this.#after(place);
    }
    return NONE;
  }

  /** Fibonacci hashing: neighbouring hashes, such as those of numbered names, are spread. */
  #home(hash: number): number {
    return (Math.imul(hash, 0x9e37_79b1) >>> 8) & (this.#hashes.length - 1);
  }

  #after(place: number): number {
    return (place + 1) & (this.#hashes.length - 1);
  }

  #grow(): void {
    const hashes = this.#hashes;
    const entries = this.#entries;
    this.#hashes = new Int32Array(hashes.length * 2);
    this.#entries = new Int32Array(hashes.length * 2);
    this.#count = 0;
    for (const [place, entry] of entries.entries()) {
      if (entry !== 0) this.add(hashes[place] ?? 0, entry - 1);
    }
  }
}
