import type { Match } from "@headworks/gateway-contract";
import type { LinearPattern } from "@headworks/linear-pattern";
import {
  barePrefix,
  compilePathPattern,
  type ParameterSink,
  parseTemplate,
  templateForm,
  type TemplateSegment,
} from "./path-template.ts";

/**
 * Finds the template that matches a path; a static segment takes precedence over a parameter, from left to right.
 * Takes one lookup per arrangement of parameters in templates of the path's length, however many templates there are.
 */
class TemplateTable {
  readonly #templates: Template[] = [];
  /** By number of segments; the most static ones first. */
  readonly #forms: (Form[] | undefined)[] = [];
  /** Start and end of the segments of the last path, and their hashes. */
  #starts = new Int32Array(0);
  #ends = new Int32Array(0);
  #hashes = new Int32Array(0);

  get isEmpty(): boolean {
    return this.#templates.length === 0;
  }

  /** The first of templates that match the same paths wins. */
  add(segments: readonly TemplateSegment[], route: number): void {
    this.#makeRoom(segments.length);
    const form = this.#formOf(segments);
    const example = `/${segments.map((segment) => (segment.kind === "static" ? segment.text : "x")).join("/")}`;
    this.#split(example);
    const hash = this.#staticHash(form);
    if (hash === undefined || this.#lookUp(form, hash, example) !== undefined) return;
    const texts = segments.flatMap((segment) => (segment.kind === "static" ? [segment.text] : []));
    const parameters = segments.flatMap((segment, at) =>
      segment.kind === "parameter" ? [{ name: segment.name, segment: at }] : [],
    );
    form.index.add(hash, this.#templates.push({ route, texts, parameters }) - 1);
  }

  /** The route whose template matches the path, or {@link NONE}; sets its parameters. */
  find(path: string, sink: ParameterSink): number {
    const forms = this.#forms[this.#split(path)];
    if (forms === undefined) return NONE;
    for (const form of forms) {
      const hash = this.#staticHash(form);
      const template = hash === undefined ? undefined : this.#lookUp(form, hash, path);
      if (template === undefined) continue;
      sink.pathParameters = this.#parameters(template, path);
      return template.route;
    }
    return NONE;
  }

  #formOf(segments: readonly TemplateSegment[]): Form {
    const key = segments.map(({ kind }) => (kind === "static" ? "0" : "1")).join("");
    const forms = (this.#forms[segments.length] ??= []);
    const known = forms.find((form) => form.key === key);
    if (known !== undefined) return known;
    const form = { key, isParameter: Uint8Array.from(key, Number), index: new HashIndex() };
    forms.push(form);
    forms.sort((one, two) => (one.key < two.key ? -1 : 1));
    return form;
  }

  #makeRoom(count: number): void {
    if (count <= this.#starts.length) return;
    this.#starts = new Int32Array(count);
    this.#ends = new Int32Array(count);
    this.#hashes = new Int32Array(count);
  }

  /** Splits a path and returns the number of segments, or {@link NONE} if it has more than any template. */
  #split(path: string): number {
    let count = 0;
    let start = 1;
    let hash = 0;
    for (let at = 1; at <= path.length; at += 1) {
      const unit = at === path.length ? SLASH : path.charCodeAt(at);
      if (unit !== SLASH) {
        hash = nextHash(hash, unit);
        continue;
      }
      if (count === this.#starts.length) return NONE;
      this.#starts[count] = start;
      this.#ends[count] = at;
      this.#hashes[count] = hash;
      count += 1;
      start = at + 1;
      hash = 0;
    }
    return count;
  }

  /** The hash of the static segments of a form; undefined if a parameter would be empty. */
  #staticHash({ isParameter }: Form): number | undefined {
    let hash = 0;
    for (let at = 0; at < isParameter.length; at += 1) {
      if (isParameter[at] === 0) hash = nextHash(hash, this.#hashes[at] ?? 0);
      else if (this.#starts[at] === this.#ends[at]) return undefined;
    }
    return hash;
  }

  #lookUp(form: Form, hash: number, path: string): Template | undefined {
    for (let slot = form.index.first(hash); slot !== NONE; slot = form.index.next(hash, slot)) {
      const template = this.#templates[form.index.entryAt(slot)];
      if (template !== undefined && this.#fits(template, form, path)) return template;
    }
    return undefined;
  }

  #fits({ texts }: Template, { isParameter }: Form, path: string): boolean {
    let next = 0;
    for (let at = 0; at < isParameter.length; at += 1) {
      if (isParameter[at] === 1) continue;
      const text = texts[next] ?? "";
      const start = this.#starts[at] ?? 0;
      if (text.length !== (this.#ends[at] ?? 0) - start || !path.startsWith(text, start)) return false;
      next += 1;
    }
    return true;
  }

  #parameters({ parameters }: Template, path: string): Record<string, string> {
    const found = Object.create(null) as Record<string, string>;
    for (const { name, segment } of parameters) found[name] = path.slice(this.#starts[segment], this.#ends[segment]);
    return found;
  }
}

/** Finds all prefixes of a path at segment boundaries in one pass. */
class PrefixTable {
  readonly #index = new HashIndex();
  readonly #prefixes: string[] = [];
  readonly #values: number[] = [];
  /** Segments of the longest prefix. */
  #deepest = 0;
  #rootValue = NONE;
  /** Values of the prefixes found by the last `find`, the shortest first. */
  readonly found: number[] = [];

  /** A prefix begins with a slash and ends without one; the empty one matches every path. The first wins. */
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
    for (let slot = this.#index.first(hash); slot !== NONE; slot = this.#index.next(hash, slot)) {
      const entry = this.#index.entryAt(slot);
      const prefix = this.#prefixes[entry] ?? "";
      if (prefix.length === end && path.startsWith(prefix)) return entry;
    }
    return NONE;
  }
}

export const NONE = -1;

/**
 * A multimap from hashes to numbers in two flat arrays: a table of thousands stays in the processor's cache, and a
 * lookup creates no substring of a path. Clients choose the hashed text, so compare the entries found.
 */
class HashIndex {
  #hashes = new Int32Array(16);
  /** Entries plus one; 0 for an empty slot. */
  #entries = new Int32Array(16);
  #count = 0;

  /** `entry` must not be negative. Several entries may have the same hash. */
  add(hash: number, entry: number): void {
    if (2 * (this.#count + 1) > this.#hashes.length) this.#grow();
    let slot = this.#home(hash);
    while (this.#entries[slot] !== 0) slot = this.#after(slot);
    this.#hashes[slot] = hash;
    this.#entries[slot] = entry + 1;
    this.#count += 1;
  }

  /** The slot of the first entry with that hash, or {@link NONE}. */
  first(hash: number): number {
    return this.#seek(hash, this.#home(hash));
  }

  /** The slot of the next entry with the same hash. */
  next(hash: number, slot: number): number {
    return this.#seek(hash, this.#after(slot));
  }

  entryAt(slot: number): number {
    return (this.#entries[slot] ?? 0) - 1;
  }

  #seek(hash: number, from: number): number {
    let slot = from;
    while (this.#entries[slot] !== 0) {
      if (this.#hashes[slot] === hash) return slot;
      slot = this.#after(slot);
    }
    return NONE;
  }

  /** Fibonacci hashing: neighbouring hashes, such as those of numbered names, are spread. */
  #home(hash: number): number {
    return (Math.imul(hash, 0x9e37_79b1) >>> 8) & (this.#hashes.length - 1);
  }

  #after(slot: number): number {
    return (slot + 1) & (this.#hashes.length - 1);
  }

  #grow(): void {
    const hashes = this.#hashes;
    const entries = this.#entries;
    this.#hashes = new Int32Array(hashes.length * 2);
    this.#entries = new Int32Array(hashes.length * 2);
    this.#count = 0;
    for (const [slot, entry] of entries.entries()) {
      if (entry !== 0) this.add(hashes[slot] ?? 0, entry - 1);
    }
  }
}

/**
 * Patterns in declaration order, grouped by the literal segments that every match begins with: a path is compared
 * only with patterns that it could match, so that `^/orders/\d+` costs nothing for `/users/7`.
 */
class PrefixBuckets {
  /** Bucket numbers by the literal start of their paths. */
  readonly #starts = new PrefixTable();
  readonly #bucketOf = new Map<string, number>();
  readonly #buckets: PatternRoute[][] = [];
  /** The next pattern to try in each bucket of the last path. */
  readonly #next: number[] = [];

  get isEmpty(): boolean {
    return this.#buckets.length === 0;
  }

  /** Routes must be added in declaration order. */
  add(source: string, route: number): void {
    const pattern = compilePathPattern(source);
    // The text after the last slash of the start may continue.
    const start = pattern.requiredStart.slice(0, Math.max(0, pattern.requiredStart.lastIndexOf("/")));
    let bucket = this.#bucketOf.get(start);
    if (bucket === undefined) {
      bucket = this.#buckets.push([]) - 1;
      this.#bucketOf.set(start, bucket);
      this.#starts.add(start, bucket);
    }
    this.#buckets[bucket]?.push({ route, pattern });
  }

  /** The first declared pattern that matches; `gave-up` if a pattern before it exceeds its work limit. */
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

  /** The earliest declared pattern of all open buckets. */
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

const SLASH = 0x2f;

/** A pattern exceeded its work limit: the request has no route, even if later patterns would match. */
export const UNDECIDED = -2;

/**
 * Finds the route that a path decides on: exact paths first (a static segment before a parameter, from left to
 * right), then patterns in declaration order, then the longest prefix. Of routes with equal paths the first declared
 * one wins. The time depends on the path, not on the number of routes, except for patterns that could match anywhere,
 * which are tried one by one.
 */
export class PathIndex {
  readonly #static = new Map<string, number>();
  readonly #templates = new TemplateTable();
  readonly #patterns = new PrefixBuckets();
  readonly #prefixes = new PrefixTable();
  readonly #hasPrefixes: boolean;

  /** The paths are validated; the number of a route is its index in the list. */
  constructor(paths: readonly Match["path"][]) {
    for (const [route, { type, value }] of paths.entries()) {
      if (type === "exact") this.#addExact(value, route);
      else if (type === "regex") this.#patterns.add(value, route);
      else this.#prefixes.add(barePrefix(value), route);
    }
    this.#hasPrefixes = paths.some(({ type }) => type === "prefix");
  }

  /** The route of the canonical path, {@link NONE} or {@link UNDECIDED}; sets the path's parameters. */
  find(path: string, sink: ParameterSink): number {
    sink.pathParameters = undefined;
    if (path.charCodeAt(0) !== SLASH) return NONE;
    if (this.#static.size > 0) {
      const route = this.#static.get(path);
      if (route !== undefined) return route;
    }
    if (!this.#templates.isEmpty) {
      const route = this.#templates.find(path, sink);
      if (route !== NONE) return route;
    }
    if (!this.#patterns.isEmpty) {
      const found = this.#patterns.first(path);
      // A path that exceeds a pattern's work limit must not reach a prefix route with other rules.
      if (found === "gave-up") return UNDECIDED;
      if (found !== undefined) {
        sink.pathParameters = found.parameters;
        return found.route;
      }
    }
    return this.#hasPrefixes ? this.#longestPrefix(path) : NONE;
  }

  #addExact(value: string, route: number): void {
    const segments = parseTemplate(value);
    if (typeof segments === "string") throw new RangeError(`path ${value}: ${segments}`);
    if (segments.some(({ kind }) => kind === "parameter")) this.#templates.add(segments, route);
    else {
      const path = templateForm(segments);
      if (!this.#static.has(path)) this.#static.set(path, route);
    }
  }

  #longestPrefix(path: string): number {
    const count = this.#prefixes.find(path);
    return count === 0 ? NONE : (this.#prefixes.found[count - 1] ?? NONE);
  }
}

/** A route whose pattern matched. */
interface FoundPattern {
  readonly route: number;
  /** Its named groups, without those that did not participate; undefined if it has none. */
  readonly parameters: Readonly<Record<string, string>> | undefined;
}

interface PatternRoute {
  readonly route: number;
  readonly pattern: LinearPattern;
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

/** The hash of a text is that of its code units in order, starting with 0. */
function nextHash(hash: number, unit: number): number {
  return (Math.imul(hash, 31) + unit) | 0;
}

/** Without the leading slash, which all have. */
function hashOf(prefix: string): number {
  let hash = 0;
  for (let at = 1; at < prefix.length; at += 1) hash = nextHash(hash, prefix.charCodeAt(at));
  return hash;
}

interface Template {
  readonly route: number;
  /** The static segments, in order. */
  readonly texts: readonly string[];
  readonly parameters: readonly { readonly name: string; readonly segment: number }[];
}

/** Templates with parameters in the same segments: one lookup decides among all of them. */
interface Form {
  /** `isParameter` as text; sorts the most static forms first. */
  readonly key: string;
  /** For each segment 1 if it is a parameter. */
  readonly isParameter: Uint8Array;
  readonly index: HashIndex;
}
