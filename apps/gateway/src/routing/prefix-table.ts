import { HashIndex, NONE, nextHash } from "./hash-index.ts";


/** Finds all prefixes of a path at segment boundaries in one pass. */
export class PrefixTable {
  readonly #index = new HashIndex();
  readonly #prefixes: string[] = [];
  readonly #values: number[] = [];
  /** Segments of the longest prefix. */
  #deepest = 0;
  #rootValue = NONE;
  /** Values of the prefixes found by the last `find`, the shortest first. */
  readonly found: number[] = [];

  /**
   * A prefix begins with a slash and ends without one; the empty one matches every path. The first of equal ones
   * wins.
   */
  add(prefix: string, value: number): void {
    if (prefix === "") {
      if (this.#rootValue === NONE) this.#rootValue = value;
      return;
    }
    const hash = hashOf(prefix);
    if (this.#entry(hash, prefix, prefix.length) !== NONE) return;
    this.#prefixes.push(prefix);
    this.#values.push(value);
    this.#index.add(hash, this.#prefixes.length - 1);
    this.#deepest = Math.max(this.#deepest, prefix.split("/").length - 1);
  }

  /** Fills `found` and returns the number of valid elements. */
  find(path: string): number {
    let count = 0;
    if (this.#rootValue !== NONE) this.found[count++] = this.#rootValue;
    let depth = this.#deepest;
    let hash = 0;
    for (let at = 1; depth > 0 && at <= path.length; at += 1) {
      const unit = at === path.length ? SLASH : path.charCodeAt(at);
      if (unit === SLASH) {
        const entry = this.#entry(hash, path, at);
        if (entry !== NONE) this.found[count++] = this.#values[entry] ?? NONE;
        depth -= 1;
      }
      hash = nextHash(hash, unit);
    }
    return count;
  }

  /** The prefix with that hash that equals the path up to `end`. */
  #entry(hash: number, path: string, end: number): number {
    for (let place = this.#index.first(hash); place !== NONE; place = this.#index.next(hash, place)) {
      const entry = this.#index.entryAt(place);
      const prefix = this.#prefixes[entry] ?? "";
      if (prefix.length === end && path.startsWith(prefix)) return entry;
    }
    return NONE;
  }
}

/** Without the leading slash, which all have. */
function hashOf(prefix: string): number {
  let hash = 0;
  for (let at = 1; at < prefix.length; at += 1) hash = nextHash(hash, prefix.charCodeAt(at));
  return hash;
}
