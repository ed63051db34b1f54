import {
  type Action,
  type ConfigDocument,
  type GatewaySettings,
  type Match,
  namedMethods,
  type Rewrite,
  type Route,
} from "@headworks/gateway-contract";
import { compilePattern } from "@headworks/linear-pattern";
import { carriesAnId, identityKind } from "#request/forwarding-rules.ts";
import type { IssueReport } from "#slice.ts";
import { parseSubstitution } from "./actions.ts";
import {
  barePrefix,
  type FieldPath,
  hasPrefix,
  otherForm,
  parameterNames,
  parseTemplate,
  pathProblem,
  patternProblem,
} from "./path-template.ts";
import { canonicalTarget } from "./request-path.ts";
import { parseMatchHost } from "./route-table.ts";
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

/** Letters, digits and other characters of names and addresses, with an optional port. */
const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(?::[0-9]{1,5})?$/;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const MEDIA_TYPE = /^[!#$%&'+.^_`|~0-9A-Za-z-]+\/[!#$%&'+.^_`|~0-9A-Za-z-]+$/;

/** Reports criteria that are invalid or can never match. */
function checkCriteria(route: Route, fieldPath: FieldPath, report: IssueReport): void {
  const { host, headers = {}, query = [], cookies = [], accept } = route.match;
  const match = [...fieldPath, "match"];
  const requested = parseMatchHost(host);
  if ("issue" in requested) report.error("bad_value", [...match, "host"], `host must be ${requested.issue}`);
  checkMethodNames(route, fieldPath, report);
  checkMethods(route, fieldPath, report);
  checkHeaders(headers, [...match, "headers"], report);
  for (const [index, { name, value }] of query.entries()) {
    const own = [...match, "query", index];
    pairProblem(name, /[&=#]/, "&, = or #", [...own, "name"], report);
    if (value !== undefined) pairProblem(value, /[&#]/, "& or #", [...own, "value"], report);
  }
  for (const [index, { name, value }] of cookies.entries()) {
    const own = [...match, "cookies", index];
    if (!TOKEN.test(name)) report.error("bad_value", [...own, "name"], "The name of a cookie has no such characters");
    if (
      value !== undefined &&
      !/^(?:[!-:<-~\x80-\u{10ffff}](?:[ -:<-~\x80-\u{10ffff}]*[!-:<-~\x80-\u{10ffff}])?)?$/u.test(value)
    ) {
      const message = "The value of a cookie has no ; and no control characters, and no space at its ends";
      report.error("bad_value", [...own, "value"], message);
    }
  }
  if (accept !== undefined) checkAccept(accept, route, match, report);
}

/** Checks method names, including notations of other gateways. */
function checkMethodNames({ match, methods, cors }: Route, fieldPath: FieldPath, report: IssueReport): void {
  const lists = [
    [match.methods, "match", "methods"],
    [methods, "methods"],
    [cors?.allowed_methods, "cors", "allowed_methods"],
  ] as const;
  for (const [list, ...steps] of lists) {
    for (const [at, method] of (list ?? []).entries()) {
      const own = [...fieldPath, ...steps, at];
      if (/^(?:any|all)$/i.test(method)) {
        report.warning("bad_value", own, `This is a method that is called ${method}; write "*" for every method`);
      } else if (method !== "*" && /[*|]/.test(method)) {
        report.warning(
          "bad_value",
          own,
          "This is one method, which no client sends; write each method for itself, or * alone",
        );
      }
    }
  }
}

function checkMethods({ name, match, methods: allowed }: Route, fieldPath: FieldPath, report: IssueReport): void {
  const matched = namedMethods(match.methods);
  const named = namedMethods(allowed);
  if (matched?.every((method) => method === "CONNECT") === true) {
    const message = `The route "${name}" never gets a request: CONNECT is refused before routes are looked at`;
    report.warning("route_shadowed", [...fieldPath, "match", "methods"], message);
  }
  if (matched === undefined || named === undefined) return;
  if (!named.some((method) => matched.includes(method))) {
    const message = `The route "${name}" answers every request with 405: it matches ${matched.join(", ")} only, and methods allows none of these`;
    report.warning("bad_value", [...fieldPath, "methods"], message);
  }
}

/** Header names and values of the whole document are validated elsewhere. */
function checkHeaders(headers: Readonly<Record<string, string>>, fieldPath: FieldPath, report: IssueReport): void {
  const seen = new Set<string>();
  for (const name of Object.keys(headers)) {
    const lower = name.toLowerCase();
    if (seen.has(lower)) {
      report.error(
        "duplicate_name",
        [...fieldPath, name],
        `The header ${lower} is asked for twice; letter case does not count`,
      );
    } else if (lower === "host") {
      const value = parseMatchHost(headers[name]);
      if ("issue" in value) report.error("bad_value", [...fieldPath, name], `host must be ${value.issue}`);
      else {
        report.warning(
          "bad_header",
          [...fieldPath, name],
          "Ask for hosts by match.host, which decides before the path",
        );
      }
    } else if (identityKind(lower) !== undefined) {
      const instead = lower === "x-forwarded-proto" ? "; match.scheme believes trusted proxies only" : "";
      report.warning(
        "bad_header",
        [...fieldPath, name],
        `Any client can send ${lower}, whatever it is meant to say${instead}`,
      );
    } else if (/^(?:\*|~\*?.*|\^.*\$)$/.test(headers[name] ?? "")) {
      const message = `The value of ${lower} is compared as it stands, so it is no pattern: write the whole value that is asked for`;
      report.warning("bad_value", [...fieldPath, name], message);
    } else if (lower !== name) {
      report.warning("bad_header", [...fieldPath, name], `Write the header's name in lower case: ${lower}`);
    }
    seen.add(lower);
  }
}

/** Queries are compared as sent, so characters that clients encode must be written encoded. */
function pairProblem(text: string, separators: RegExp, named: string, fieldPath: FieldPath, report: IssueReport): void {
  const field = String(fieldPath.at(-1));
  if (separators.test(text)) {
    report.error(
      "bad_value",
      fieldPath,
      `The ${field} of a query parameter has no ${named}; write them percent-encoded`,
    );
  } else if (!/^[!-~]*$/.test(text)) {
    const message = `The ${field} of a query parameter is compared as it is sent: write spaces and characters beyond ASCII percent-encoded`;
    report.error("bad_value", fieldPath, message);
  }
}

function checkAccept(accept: string, route: Route, match: FieldPath, report: IssueReport): void {
  const problem = mediaTypeProblem(accept.trim());
  if (problem !== undefined) {
    report.error("bad_media_type", [...match, "accept"], `accept must be ${problem}`);
  } else if (route.cors !== undefined) {
    const message = `Browsers cannot preflight the route "${route.name}": they send no Accept that matches, so they get 404 before CORS is looked at`;
    report.warning("bad_value", [...match.slice(0, -1), "cors"], message);
  }
}

/** Completes a sentence after "must be". */
function mediaTypeProblem(type: string): string | undefined {
  if (type.includes(";")) return "a media type without parameters";
  if (type.includes("*")) return "one media type: wildcards are not supported";
  return MEDIA_TYPE.test(type) ? undefined : "one media type, written type/subtype";
}

/** Reports actions that are impossible or have no effect. */
function checkAction(route: Route, gateway: GatewaySettings, fieldPath: FieldPath, report: IssueReport): void {
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
    report.error("bad_value", [...fieldPath, "body"], `A response with the status ${action.status} has no body`);
  }
}
