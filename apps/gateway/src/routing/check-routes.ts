import type { ConfigDocument, Match } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import { checkAction } from "./check-actions.ts";
import { checkCriteria } from "./check-criteria.ts";
import { otherForm, pathProblem, patternProblem, type FieldPath } from "./path-problems.ts";
import { parseTemplate } from "./path-template.ts";
import { UnreachableRoutes } from "./unreachable-routes.ts";

/** Checks of routes beyond the schema: paths, criteria, actions, and routes that never match. */
export function checkRoutes(document: ConfigDocument, report: IssueReport): void {
  const paths = new UnreachableRoutes(document, report);
  for (const [index, route] of document.routes.entries()) {
    const fieldPath = ["routes", index];
    const { path } = route.match;
    const value = [...fieldPath, "match", "path", "value"];
    const problem = matchPathProblem(path);
    if (path.type === "regex" && problem === undefined) checkAnchor(path.value, route.name, value, report);
    if (problem === undefined) paths.take(route, value);
    else report.error(path.type === "regex" ? "regex_invalid" : "bad_value", value, `The path ${problem}`);
    checkCriteria(route, fieldPath, report);
    checkAction(route, document.gateway, fieldPath, report);
  }
  paths.finish();
}

/** In other gateways a pattern is anchored at the start of the path. */
function checkAnchor(pattern: string, name: string, fieldPath: FieldPath, report: IssueReport): void {
  if (!/^\(?\\?\/[\w-]/.test(pattern)) return;
  const message = `The pattern of the route "${name}" is looked for anywhere in the path, so it takes /x${sample(pattern)} as well: write ^ in front to have it at the beginning`;
  report.warning("bad_value", fieldPath, message);
}

/** The literal start of a pattern, for an example path. */
const sample = (pattern: string): string => /^\(?\\?(\/[\w/-]*)/.exec(pattern)?.[1] ?? "/";

/** Completes a sentence after "The path". */
function matchPathProblem(path: Match["path"]): string | undefined {
  if (path.type === "regex") {
    if (/^~\*?\s*[\^/]/.test(path.value)) {
      return "is a pattern with the modifier ~, which other gateways put in front: leave it out";
    }
    const problem = patternProblem(path.value);
    return problem === undefined ? undefined : `is no pattern that can be run: ${problem}`;
  }
  const form = otherForm(path.type, path.value);
  if (form !== undefined) return form;
  const plain = path.type === "exact" ? path.value.replaceAll(/\{[^/]*\}/g, "x") : path.value;
  const problem = pathProblem(plain);
  if (problem !== undefined) return problem;
  const segments = path.type === "exact" ? parseTemplate(path.value) : [];
  return typeof segments === "string" ? `is no template: ${segments}` : undefined;
}
