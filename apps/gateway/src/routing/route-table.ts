import type { CompiledRoute, RouteTable } from "#request/generation.ts";
import type { RequestContext } from "#request/context.ts";
import { asksAhead } from "#request/preflight.ts";
import { allHold, compileCriteria, type Criterion } from "./criteria.ts";
import { PathIndex } from "./path-index.ts";

/**
 * Compiles the routes of a document, in the order of their declaration. The path of a request decides on one route;
 * then everything else that this route asks for must hold. A miss is no route: other routes are not tried.
 */
export function compileRouteTable(routes: readonly CompiledRoute[]): RouteTable {
  return new CompiledRouteTable(routes);
}

class CompiledRouteTable implements RouteTable {
  readonly #routes: readonly CompiledRoute[];
  readonly #paths: PathIndex;
  readonly #criteria: readonly (readonly Criterion[])[];

  constructor(routes: readonly CompiledRoute[]) {
    this.#routes = routes;
    this.#paths = new PathIndex(routes.map(({ document }) => document.match.path));
    this.#criteria = sharedCriteria(routes);
  }

  resolve(request: RequestContext): boolean {
    request.route = undefined;
    request.missedRoute = undefined;
    const found = this.#paths.find(request.path, request);
    const route = this.#routes[found];
    if (route === undefined) return false;
    const criteria = this.#criteria[found] ?? [];
    const isMatch =
      allHold(criteria, request, false) ||
      (route.document.cors !== undefined && asksAhead(request) && allHold(criteria, request, true));
    if (!isMatch) {
      request.pathParameters = undefined;
      request.missedRoute = route;
      return false;
    }
    request.route = route;
    return true;
  }
}

/** Routes that ask for the same share what was compiled of it: thousands of them then need not be fetched from memory. */
function sharedCriteria(routes: readonly CompiledRoute[]): (readonly Criterion[])[] {
  const known = new Map<string, readonly Criterion[]>();
  return routes.map(({ document: { match } }) => {
    const key = JSON.stringify({ ...match, path: undefined });
    const criteria = known.get(key) ?? compileCriteria(match);
    known.set(key, criteria);
    return criteria;
  });
}
