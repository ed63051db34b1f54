import { type Match, namedMethods } from "@headworks/gateway-contract";
import { canonicalHost, hostPortText, parseHostPort, validateHostPattern } from "@headworks/host-patterns";
import { fieldValue, fieldValues, ownText, type RawFields, wireText } from "@headworks/http1";
import { asksAhead, type CompiledRoute, type RequestContext, type RouteTable } from "#request/context.ts";
import { requestedOrigin } from "#request/forwarded-fields.ts";
import { NONE, PathIndex, UNDECIDED } from "./path-index.ts";

/** A compiled `match.host`: any host, one host, or all subdomains of a name, in the spelling of `canonicalHost`. */
type HostPattern =
  | { readonly kind: "every" }
  | { readonly kind: "one"; readonly name: string; readonly port: number | undefined }
  | { readonly kind: "below"; readonly name: string };

const EVERY: HostPattern = { kind: "every" };

/** Parses `match.host`; an issue completes a sentence after "must be". */
export function parseMatchHost(text: string | undefined): HostPattern | { readonly issue: string } {
  if (text === undefined || text === "*") return EVERY;
  if (text.startsWith("*.")) {
    const name = canonicalHost(text.slice(2));
    if (name.includes("*") || validateHostPattern(text) !== undefined) return { issue: wrongHost(text) };
    return { kind: "below", name };
  }
  const requested = requestedHost(text);
  return requested === undefined ? { issue: wrongHost(text) } : { kind: "one", ...requested };
}

const FORMS = "a host such as shop.example, with a port or without, or *.example for everything below a name";

