// Tested by path-index.test.ts
import type { LinearPattern } from "@headworks/linear-pattern";
import { compilePathPattern } from "./path-pattern.ts";
import { branch, emptyNode, growBranch, nextHash, NONE, type TrieNode } from "./segment-trie.ts";

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

const SLASH = 0x2f;

/**
 * Patterns in the order of their declaration, sorted by the whole segments that every match must begin with: a path
 * meets only those patterns that it could match, so that `^/orders/\d+` costs nothing to who asks for `/users/7`.
 */
export class PatternShelves {
  /** `route` of a node is the number of its shelf here. */
  readonly #root: TrieNode = emptyNode();
  readonly #shelves: PatternRoute[][] = [];
  /** The shelves of the path that is looked for, and how far each is worked off. */
  readonly #open: (readonly PatternRoute[])[] = [];
  readonly #next: number[] = [];

  get isEmpty(): boolean {
    return this.#shelves.length === 0;
  }

  /** Routes are added in the order of their declaration. */
  add(source: string, route: number): void {
    const pattern = compilePathPattern(source);
    const segments = pattern.requiredStart.split("/");
    // What stands behind the last slash may go on; what stands before the first one is nothing.
    let node = this.#root;
    for (const segment of segments.slice(1, -1)) node = growBranch(node, segment);
    if (node.route === NONE) node.route = this.#shelves.push([]) - 1;
    this.#shelves[node.route]?.push({ route, pattern });
  }

  /** The first declared pattern that matches; `gave-up` when one before it cannot be decided on. */
  first(path: string): FoundPattern | undefined | "gave-up" {
    const count = this.#openShelves(path);
    for (;;) {
      const candidate = this.#takeNext(count);
      if (candidate === undefined) return undefined;
      const found = candidate.pattern.search(path);
      if (found === "gave-up") return found;
      if (found) return foundBy(candidate, path);
    }
  }

  /** Opens the shelves of all patterns that the path begins as they must; answers how many. */
  #openShelves(path: string): number {
    let node = this.#root;
    let count = this.#openShelf(node, 0);
    let start = 1;
    let hash = 0;
    for (let at = 1; at < path.length; at += 1) {
      const unit = path.charCodeAt(at);
      if (unit !== SLASH) {
        hash = nextHash(hash, unit);
        continue;
      }
      const next = branch(node, path, start, at, hash);
      if (next === undefined) break;
      node = next;
      count = this.#openShelf(node, count);
      start = at + 1;
      hash = 0;
    }
    return count;
  }

  #openShelf(node: TrieNode, count: number): number {
    const shelf = this.#shelves[node.route];
    if (shelf === undefined) return count;
    this.#open[count] = shelf;
    this.#next[count] = 0;
    return count + 1;
  }

  /** The earliest declared pattern of all open shelves. */
  #takeNext(count: number): PatternRoute | undefined {
    let earliest: PatternRoute | undefined;
    let from = 0;
    for (let index = 0; index < count; index += 1) {
      const candidate = this.#open[index]?.[this.#next[index] ?? 0];
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
