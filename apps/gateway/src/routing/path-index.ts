import type { Match } from "@headworks/gateway-contract";
import { NONE } from "./hash-index.ts";
import { barePrefix, parseTemplate, templateForm, type ParameterSink } from "./path-template.ts";
import { PrefixBuckets } from "./prefix-buckets.ts";
import { PrefixTable } from "./prefix-table.ts";
import { TemplateTable } from "./template-table.ts";

const SLASH = 0x2f;

/** A pattern could not be decided on: there is no route, whatever comes behind it. */
export const UNDECIDED = -2;

/**
 * Finds the one route that a path decides on: exact paths first (a static segment before a parameter, from left to
 * right), then patterns in the order of their declaration, then the longest prefix. Of routes with the same path the
 * first declared one counts. Takes time in proportion to the path, not to the number of routes, except for patterns
 * that could match anywhere: those are tried one by one.
 */
export class PathIndex {
  readonly #static = new Map<string, number>();
  readonly #templates = new TemplateTable();
  readonly #patterns = new PrefixBuckets();
  readonly #prefixes = new PrefixTable();
  readonly #hasPrefixes: boolean;

  /** The paths were checked before; the number of a route is its place in the list. */
  constructor(paths: readonly Match["path"][]) {
    for (const [route, { type, value }] of paths.entries()) {
      if (type === "exact") this.#addExact(value, route);
      else if (type === "regex") this.#patterns.add(value, route);
      else this.#prefixes.add(barePrefix(value), route);
    }
    this.#hasPrefixes = paths.some(({ type }) => type === "prefix");
  }

  /** The route that the canonical path decides on, {@link NONE} or {@link UNDECIDED}; sets the parameters of the path, or undefined. */
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
      // A path too costly to decide on must not slip past its route to a prefix with other rules.
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