/** The problem of a host in another gateway's syntax. */
function wrongHost(text: string): string {
  if (/^\.[^.*]/.test(text)) {
    return `${FORMS}; for a name and everything below it, write a route for ${text.slice(1)} and one for *${text}`;
  }
  if (/^[a-z]+:\/\//i.test(text) || text.includes("/")) return `${FORMS}; scheme and path are asked for elsewhere`;
  if (text.startsWith("~") || /[\\^$()|+]/.test(text)) return `${FORMS}; it is no pattern`;
  if (/[\s,]/.test(text)) return `${FORMS}; several hosts need a route each`;
  if (text.startsWith("*.") && text.includes(":")) return `${FORMS}; a wildcard has no port`;
  if (text.includes("*")) return `${FORMS}; * stands for whole parts at the beginning`;
  return FORMS;
}

/** The host of a request in canonical form: letter case, a final dot and the form of an IDN do not matter. */
function requestedHost(authority: string): { readonly name: string; readonly port: number | undefined } | undefined {
  // An empty port is ignored (RFC 3986 section 3.2.3).
  const parsed = parseHostPort(authority.endsWith(":") ? authority.slice(0, -1) : authority);
  return "issue" in parsed ? undefined : { name: canonicalHost(parsed.host), port: parsed.port };
}

/** Whether a request is for a host, and for its port if the pattern has one. */
export function isForHost(pattern: HostPattern, authority: string | undefined): boolean {
  if (pattern.kind === "every") return true;
  const requested = authority === undefined ? undefined : requestedHost(authority);
  if (requested === undefined) return false;
  if (pattern.kind === "below") return requested.name.endsWith(`.${pattern.name}`);
  return requested.name === pattern.name && (pattern.port === undefined || pattern.port === requested.port);
}

/** Equal for patterns that match the same requests. */
export function hostKey(pattern: HostPattern): string {
  if (pattern.kind === "every") return "";
  if (pattern.kind === "below") return `*.${pattern.name}`;
  return pattern.port === undefined ? pattern.name : hostPortText(pattern.name, pattern.port);
}

/** Limit of cached client hosts: hostile ones must not fill memory. */
const MAX_HOSTS = 2000;
const MAX_HOST_LENGTH = 255;

/** The values for a host, most specific first: host with port, host, longest wildcard, any host. */
export class HostIndex<T> {
  readonly #byKey: ReadonlyMap<string, T>;
  readonly #forOthers: readonly T[];
  readonly #known = new Map<string, readonly T[]>();

  constructor(byKey: ReadonlyMap<string, T>) {
    this.#byKey = byKey;
    const rest = byKey.get("");
    this.#forOthers = rest === undefined ? [] : [rest];
  }

  for(authority: string | undefined): readonly T[] {
    if (authority === undefined || this.#byKey.size === this.#forOthers.length) return this.#forOthers;
    const known = this.#known.get(authority);
    if (known !== undefined) return known;
    const found = this.#find(authority);
    if (authority.length <= MAX_HOST_LENGTH && this.#known.size < MAX_HOSTS) this.#known.set(ownText(authority), found);
    return found;
  }

  #find(authority: string): readonly T[] {
    const requested = requestedHost(authority);
    if (requested === undefined) return this.#forOthers;
    const { name, port } = requested;
    const keys = port === undefined ? [name] : [hostPortText(name, port), name];
    for (let dot = name.indexOf("."); dot !== -1; dot = name.indexOf(".", dot + 1)) keys.push(`*${name.slice(dot)}`);
    const found = keys.map((key) => this.#byKey.get(key)).filter((value) => value !== undefined);
    return found.length === 0 ? this.#forOthers : [...found, ...this.#forOthers];
  }
}

/** Routes by host; `places` are their indexes in the list of all routes. */
interface HostRoutes {
  readonly host: HostPattern;
  readonly indexes: readonly number[];
}

/** Groups routes by host; `isWanted` selects them. */
export function routesByHost(
  matches: readonly Pick<Match, "host">[],
  isWanted: (index: number) => boolean,
): ReadonlyMap<string, HostRoutes> {
  const byKey = new Map<string, { host: HostPattern; indexes: number[] }>();
  for (const [index, { host }] of matches.entries()) {
    const pattern = parseMatchHost(host);
    if ("issue" in pattern || !isWanted(index)) continue;
    const key = hostKey(pattern);
    const routes = byKey.get(key);
    if (routes === undefined) byKey.set(key, { host: pattern, indexes: [index] });
    else routes.indexes.push(index);
  }
  return byKey;
}

/**
 * Compiles the routes of a document, in declaration order. Of the routes for the request's listener and scheme, those
 * of the most specific host are searched by path, then those of the next one; the first matching path decides on one
 * route. If another criterion of that route fails, the request has no route.
 */
export function compileRouteTable(routes: readonly CompiledRoute[]): RouteTable {
  return new CompiledRouteTable(routes);
}

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
        const byHost = routesByHost(matches, (index) => {
          const match = matches[index];
          const isForListener = match?.listener === undefined || match.listener === listener;
          return isForListener && (match?.scheme === undefined || match.scheme === scheme);
        });
        const compiled = new Map<string, HostPaths>();
        for (const [key, { indexes }] of byHost) {
          const own = indexes.map((index) => routes[index]).filter((route) => route !== undefined);
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
    const scheme = this.#usesScheme ? (requestedOrigin(request).scheme.toLowerCase() as Scheme) : undefined;
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

/** The parts of a request that criteria inspect; a `RequestContext` has them. */
export interface CriteriaRequest {
  readonly method: string;
  readonly authority: string | undefined;
  /** The raw query after `?`. */
  readonly query: string | undefined;
  readonly fields: Readonly<RawFields>;
}

/** One criterion of a route, apart from path, host, listener and scheme. */
interface Criterion {
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
function allHold(criteria: readonly Criterion[], request: CriteriaRequest, isPreflight: boolean): boolean {
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

/** The first line of that name has exactly this value; Host, `:authority` in HTTP/2, is compared as a host. */
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
        line.split(",").some((requested) => requested.trim().toLowerCase() === lowerName),
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

/** Whether a list of `name=value` has that name, and that value if given; blanks are ignored. */
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
