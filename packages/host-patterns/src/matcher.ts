import { type IpAddress, type IpNetwork, networkContains, parseAddress, parseNetwork } from "./address.ts";
import { canonicalHost, maxHostNameLength } from "./host.ts";

/** A parsed host pattern. `name`s are canonical hosts. */
type HostPattern =
  | { kind: "name"; name: string }
  /** `.domain`, the older spelling of "the domain and everything below". */
  | { kind: "suffix"; name: string }
  /** `*.domain` */
  | { kind: "subdomains"; name: string }
  | { kind: "network"; network: IpNetwork }
  /** The literal texts around the stars, at least two; anchored at both ends. */
  | { kind: "glob"; literals: readonly string[] };

/** Parses one pattern; returns a sentence as `issue` for an invalid one. Never throws. */
function parseHostPattern(text: string): HostPattern | { issue: string } {
  const trimmed = text.trim();
  if (trimmed === "") return { issue: "The host pattern is empty." };
  if (trimmed.includes("://")) return { issue: "Give a host without a scheme, such as example.com." };
  if (trimmed.includes("@")) return { issue: "Give a host without user information." };
  if (trimmed.includes("/")) return networkPattern(trimmed);
  const bare = trimmed.startsWith("[") && trimmed.endsWith("]") ? trimmed.slice(1, -1) : trimmed;
  const network = parseNetwork(bare);
  if (network !== undefined) return { kind: "network", network };
  if (bare.includes(":")) return { issue: "Give a host without a port; IPv6 addresses must be complete." };
  if (bare.startsWith(".")) return namePattern("suffix", bare.slice(1));
  if (!bare.includes("*")) return namePattern("name", bare);
  if (bare.startsWith("*.") && !bare.includes("*", 1)) return namePattern("subdomains", bare.slice(2));
  return globPattern(bare);
}

/** The problem of a pattern as a sentence; undefined for a valid one. */
export function validateHostPattern(text: string): string | undefined {
  const pattern = parseHostPattern(text);
  return "issue" in pattern ? pattern.issue : undefined;
}

function networkPattern(text: string): HostPattern | { issue: string } {
  const network = parseNetwork(text);
  if (network !== undefined) return { kind: "network", network };
  const looksNumeric = /^[0-9a-f:.[\]]+\/[0-9]*$/i.test(text);
  return looksNumeric
    ? { issue: "The network is not in CIDR form, such as 10.0.0.0/8 or fd00::/8." }
    : { issue: "Give a host without a path." };
}

function namePattern(kind: "name" | "suffix" | "subdomains", text: string): HostPattern | { issue: string } {
  const name = canonicalHost(text);
  const network = kind === "name" ? parseNetwork(name) : undefined;
  if (network !== undefined) return { kind: "network", network };
  const issue = nameIssue(name, /[^a-z0-9._-]/);
  return issue === undefined ? { kind, name } : { issue };
}

function globPattern(text: string): HostPattern | { issue: string } {
  const labels: string[] = [];
  for (const label of text.toLowerCase().split(".")) {
    const isAscii = !/[^\x00-\x7f]/.test(label);
    if (!isAscii && label.includes("*")) {
      return { issue: "A star and letters outside ASCII cannot be in the same part of a name." };
    }
    labels.push(isAscii ? label : canonicalHost(label));
  }
  if (labels.length > 1 && labels.at(-1) === "") labels.pop();
  const glob = labels.join(".");
  const issue = nameIssue(glob, /[^a-z0-9._*-]/);
  return issue === undefined ? { kind: "glob", literals: glob.split(/\*+/) } : { issue };
}

function nameIssue(name: string, forbidden: RegExp): string | undefined {
  if (name === "") return "A domain name must follow the dot.";
  const character = forbidden.exec(name)?.[0];
  if (character !== undefined) return `A host pattern cannot have the character ${JSON.stringify(character)}.`;
  if (name.startsWith(".") || name.includes("..")) return "A part of the name between two dots is empty.";
  if (name.length > maxHostNameLength) return `A host name has at most ${maxHostNameLength} characters.`;
  const isTooLong = (label: string): boolean => label.length > 63 && !label.includes("*");
  if (name.split(".").some(isTooLong)) return "A part of the name is longer than 63 characters.";
  return undefined;
}

/** Finds which of many literals occur in a text in one pass (Aho and Corasick, 1975). */
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
    if (hasNone) return NO_MATCH;
    const name = canonicalHost(host);
    if (name === "") return NO_MATCH;
    const address = parseAddress(name);
    const found = address === undefined ? names.find(name) : networks.find(address);
    return globTable.findBefore(name, found);
  };
  return {
    matches: (host) => findIndex(host) !== NO_MATCH,
    find: (host) => patterns[findIndex(host)],
    issues,
  };
}

/** Greater than every index, so that `Math.min` keeps the first match. */
const NO_MATCH = Infinity;

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
    let found = NO_MATCH;
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

const newNode = (): NameNode => ({ children: new Map(), itself: NO_MATCH, below: NO_MATCH });

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
    let found = NO_MATCH;
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
  readonly #matchesAll: number = NO_MATCH;

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
    const start = text.indexOf(literal, at);
    if (start === -1 || start + literal.length > end) return false;
    at = start + literal.length;
  }
  return true;
}
