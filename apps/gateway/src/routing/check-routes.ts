import type { ConfigDocument, Match } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import { checkAction } from "./check-actions.ts";
import { checkCriteria } from "./check-criteria.ts";
import { pathProblem, patternProblem } from "./path-problems.ts";
import { parseTemplate } from "./path-template.ts";
import { UnreachableRoutes } from "./unreachable-routes.ts";

/** Reports what the schema cannot say about routes: paths, criteria and actions; and routes that never get a request. */
export function checkRoutes(document: ConfigDocument, report: IssueReport): void {
  const paths = new UnreachableRoutes(document, report);
  for (const [index, route] of document.routes.entries()) {
    const place = ["routes", index];
    const { path } = route.match;
    const value = [...place, "match", "path", "value"];
    const problem = matchPathProblem(path);
    if (problem === undefined) paths.take(route, value);
    else report.error(path.type === "regex" ? "regex_invalid" : "bad_value", value, `The path ${problem}`);
    checkCriteria(route, place, report);
    checkAction(route, document.gateway, place, report);
  }
  paths.finish();
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
