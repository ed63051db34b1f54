import type { LinearPattern } from "@headworks/linear-pattern";
import { compilePathPattern } from "./path-pattern.ts";
import { PrefixTable } from "./prefix-table.ts";

/** A route whose pattern matched. */
export interface FoundPattern {
  readonly route: number;
  /** What its named groups took, for those that took something; undefined if it has none. */
  readonly parameters: Readonly<Record<string, string>> | undefined;
}

interface PatternRoute {
  readonly route: number;
  readonly pattern: LinearPattern;
}

/**
 * Patterns in the order of their declaration, sorted by the whole segments that every match must begin with: a path
 * meets only those patterns that it could match, so that `^/orders/\d+` costs nothing to who asks for `/users/7`.
 */
export class PrefixBuckets {
  /** Numbers of shelves by what paths must begin with to come to them. */
  readonly #starts = new PrefixTable();
  readonly #bucketOf = new Map<string, number>();
  readonly #buckets: PatternRoute[][] = [];
  /** How far each shelf that the last path came to is worked off. */
  readonly #next: number[] = [];

  get isEmpty(): boolean {
    return this.#buckets.length === 0;
  }

  /** Routes are added in the order of their declaration. */
  add(source: string, route: number): void {
    const pattern = compilePathPattern(source);
    // What stands behind the last slash of the start may go on.
    const start = pattern.requiredStart.slice(0, Math.max(0, pattern.requiredStart.lastIndexOf("/")));
    let bucket = this.#bucketOf.get(start);
    if (bucket === undefined) {
      bucket = this.#buckets.push([]) - 1;
      this.#bucketOf.set(start, bucket);
      this.#starts.add(start, bucket);
    }
    this.#buckets[bucket]?.push({ route, pattern });
  }

  /** The first declared pattern that matches; `gave-up` when one before it cannot be decided on. */
  first(path: string): FoundPattern | undefined | "gave-up" {
    const count = this.#starts.find(path);
    for (let bucket = 0; bucket < count; bucket += 1) this.#next[bucket] = 0;
    for (;;) {
      const candidate = this.#takeNext(count);
      if (candidate === undefined) return undefined;
      const found = candidate.pattern.search(path);
      if (found === "gave-up") return found;
      if (found) return foundBy(candidate, path);
    }
  }

  /** The earliest declared pattern of all open shelves. */
  #takeNext(count: number): PatternRoute | undefined {
    let earliest: PatternRoute | undefined;
    let from = 0;
    for (let index = 0; index < count; index += 1) {
      const candidate = this.#buckets[this.#starts.found[index] ?? 0]?.[this.#next[index] ?? 0];
      if (candidate === undefined || (earliest !== undefined && earliest.route < candidate.route)) continue;
      earliest = candidate;
      from = index;
    }
    this.#next[from] = (this.#next[from] ?? 0) + 1;
    return earliest;
  }
}

function foundBy({ route, pattern }: PatternRoute, path: string): FoundPattern | "gave-up" {
  if (pattern.groupNames.length === 0) return { route, parameters: undefined };
  const match = pattern.match(path);
  if (match === undefined || match === "gave-up") return "gave-up";
  const parameters = Object.create(null) as Record<string, string>;
  for (const name of pattern.groupNames) {
    const value = match.named[name];
    if (value !== undefined) parameters[name] = value;
  }
  return { route, parameters };
}
