import { type IpAddress, type IpNetwork, networkContains, parseAddress } from "./address.ts";
import { canonicalHost } from "./canonical-host.ts";
import { parseHostPattern } from "./pattern.ts";

/**
 * Finds all of many literals that occur in a text in one pass (Aho and Corasick, 1975). Each literal carries a
 * number; several literals may be equal.
 */
export class LiteralSearch {
  /** Transitions; the key is `node * 65536 + char code`. */
  readonly #next = new Map<number, number>();
  readonly #fallback: number[] = [0];
  /** Numbers of the literals that end at a node. */
  readonly #found: number[][] = [[]];
  /** The nearest node along the fallbacks at which a literal ends, or 0. */
  readonly #alsoFound: number[] = [0];

  constructor(literals: Iterable<readonly [literal: string, number: number]>) {
    for (const [literal, number] of literals) this.#add(literal, number);
    this.#link();
  }

  #add(literal: string, number: number): void {
    let node = 0;
    for (let index = 0; index < literal.length; index += 1) {
      const key = node * 65536 + literal.charCodeAt(index);
      let child = this.#next.get(key);
      if (child === undefined) {
        child = this.#fallback.push(0) - 1;
        this.#found.push([]);
        this.#alsoFound.push(0);
        this.#next.set(key, child);
      }
      node = child;
    }
    this.#found[node]?.push(number);
  }

  /** Sets fallbacks level by level; those of a child depend on all shallower nodes. */
  #link(): void {
    const edges = new Map<number, [code: number, child: number][]>();
    for (const [key, child] of this.#next) {
      const node = Math.floor(key / 65536);
      const list = edges.get(node);
      if (list === undefined) edges.set(node, [[key % 65536, child]]);
      else list.push([key % 65536, child]);
    }
    const queue = [0];
    for (const node of queue) {
      for (const [code, child] of edges.get(node) ?? []) {
        const fallback = node === 0 ? 0 : this.#step(this.#fallback[node] ?? 0, code);
        this.#fallback[child] = fallback;
        this.#alsoFound[child] = (this.#found[fallback] ?? []).length > 0 ? fallback : (this.#alsoFound[fallback] ?? 0);
        queue.push(child);
      }
    }
  }

  #step(from: number, code: number): number {
    for (let node = from; ; node = this.#fallback[node] ?? 0) {
      const child = this.#next.get(node * 65536 + code);
      if (child !== undefined) return child;
      if (node === 0) return 0;
    }
  }

  /** Calls `onFound` once with the number of each literal that occurs in `text`, in the order they end. */
  search(text: string, onFound: (number: number) => void): void {
    let reported: Set<number> | undefined;
    let node = 0;
    for (let index = 0; index < text.length; index += 1) {
      node = this.#step(node, text.charCodeAt(index));
      const isEnd = (this.#found[node] ?? []).length > 0;
      for (let at = isEnd ? node : (this.#alsoFound[node] ?? 0); at !== 0; at = this.#alsoFound[at] ?? 0) {
        reported ??= new Set();
        // The rest of the fallbacks was reported together with this node.
        if (reported.has(at)) break;
        reported.add(at);
        for (const number of this.#found[at] ?? []) onFound(number);
      }
    }
  }
}

/** Differences between the users of patterns: */
export type PatternStyle = "block-list" | "focus" | "ignored" | "bypass";

const styles: Readonly<Record<PatternStyle, { nameCoversBelow: boolean; starCoversItself: boolean }>> = {
  "block-list": { nameCoversBelow: true, starCoversItself: false },
  focus: { nameCoversBelow: false, starCoversItself: false },
  ignored: { nameCoversBelow: true, starCoversItself: true },
  bypass: { nameCoversBelow: true, starCoversItself: true },
};

/** A compiled list. Hosts are without port; see {@link canonicalHost} for equivalent spellings. */
export interface HostMatcher {
  matches(host: string): boolean;
  /** The first matching pattern, as written. */
  find(host: string): string | undefined;
  /** Invalid patterns, which never match. */
  readonly issues: readonly { pattern: string; issue: string }[];
}

/**
 * Compiles a list, so that a lookup costs about the same for one pattern and for thousands. Never throws; a caller
 * that must not fail open has to check `issues`.
 */
export function compileHostPatterns(patterns: readonly string[], style: PatternStyle): HostMatcher {
  const { nameCoversBelow, starCoversItself } = styles[style];
  const issues: { pattern: string; issue: string }[] = [];
  const names = new NameTree();
  const networks = new NetworkTable();
  const globs: Glob[] = [];
  for (const [index, text] of patterns.entries()) {
    const pattern = parseHostPattern(text);
    if ("issue" in pattern) issues.push({ pattern: text, issue: pattern.issue });
    else if (pattern.kind === "name") names.add(pattern.name, index, { itself: true, below: nameCoversBelow });
    else if (pattern.kind === "suffix") names.add(pattern.name, index, { itself: true, below: true });
    else if (pattern.kind === "subdomains") names.add(pattern.name, index, { itself: starCoversItself, below: true });
    else if (pattern.kind === "network") networks.add(pattern.network, index);
    else globs.push({ literals: pattern.literals, index });
  }
  const globTable = new GlobTable(globs);
  const hasNone = issues.length === patterns.length;
  const findIndex = (host: string): number => {
    if (hasNone) return nowhere;
    const name = canonicalHost(host);
    if (name === "") return nowhere;
    const address = parseAddress(name);
    const found = address === undefined ? names.find(name) : networks.find(address);
    return globTable.findBefore(name, found);
  };
  return {
    matches: (host) => findIndex(host) !== nowhere,
    find: (host) => patterns[findIndex(host)],
    issues,
  };
}

/** Greater than every index, so that `Math.min` keeps the first match. */
const nowhere = Infinity;

interface NameNode {
  children: Map<string, NameNode>;
  itself: number;
  below: number;
}

/** Names by label, from the top-level domain down. */
class NameTree {
  readonly #root: NameNode = newNode();

  add(name: string, index: number, covers: { itself: boolean; below: boolean }): void {
    let node = this.#root;
    for (const label of name.split(".").reverse()) {
      let child = node.children.get(label);
      if (child === undefined) {
        child = newNode();
        node.children.set(label, child);
      }
      node = child;
    }
    if (covers.itself) node.itself = Math.min(node.itself, index);
    if (covers.below) node.below = Math.min(node.below, index);
  }

  find(name: string): number {
    let found = nowhere;
    let node = this.#root;
    for (let end = name.length; end > 0;) {
      const dot = name.lastIndexOf(".", end - 1);
      const child = node.children.get(name.slice(dot + 1, end));
      if (child === undefined) return found;
      found = Math.min(found, dot === -1 ? child.itself : child.below);
      node = child;
      end = dot;
    }
    return found;
  }
}

const newNode = (): NameNode => ({ children: new Map(), itself: nowhere, below: nowhere });

/** Networks by prefix length, so that a lookup costs one hash per length in use. */
class NetworkTable {
  readonly #byLength = new Map<number, Map<bigint, { network: IpNetwork; index: number }>>();

  add(network: IpNetwork, index: number): void {
    const table = this.#byLength.get(network.prefixBits) ?? new Map<bigint, { network: IpNetwork; index: number }>();
    this.#byLength.set(network.prefixBits, table);
    const key = network.value >> BigInt(128 - network.prefixBits);
    if (!table.has(key)) table.set(key, { network, index });
  }

  find(address: IpAddress): number {
    let found = nowhere;
    for (const [prefixBits, table] of this.#byLength) {
      const entry = table.get(address.value >> BigInt(128 - prefixBits));
      if (entry !== undefined && networkContains(entry.network, address)) found = Math.min(found, entry.index);
    }
    return found;
  }
}

interface Glob {
  literals: readonly string[];
  index: number;
}

/** Globs, found by their longest literal and then checked completely. */
class GlobTable {
  readonly #globs: readonly Glob[];
  readonly #search: LiteralSearch;
  readonly #matchesAll: number = nowhere;

  constructor(globs: readonly Glob[]) {
    this.#globs = globs;
    const keys: [string, number][] = [];
    for (const [number, glob] of globs.entries()) {
      const longest = glob.literals.reduce((best, literal) => (literal.length > best.length ? literal : best), "");
      if (longest === "") this.#matchesAll = Math.min(this.#matchesAll, glob.index);
      else keys.push([longest, number]);
    }
    this.#search = new LiteralSearch(keys);
  }

  /** The first matching index that is below `limit`, else `limit`. */
  findBefore(name: string, limit: number): number {
    let found = Math.min(limit, this.#matchesAll);
    this.#search.search(name, (number) => {
      const glob = this.#globs[number];
      if (glob !== undefined && glob.index < found && matchesGlob(glob.literals, name)) found = glob.index;
    });
    return found;
  }
}

/** Anchored; takes each middle literal at its first position, which never loses a match and needs no backtracking. */
function matchesGlob(literals: readonly string[], text: string): boolean {
  const head = literals[0] ?? "";
  const tail = literals.at(-1) ?? "";
  const end = text.length - tail.length;
  if (end < head.length || !text.startsWith(head) || !text.endsWith(tail)) return false;
  let at = head.length;
  for (let index = 1; index < literals.length - 1; index += 1) {
    const literal = literals[index] ?? "";
    const place = text.indexOf(literal, at);
    if (place === -1 || place + literal.length > end) return false;
    at = place + literal.length;
  }
  return true;
}
