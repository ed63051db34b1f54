import { namedMethods, type Match } from "@headworks/gateway-contract";
import { fieldValue, fieldValues, wireText, type RawFields } from "@headworks/http1";
import { isForHost, parseMatchHost } from "./host-index.ts";

/** The parts of a request that criteria inspect; a `RequestContext` has them. */
export interface CriteriaRequest {
  readonly method: string;
  readonly authority: string | undefined;
  /** The raw query after `?`. */
  readonly query: string | undefined;
  readonly fields: Readonly<RawFields>;
}

/** One criterion of a route, apart from path, host, listener and scheme. */
export interface Criterion {
  readonly kind: "methods" | "headers" | "query" | "cookies" | "accept";
  /** Name of the header, parameter or cookie. */
  readonly name?: string;
  /** The expected value, in the document's terms. */
  readonly expected: string;
  matches(request: CriteriaRequest): boolean;
  /**
   * Whether the actual request of a CORS preflight can match although the preflight itself lacks the criterion: its
   * method differs, and it carries no fields and cookies of the page (Fetch standard, CORS-preflight fetch).
   * Undefined: the preflight has to match itself.
   */
  readonly mayMatchLater?: (preflight: CriteriaRequest) => boolean;
  /** The actual value in the request; undefined if absent. For explanations, not for speed. */
  found(request: CriteriaRequest): string | undefined;
}

/** Shown in explanations for a name without a value. */
const PRESENT = "(present)";

/** Compiles the criteria of a route, cheapest first. All of them must hold. */
export function compileCriteria(match: Match): readonly Criterion[] {
  const criteria: Criterion[] = [];
  const methods = namedMethods(match.methods);
  if (methods !== undefined) criteria.push(methodsCriterion(methods));
  for (const [name, value] of Object.entries(match.headers ?? {})) criteria.push(headerCriterion(name, value));
  if (match.accept !== undefined) criteria.push(acceptCriterion(match.accept));
  for (const { name, value } of match.query ?? []) criteria.push(queryCriterion(name, value));
  for (const { name, value } of match.cookies ?? []) criteria.push(cookieCriterion(name, value));
  return criteria;
}

/** Whether all criteria of a route hold; `isPreflight` for a preflight of a route that responds to them. */
export function allHold(criteria: readonly Criterion[], request: CriteriaRequest, isPreflight: boolean): boolean {
  for (const criterion of criteria) if (!holds(criterion, request, isPreflight)) return false;
  return true;
}

export function holds(criterion: Criterion, request: CriteriaRequest, isPreflight: boolean): boolean {
  return criterion.matches(request) || (isPreflight && criterion.mayMatchLater?.(request) === true);
}

/** Any letter case; an allowed GET does not allow HEAD. */
function methodsCriterion(methods: readonly string[]): Criterion {
  const allowed = new Set(methods);
  const isAllowed = (method: string): boolean => allowed.has(method) || allowed.has(method.toUpperCase());
  return {
    kind: "methods",
    expected: [...allowed].join(", "),
    matches: ({ method }) => isAllowed(method),
    mayMatchLater: ({ fields }) => isAllowed(fieldValue(fields, "access-control-request-method") ?? ""),
    found: ({ method }) => method,
  };
}

/**
 * The first line with that name has exactly this value; Host, which HTTP/2 sends as :authority, is compared as a
 * host.
 */
function headerCriterion(name: string, value: string): Criterion {
  const lowerName = name.toLowerCase();
  if (lowerName === "host") {
    const host = parseMatchHost(value);
    return {
      kind: "headers",
      name: lowerName,
      expected: value,
      matches: ({ authority }) => !("issue" in host) && isForHost(host, authority),
      found: ({ authority }) => authority,
    };
  }
  const wanted = wireText(value);
  return {
    kind: "headers",
    name: lowerName,
    expected: value,
    matches: ({ fields }) => fieldValue(fields, lowerName) === wanted,
    mayMatchLater: ({ fields }) =>
      fieldValues(fields, "access-control-request-headers").some((line) =>
        line.split(",").some((asked) => asked.trim().toLowerCase() === lowerName),
      ),
    found: ({ fields }) => fieldValue(fields, lowerName),
  };
}

/** Any parameter with that name, `a` like `a=`; nothing is decoded. */
function queryCriterion(name: string, value: string | undefined): Criterion {
  const wantedName = wireText(name);
  const wanted = value === undefined ? undefined : wireText(value);
  return {
    kind: "query",
    name,
    expected: value ?? PRESENT,
    matches: ({ query }) => query !== undefined && hasPair(query, "&", wantedName, wanted),
    found: ({ query }) => (query === undefined ? undefined : pairValues(query, "&", wantedName)),
  };
}

