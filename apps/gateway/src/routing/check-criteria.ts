import { namedMethods, type Route } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import { identityKind } from "#request/client-identity.ts";
import { parseMatchHost } from "./host-index.ts";
import type { FieldPath } from "./path-problems.ts";

/** Letters, digits and other characters of names and addresses, with an optional port. */
export const HOST = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(?::[0-9]{1,5})?$/;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const MEDIA_TYPE = /^[!#$%&'+.^_`|~0-9A-Za-z-]+\/[!#$%&'+.^_`|~0-9A-Za-z-]+$/;

/** Reports criteria that are invalid or can never match. */
export function checkCriteria(route: Route, fieldPath: FieldPath, report: IssueReport): void {
  const { host, headers = {}, query = [], cookies = [], accept } = route.match;
  const match = [...fieldPath, "match"];
  const asked = parseMatchHost(host);
  if ("issue" in asked) report.error("bad_value", [...match, "host"], `host must be ${asked.issue}`);
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

/** Checks that matched and allowed methods overlap. */
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
