import type { CompiledRoute, RouteTable } from "#request/generation.ts";
import { asksAhead, type RequestContext } from "#request/context.ts";
import { askedOrigin } from "#request/forwarded-fields.ts";
import { allHold, compileCriteria, type Criterion } from "./criteria.ts";
import { NONE, PathIndex, UNDECIDED } from "./path-index.ts";
import { HostIndex, routesByHost } from "./host-index.ts";

/**
 * Compiles the routes of a document, in declaration order. Of the routes for the request's listener and scheme, those
 * of the most specific host are searched by path, then those of the next one; the first matching path decides on one
 * route. If another criterion of that route fails, the request has no route.
 */
export function compileRouteTable(routes: readonly CompiledRoute[]): RouteTable {
  return new CompiledRouteTable(routes);
}

/** Routes with the same hosts. */
interface HostPaths {
  readonly paths: PathIndex;
  readonly routes: readonly CompiledRoute[];
  readonly criteria: readonly (readonly Criterion[])[];
}

type Scheme = "http" | "https";

class CompiledRouteTable implements RouteTable {
  readonly #listeners: ReadonlySet<string>;
  readonly #usesScheme: boolean;
  /** By listener and scheme, as far as routes name them. */
  readonly #hosts = new Map<string, HostIndex<HostPaths>>();
  /** Set if no route names a listener or a scheme. */
  readonly #all: HostIndex<HostPaths> | undefined;

  constructor(routes: readonly CompiledRoute[]) {
    const criteriaOf = sharedCriteria();
    const matches = routes.map(({ document }) => document.match);
    this.#listeners = new Set(matches.flatMap(({ listener }) => listener ?? []));
    this.#usesScheme = matches.some(({ scheme }) => scheme !== undefined);
    for (const listener of [OTHERS, ...this.#listeners]) {
      for (const scheme of this.#usesScheme ? (["http", "https"] as const) : [undefined]) {
        const byHost = routesByHost(matches, (place) => {
          const match = matches[place];
          const isForListener = match?.listener === undefined || match.listener === listener;
          return isForListener && (match?.scheme === undefined || match.scheme === scheme);
        });
        const compiled = new Map<string, HostPaths>();
        for (const [key, { places }] of byHost) {
          const own = places.map((place) => routes[place]).filter((route) => route !== undefined);
          compiled.set(key, {
            paths: new PathIndex(own.map(({ document }) => document.match.path)),
            routes: own,
            criteria: own.map(criteriaOf),
          });
        }
        this.#hosts.set(scopeKey(listener, scheme), new HostIndex(compiled));
      }
    }
    this.#all = this.#hosts.size === 1 ? this.#hosts.get(scopeKey(OTHERS, undefined)) : undefined;
  }

  resolve(request: RequestContext): boolean {
    request.route = undefined;
    request.missedRoute = undefined;
    for (const { paths, routes, criteria } of (this.#all ?? this.#scopeOf(request)).for(request.authority)) {
      const found = paths.find(request.path, request);
      if (found === NONE) continue;
      const route = routes[found];
      if (found === UNDECIDED || route === undefined) return false;
      if (meets(request, route, criteria[found] ?? [])) {
        request.route = route;
        return true;
      }
      request.pathParameters = undefined;
      request.missedRoute = route;
      return false;
    }
    return false;
  }

  #scopeOf(request: RequestContext): HostIndex<HostPaths> {
    const { name } = request.listener;
    const scheme = this.#usesScheme ? (askedOrigin(request).scheme.toLowerCase() as Scheme) : undefined;
    return this.#hosts.get(scopeKey(this.#listeners.has(name) ? name : OTHERS, scheme)) ?? NO_ROUTES;
  }
}

/** Key of listeners that no route names; names have no line end. */
const OTHERS = "\n";
const NO_ROUTES = new HostIndex<HostPaths>(new Map());

const scopeKey = (listener: string, scheme: Scheme | undefined): string => `${scheme ?? ""} ${listener}`;

function meets(request: RequestContext, { document }: CompiledRoute, criteria: readonly Criterion[]): boolean {
  if (allHold(criteria, request, false)) return true;
  return document.cors !== undefined && asksAhead(request) && allHold(criteria, request, true);
}

/** Routes with equal criteria share the compiled ones, so that thousands of them stay in the processor's cache. */
function sharedCriteria(): (route: CompiledRoute) => readonly Criterion[] {
  const known = new Map<string, readonly Criterion[]>();
  return ({ document: { match } }) => {
    const key = JSON.stringify({ ...match, path: undefined, host: undefined, listener: undefined, scheme: undefined });
    const criteria = known.get(key) ?? compileCriteria(match);
    known.set(key, criteria);
    return criteria;
  };
}