/** Any cookie with that name in any Cookie line; quotes belong to the value. */
function cookieCriterion(name: string, value: string | undefined): Criterion {
  const wantedName = wireText(name);
  const wanted = value === undefined ? undefined : wireText(value);
  return {
    kind: "cookies",
    name,
    expected: value ?? PRESENT,
    matches: ({ fields }) => fieldValues(fields, "cookie").some((line) => hasPair(line, ";", wantedName, wanted)),
    mayMatchLater: () => true,
    found: ({ fields }) => pairValues(fieldValues(fields, "cookie").join(";"), ";", wantedName),
  };
}

/**
 * Whether a list of `name=value` has that name, and that value if given; a name alone has an empty value. Blanks
 * around a pair are ignored.
 */
function hasPair(list: string, separator: string, name: string, value: string | undefined): boolean {
  for (let start = 0; start <= list.length;) {
    let end = list.indexOf(separator, start);
    if (end === -1) end = list.length;
    const first = skipBlanks(list, start, end);
    const last = skipBlanksBack(list, first, end);
    const nameEnd = first + name.length;
    if (nameEnd <= last && list.startsWith(name, first)) {
      if (nameEnd === last) {
        if (value === undefined || value === "") return true;
      } else if (list.charCodeAt(nameEnd) === 0x3d) {
        if (value === undefined) return true;
        if (last - nameEnd - 1 === value.length && list.startsWith(value, nameEnd + 1)) return true;
      }
    }
    start = end + 1;
  }
  return false;
}

/** Values of all pairs with that name, for display. */
function pairValues(list: string, separator: string, name: string): string | undefined {
  const values: string[] = [];
  for (const piece of list.split(separator)) {
    const pair = piece.slice(skipBlanks(piece, 0, piece.length), skipBlanksBack(piece, 0, piece.length));
    const equals = pair.indexOf("=");
    const pairName = equals === -1 ? pair : pair.slice(0, equals);
    if (pairName === name) values.push(equals === -1 ? "" : pair.slice(equals + 1));
  }
  return values.length === 0 ? undefined : values.join(", ");
}

/**
 * A member of any Accept line is this media type, in any letter case and with any parameters and weight (even `q=0`).
 * Wildcards and an absent field do not match.
 */
function acceptCriterion(accept: string): Criterion {
  const wanted = accept.trim().toLowerCase();
  return {
    kind: "accept",
    expected: wanted,
    matches: ({ fields }) => fieldValues(fields, "accept").some((line) => lists(line, wanted)),
    found: ({ fields }) => {
      const lines = fieldValues(fields, "accept");
      return lines.length === 0 ? undefined : lines.join(", ");
    },
  };
}

const COMMA = 0x2c;
const SEMICOLON = 0x3b;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Scans one Accept line; commas and semicolons inside quoted strings do not separate (RFC 9110 section 5.6.4). */
function lists(line: string, mediaType: string): boolean {
  let start = 0;
  let typeEnd = -1;
  let isQuoted = false;
  for (let at = 0; at <= line.length; at += 1) {
    const code = at === line.length ? COMMA : line.charCodeAt(at);
    if (isQuoted && at < line.length) {
      if (code === BACKSLASH && at + 1 < line.length) at += 1;
      else if (code === QUOTE) isQuoted = false;
    } else if (code === QUOTE) isQuoted = true;
    else if (code === SEMICOLON) {
      if (typeEnd === -1) typeEnd = at;
    } else if (code === COMMA) {
      if (isMediaType(line, start, typeEnd === -1 ? at : typeEnd, mediaType)) return true;
      start = at + 1;
      typeEnd = -1;
    }
  }
  return false;
}

function isMediaType(line: string, start: number, end: number, mediaType: string): boolean {
  const first = skipBlanks(line, start, end);
  const last = skipBlanksBack(line, first, end);
  return last - first === mediaType.length && line.slice(first, last).toLowerCase() === mediaType;
}

function skipBlanks(text: string, from: number, end: number): number {
  let at = from;
  while (at < end && isBlank(text.charCodeAt(at))) at += 1;
  return at;
}

function skipBlanksBack(text: string, start: number, from: number): number {
  let at = from;
  while (at > start && isBlank(text.charCodeAt(at - 1))) at -= 1;
  return at;
}

/** Optional whitespace of RFC 9110 section 5.6.3. */
function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
