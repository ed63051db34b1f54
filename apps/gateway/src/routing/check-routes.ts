import type { ConfigDocument, Match, Route } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import { checkAction } from "./check-actions.ts";
import { checkCriteria } from "./check-criteria.ts";
import { isOwnPath } from "./own-paths.ts";
import { barePrefix, parseTemplate, templateForm } from "./path-template.ts";
import { canonicalTarget } from "./request-path.ts";
import { pathProblem, patternProblem, type Place } from "./path-problems.ts";

/** Reports what the schema cannot say about routes: paths, criteria and actions; and routes that never get a request. */
export function checkRoutes(document: ConfigDocument, report: IssueReport): void {
  const paths = new PathsInUse(report);
  for (const [index, route] of document.routes.entries()) {
    const place = ["routes", index];
    const { path } = route.match;
    const value = [...place, "match", "path", "value"];
    const problem = matchPathProblem(path);
    if (path.type === "exact" && isOwnPath(canonicalTarget(path.value))) {
      const message = `The route "${route.name}" never gets a request: the gateway answers ${path.value} itself`;
      report.warning("route_shadowed", value, message);
    }
    if (problem === undefined) paths.take(route, value);
    else report.error(path.type === "regex" ? "regex_invalid" : "bad_value", value, `The path ${problem}`);
    checkCriteria(route, place, report);
    checkAction(route, document.gateway, place, report);
  }
  paths.warnOfShadowedPatterns();
}

/** To be put behind "The path". */
function matchPathProblem(path: Match["path"]): string | undefined {
  if (path.type === "regex") {
    const problem = patternProblem(path.value);
    return problem === undefined ? undefined : `is no pattern that can be run: ${problem}`;
  }
  const plain = path.type === "exact" ? path.value.replaceAll(/\{[^/]*\}/g, "x") : path.value;
  const problem = pathProblem(plain);
  if (problem !== undefined) return problem;
  if (path.type === "exact") {
    const segments = parseTemplate(path.value);
    return typeof segments === "string" ? `is no template: ${segments}` : undefined;
  }
  return /[{}]/.test(path.value) ? "has braces; parameters are for exact paths" : undefined;
}

/** Which route has which path. The first one gets the requests. */
class PathsInUse {
  readonly #report: IssueReport;
  readonly #routes = new Map<string, { readonly name: string; readonly value: string }>();
  /** Patterns that fit one path only. */
  readonly #literals: { readonly name: string; readonly path: string; readonly place: Place }[] = [];

  constructor(report: IssueReport) {
    this.#report = report;
  }

  take(route: Route, place: Place): void {
    const { type, value } = route.match.path;
    const key = `${type} ${pathKey(route.match.path)}`;
    const first = this.#routes.get(key);
    if (first === undefined) {
      this.#routes.set(key, { name: route.name, value });
      const path = type === "regex" ? literalPath(value) : undefined;
      if (path !== undefined) this.#literals.push({ name: route.name, path, place });
    } else if (type === "exact" && first.value !== value) {
      const message = `The template takes the same paths as "${first.value}" of the route "${first.name}"; give the parameters the same names, or remove one`;
      this.#report.error("bad_value", place, message);
    } else {
      const message = `The route "${route.name}" never gets a request: the route "${first.name}", which stands before it, has the same path, and a path decides on one route`;
      this.#report.warning("route_shadowed", place, message);
    }
  }

  /** Exact paths come before patterns, whichever is declared first. */
  warnOfShadowedPatterns(): void {
    for (const { name, path, place } of this.#literals) {
      const exact = this.#routes.get(`exact ${pathKey({ type: "exact", value: path })}`);
      if (exact === undefined) continue;
      const message = `The route "${name}" never gets a request: the route "${exact.name}" has the only path that its pattern fits, and an exact path comes before a pattern`;
      this.#report.warning("route_shadowed", place, message);
    }
  }
}

/** The one path that a pattern of nothing but text between both anchors fits. */
function literalPath(pattern: string): string | undefined {
  return /^\^((?:[\w/~%:@,;=!&'-]|\\[^\w])+)\$$/.exec(pattern)?.[1]?.replaceAll(/\\(.)/g, "$1");
}

function pathKey({ type, value }: Match["path"]): string {
  if (type === "regex") return value;
  if (type === "prefix") return barePrefix(value);
  const segments = parseTemplate(value);
  return typeof segments === "string" ? value : templateForm(segments);
}
