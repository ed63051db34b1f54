import type { Match } from "@headworks/gateway-contract";
import type { LinearPattern } from "@headworks/linear-pattern";
import { NONE } from "./hash-index.ts";
import { compilePathPattern } from "./path-pattern.ts";
import { barePrefix, type ParameterSink, parseTemplate, templateForm } from "./path-template.ts";
import { PrefixTable } from "./prefix-table.ts";
import { TemplateTable } from "./template-table.ts";

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

  /**
   * The route that the canonical path decides on, {@link NONE} or {@link UNDECIDED}; sets the path's parameters, or
   * undefined.
   */
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
