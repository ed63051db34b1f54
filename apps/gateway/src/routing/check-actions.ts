import type { Action, GatewaySettings, Rewrite, Route } from "@headworks/gateway-contract";
import { compilePattern } from "@headworks/linear-pattern";
import { carriesAnId } from "#request/forwarded-fields.ts";
import type { IssueReport } from "#slice.ts";
import { HOST } from "./check-criteria.ts";
import { pathProblem, patternProblem, type FieldPath } from "./path-problems.ts";
import { barePrefix, hasPrefix, parameterNames, parseTemplate } from "./path-template.ts";
import { canonicalTarget } from "./request-path.ts";
import { parseSubstitution } from "./rewrite.ts";

/** Reports actions that are impossible or have no effect. */
export function checkAction(route: Route, gateway: GatewaySettings, fieldPath: FieldPath, report: IssueReport): void {
  const own = [...fieldPath, "action"];
  switch (route.action.type) {
    case "proxy":
      if (route.action.rewrite !== undefined) checkRewrite(route.action.rewrite, route, [...own, "rewrite"], report);
      break;
    case "redirect":
      checkRedirect(route.action, own, report);
      break;
    case "respond":
      checkRespond(route.action, gateway, own, report);
  }
}

function checkRewrite(rewrite: Rewrite, route: Route, fieldPath: FieldPath, report: IssueReport): void {
  switch (rewrite.type) {
    case "strip_prefix":
      if (literalPath(route) === undefined) {
        const message = "strip_prefix needs a path of type prefix, or an exact path without parameters";
        report.error("bad_value", [...fieldPath, "type"], message);
      }
      break;
    case "replace_prefix":
      checkReplacePrefix(rewrite, route, fieldPath, report);
      break;
    case "regex":
      checkPatternRewrite(rewrite, route, fieldPath, report);
  }
}

/** The path of a route if it is the same for all requests; undefined for patterns and templates. */
function literalPath(route: Route): string | undefined {
  const { type, value } = route.match.path;
  if (type === "regex" || /[{}]/.test(value)) return undefined;
  return type === "prefix" ? barePrefix(value) : canonicalTarget(value);
}

function checkReplacePrefix(
  { prefix, replacement }: Extract<Rewrite, { type: "replace_prefix" }>,
  route: Route,
  fieldPath: FieldPath,
  report: IssueReport,
): void {
  const prefixProblem = pathProblem(prefix);
  if (prefixProblem !== undefined) {
    report.error("bad_value", [...fieldPath, "prefix"], `The prefix to replace ${prefixProblem}`);
  }
  const problem = replacement === "" ? undefined : (pathProblem(replacement) ?? doubleSlash(replacement));
  if (problem !== undefined) report.error("bad_value", [...fieldPath, "replacement"], `The replacement ${problem}`);
  const path = literalPath(route);
  if (path === undefined || prefixProblem !== undefined) return;
  const bare = barePrefix(prefix);
  const canHave = hasPrefix(path, bare) || (route.match.path.type === "prefix" && hasPrefix(bare, path));
  if (!canHave) {
    const message = `The rewrite never does anything: no path of the route "${route.name}" begins with "${prefix}"`;
    report.warning("bad_value", [...fieldPath, "prefix"], message);
  }
}

function doubleSlash(path: string): string | undefined {
  return path.includes("//") ? "has //, which upstreams read in different ways" : undefined;
}

function checkPatternRewrite(
  { pattern, substitution }: Extract<Rewrite, { type: "regex" }>,
  route: Route,
  fieldPath: FieldPath,
  report: IssueReport,
): void {
  const own = [...fieldPath, "substitution"];
  if (!/^[!-~]*$/.test(substitution) || /[?#\\]/.test(substitution)) {
    const message =
      "The substitution is a part of a path: it has no ?, # or \\ (groups are $1 or ${name}), and spaces and characters beyond ASCII are percent-encoded";
    report.error("bad_value", own, message);
  }
  const problem = patternProblem(pattern);
  if (problem !== undefined) {
    report.error("regex_invalid", [...fieldPath, "pattern"], `The rewrite does not work: ${problem}`);
    return;
  }
  const compiled = compilePattern(pattern);
  const names = new Set([...compiled.groupNames, ...pathParameters(route)]);
  for (const piece of parseSubstitution(substitution)) {
    const unknown =
      piece.kind === "group" && piece.number > compiled.groupCount
        ? String(piece.number)
        : piece.kind === "name" && !names.has(piece.name)
          ? piece.name
          : undefined;
    if (unknown === undefined) continue;
    const message = `Nothing is called \${${unknown}}: neither a group of the pattern nor a parameter of the path; it is replaced with nothing`;
    report.warning("bad_value", own, message);
  }
}

function pathParameters(route: Route): readonly string[] {
  const { type, value } = route.match.path;
  if (type === "regex") return patternProblem(value) === undefined ? compilePattern(value).groupNames : [];
  const segments = type === "exact" ? parseTemplate(value) : [];
  return typeof segments === "string" ? [] : parameterNames(segments);
}

function checkRedirect(action: Extract<Action, { type: "redirect" }>, fieldPath: FieldPath, report: IssueReport): void {
  const { scheme, host, port, path } = action;
  if (host !== undefined && !HOST.test(host)) {
    report.error(
      "bad_value",
      [...fieldPath, "host"],
      "host must be a name or an address, with a port or without, and nothing else",
    );
  } else if (host !== undefined && port !== undefined && /:[0-9]+$/.test(host)) {
    report.error("bad_value", [...fieldPath, "port"], "host has a port already; keep one of them");
  }
  if (path !== undefined && !/^[!-~]+$/.test(path)) {
    const message = "path has a space, a control character or one beyond ASCII; write them percent-encoded";
    report.error("bad_value", [...fieldPath, "path"], message);
  }
  const staysOnHost = scheme === undefined && host === undefined && port === undefined;
  if (staysOnHost && path !== undefined && /^\/[/\\]/.test(path)) {
    report.error(
      "bad_value",
      [...fieldPath, "path"],
      "path begins with //, which would name another host; set host instead",
    );
  }
  if (staysOnHost && path === undefined) {
    const message = "The redirect leads back to where it came from; set scheme, host, port or path";
    report.warning("bad_value", fieldPath, message);
  }
}

/** Connection fields, which the gateway sets itself. */
const FRAMING: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);
const WITHOUT_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

function checkRespond(
  action: Extract<Action, { type: "respond" }>,
  gateway: GatewaySettings,
  fieldPath: FieldPath,
  report: IssueReport,
): void {
  for (const name of Object.keys(action.headers ?? {})) {
    if (!FRAMING.has(name.toLowerCase()) && !carriesAnId(name, gateway)) continue;
    report.error("bad_header", [...fieldPath, "headers", name], `${name} is set by the gateway, not by a route`);
  }
  if (WITHOUT_BODY.has(action.status) && (action.body ?? "") !== "") {
    report.error("bad_value", [...fieldPath, "body"], `An answer with the status ${action.status} has no body`);
  }
}
