import type { Match } from "@headworks/gateway-contract";
import { PatternShelves } from "./pattern-shelves.ts";
import { barePrefix, parameterNames, parseTemplate } from "./path-template.ts";
import { branch, deepestRoute, emptyNode, growBranch, growParameter, nextHash, NONE } from "./segment-trie.ts";
import type { TrieNode } from "./segment-trie.ts";

type PathMatch = Match["path"];

/** Receives the parameters of the path that was found. */
export interface ParameterSink {
  pathParameters: Readonly<Record<string, string>> | undefined;
}

const SLASH = 0x2f;

/**
 * Finds the one route that a path decides on: exact paths first (a static segment before a parameter, from left to
 * right), then patterns in the order of their declaration, then the longest prefix. Of routes with the same path the
 * first declared one counts. Takes time in proportion to the path, not to the number of routes,
 * except for patterns that could match anywhere: those are tried one by one.
 */
export class PathIndex {
  readonly #static = new Map<string, number>();
  readonly #templates = emptyNode();
  readonly #templateParameters = new Map<number, readonly string[]>();
  readonly #patterns = new PatternShelves();
  readonly #prefixes = emptyNode();
  readonly #hasPrefixes: boolean;
  /** Where the parameters of the template begin and end in the path, while one is looked for. */
  readonly #bounds: number[] = [];

  /** The paths were checked before; the number of a route is its place in the list. */
  constructor(paths: readonly PathMatch[]) {
    for (const [route, path] of paths.entries()) {
      if (path.type === "exact") this.#addExact(path.value, route);
      else if (path.type === "regex") this.#patterns.add(path.value, route);
      else this.#addPrefix(path.value, route);
    }
    this.#hasPrefixes = paths.some(({ type }) => type === "prefix");
  }

  /** The route that the path decides on, or {@link NONE}; sets the parameters of the path, or undefined. */
  find(path: string, sink: ParameterSink): number {
    sink.pathParameters = undefined;
    if (path.charCodeAt(0) !== SLASH) return NONE;
    if (this.#static.size > 0) {
      const route = this.#static.get(path);
      if (route !== undefined) return route;
    }
    if (this.#templateParameters.size > 0) {
      const route = this.#template(this.#templates, path, 1, 0);
      if (route !== NONE) {
        sink.pathParameters = this.#parameters(path, this.#templateParameters.get(route) ?? []);
        return route;
      }
    }
    if (!this.#patterns.isEmpty) {
      const found = this.#patterns.first(path);
      // A path too costly to decide on must not slip past its route to a prefix with other rules.
      if (found === "gave-up") return NONE;
      if (found !== undefined) {
        sink.pathParameters = found.parameters;
        return found.route;
      }
    }
    return this.#hasPrefixes ? deepestRoute(this.#prefixes, path) : NONE;
  }

  #addExact(value: string, route: number): void {
    const segments = parseTemplate(value);
    if (typeof segments === "string") throw new RangeError(`path ${value}: ${segments}`);
    const names = parameterNames(segments);
    if (names.length === 0) {
      if (!this.#static.has(value)) this.#static.set(value, route);
      return;
    }
    let node = this.#templates;
    for (const segment of segments) {
      node = segment.kind === "static" ? growBranch(node, segment.text) : growParameter(node);
    }
    if (node.route !== NONE) return;
    node.route = route;
    this.#templateParameters.set(route, names);
  }

  #addPrefix(value: string, route: number): void {
    const bare = barePrefix(value);
    let node = this.#prefixes;
    if (bare !== "") for (const segment of bare.slice(1).split("/")) node = growBranch(node, segment);
    if (node.route === NONE) node.route = route;
  }

  /** Each node is visited at most once, since it stands for one place of the path. */
  #template(node: TrieNode, path: string, start: number, found: number): number {
    if (start > path.length) return node.route;
    let end = start;
    let hash = 0;
    for (; end < path.length; end += 1) {
      const unit = path.charCodeAt(end);
      if (unit === SLASH) break;
      hash = nextHash(hash, unit);
    }
    const next = branch(node, path, start, end, hash);
    if (next !== undefined) {
      const route = this.#template(next, path, end + 1, found);
      if (route !== NONE) return route;
    }
    if (node.parameter === undefined || end === start) return NONE;
    this.#bounds[found] = start;
    this.#bounds[found + 1] = end;
    return this.#template(node.parameter, path, end + 1, found + 2);
  }

  #parameters(path: string, names: readonly string[]): Record<string, string> {
    const parameters = Object.create(null) as Record<string, string>;
    for (const [index, name] of names.entries()) {
      parameters[name] = path.slice(this.#bounds[index * 2], this.#bounds[index * 2 + 1]);
    }
    return parameters;
  }
}
