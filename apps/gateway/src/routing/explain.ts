import { ERRORS, namedMethods, type ConfigDocument, type Match, type Route } from "@headworks/gateway-contract";
import { asciiTarget, wireText } from "@headworks/http1";
import { isPreflight } from "#request/context.ts";
import {
  compileCriteria,
  type CriteriaRequest,
  holds,
  HostIndex,
  hostKey,
  isForHost,
  parseMatchHost,
  routesByHost,
} from "./route-table.ts";
import {
  barePrefix,
  compilePathPattern,
  faultSentence,
  hasPrefix,
  type ParameterSink,
  parseTemplate,
  templateTakes,
} from "./path-template.ts";
import { NONE, PathIndex } from "./path-index.ts";
import { canonicalTarget, checkPath, isOwnPath, type PathFault } from "./request-path.ts";
import { compileRewrite } from "./actions.ts";

/** A request to explain; only the parts that routing inspects. */
export interface ExplainedRequest {
  readonly method: string;
  /** Path and optional query, as sent. */
  readonly target: string;
  /** Default: the Host header. */
  readonly host?: string;
  /** Name of the listener; default: the first one of the document. */
  readonly listener?: string;
  /** Default: the scheme of the listener. */
  readonly scheme?: "http" | "https";
  /** A list stands for several lines with one name, in order. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
}

/** One criterion of a route with the actual value of the request; null for none. */
export interface CriterionVerdict {
  readonly kind: string;
  readonly name?: string;
  readonly expected: string;
  readonly found: string | null;
  readonly matches: boolean;
}

/** How a route relates to a request. */
export interface RouteVerdict {
  readonly route: string;
  /** `wins`: its path decides; `loses`: it matches, but another one takes precedence. */
  readonly path: "wins" | "loses" | "no_match";
  /** The reason, in a sentence. */
  readonly reason: string;
  /** Of routes whose path matches: host, listener and scheme first. Empty for others. */
  readonly criteria: readonly CriterionVerdict[];
}

/** The route's own response in place of its action; `unauthorized` only without a valid credential. */
export interface GateVerdict {
  /** Code of the error body. */
  readonly code: "maintenance" | "method_not_allowed" | "unauthorized";
  readonly status: number;
  /** The reason, in a sentence. */
  readonly reason: string;
}

/** How a request is routed, and why. Plain values, ready for JSON. */
export interface RouteExplanation {
  /** `gateway`: the gateway serves that path itself; `refused`: the target is refused before routing. */
  readonly decision: "routed" | "no_route" | "gateway" | "refused";
  readonly reason: string;
  readonly route: string | null;
  /** The gate that refuses the request before the action; null if there is none. */
  readonly gate: GateVerdict | null;
  readonly fault: PathFault | null;
  /** Parameters of the path. */
  readonly parameters: Readonly<Record<string, string>> | null;
  /** The upstream's target; null without an upstream, or if the rewrite causes a refusal. */
  readonly upstream_target: string | null;
  /** All routes, in document order. */
  readonly routes: readonly RouteVerdict[];
}

/**
 * Explains how the routes of a document match a request, by the same rules as the compiled table. The document must
 * be free of errors: patterns that cannot be compiled throw a RangeError.
 */
export function explainRoute(
  document: Pick<ConfigDocument, "routes" | "listeners">,
  requested: ExplainedRequest,
): RouteExplanation {
  const { routes } = document;
  const nothing = { route: null, gate: null, fault: null, parameters: null, upstream_target: null };
  const target = canonicalTarget(asciiTarget(wireText(requested.target)));
  const fault = checkPath(target);
  if (fault !== "ok") {
    return { ...nothing, decision: "refused", reason: faultSentence(fault), fault, routes: [] };
  }
  const request = criteriaRequest({ ...requested, target }, document.listeners);
  if (isOwnPath(request.path, document)) {
    return { ...nothing, decision: "gateway", reason: `The gateway answers ${request.path} itself`, routes: [] };
  }
  const sink: ParameterSink = { pathParameters: undefined };
  const winner = decidingRoute(routes, request, sink);
  const verdicts = routes.map((route, index) => routeVerdict(route, index, routes[winner], winner, request));
  const won = routes[winner];
  const verdict = verdicts[winner];
  if (won === undefined || verdict === undefined) {
    const isNarrowed = routes.some(({ match }) => narrowings(match, request).length > 0);
    const which = isNarrowed ? " for this host, listener and scheme" : "";
    return { ...nothing, decision: "no_route", reason: `The path of no route${which} matches`, routes: verdicts };
  }
  const missed = verdict.criteria.filter(({ matches }) => !matches).map(criterionTitle);
  if (missed.length > 0) {
    const reason = `The path decides on the route "${won.name}", which asks for something else in ${missed.join(", ")}; other routes are not tried`;
    return { ...nothing, decision: "no_route", reason, routes: verdicts };
  }
  const gate = gateVerdict(won, request);
  const goesOn = gate === null || gate.code === "unauthorized";
  const upstreamTarget =
    goesOn && won.action.type === "proxy" ? compileRewrite(won)({ ...request, ...sink }) : undefined;
  return {
    decision: "routed",
    reason: verdict.criteria.length === 0 ? verdict.reason : `${verdict.reason}, and everything it asks for is there`,
    route: won.name,
    gate,
    fault: null,
    parameters: sink.pathParameters === undefined ? null : { ...sink.pathParameters },
    upstream_target: upstreamTarget ?? null,
    routes: verdicts,
  };
}

interface PathRequest extends CriteriaRequest {
  readonly target: string;
  readonly path: string;
  readonly listener: string;
  readonly scheme: "http" | "https";
}

/** Index of the route that the path decides on; negative for none. */
function decidingRoute(routes: readonly Route[], request: PathRequest, sink: ParameterSink): number {
  const matches = routes.map(({ match }) => match);
  const isFor = ({ listener, scheme }: Match): boolean =>
    (listener ?? request.listener) === request.listener && (scheme ?? request.scheme) === request.scheme;
  const byHost = routesByHost(matches, (index) => matches[index] !== undefined && isFor(matches[index]));
  for (const { indexes } of new HostIndex(byHost).for(request.authority)) {
    const own = indexes.map((index) => matches[index]).filter((match) => match !== undefined);
    const found = new PathIndex(own.map(({ path }) => path)).find(request.path, sink);
    if (found !== NONE) return indexes[found] ?? NONE;
  }
  return NONE;
}

/** Host, listener and scheme, which narrow the routes before the path is compared. */
function narrowings({ host, listener, scheme }: Match, request: PathRequest): readonly CriterionVerdict[] {
  const found: CriterionVerdict[] = [];
  if (host !== undefined && host !== "*") {
    const pattern = parseMatchHost(host);
    const matches = !("issue" in pattern) && isForHost(pattern, request.authority);
    found.push({ kind: "host", expected: host, found: request.authority ?? null, matches });
  }
  if (listener !== undefined) {
    found.push({
      kind: "listener",
      expected: listener,
      found: request.listener,
      matches: listener === request.listener,
    });
  }
  if (scheme !== undefined) {
    found.push({ kind: "scheme", expected: scheme, found: request.scheme, matches: scheme === request.scheme });
  }
  return found;
}

/** The first of its gates that refuses, in pipeline order. */
function gateVerdict({ name, ...route }: Route, { method, fields }: PathRequest): GateVerdict | null {
  if (isPreflight({ method, fields, route: { document: route } })) return null;
  const verdict = (code: GateVerdict["code"], reason: string): GateVerdict => ({
    code,
    status: ERRORS[code].status,
    reason: `The route "${name}" ${reason}`,
  });
  if (route.maintenance !== undefined) return verdict("maintenance", "is under maintenance");
  const allowed = namedMethods(route.methods);
  if (allowed?.includes(method) === false) {
    return verdict("method_not_allowed", `allows ${allowed.join(", ")} and no other method`);
  }
  if (route.auth_required !== true) return null;
  return verdict("unauthorized", "requires a credential: this is for requests without a good one");
}

function hostIn(headers: NonNullable<ExplainedRequest["headers"]>): string | undefined {
  const [, value] = Object.entries(headers).find(([name]) => name.toLowerCase() === "host") ?? [];
  const line = typeof value === "object" ? value[0] : value;
  return line === undefined ? undefined : withoutPadding(line);
}

/** A field value without surrounding blanks, which do not belong to it (RFC 9110, 5.5). */
function withoutPadding(line: string): string {
  const isBlank = (at: number): boolean => line[at] === " " || line[at] === "\t";
  let [start, end] = [0, line.length];
  while (start < end && isBlank(start)) start += 1;
  while (end > start && isBlank(end - 1)) end -= 1;
  return line.slice(start, end);
}

function criteriaRequest(
  { method, target, headers = {}, ...requested }: ExplainedRequest,
  listeners: ConfigDocument["listeners"],
): PathRequest {
  const listener = requested.listener ?? listeners[0]?.name ?? "";
  const protocol = listeners.find(({ name }) => name === listener)?.protocol ?? "http";
  const host = requested.host ?? hostIn(headers);
  const mark = target.indexOf("?");
  const fields: string[] = [];
  for (const [name, value] of Object.entries(headers)) {
    for (const line of typeof value === "string" ? [value] : value) fields.push(name, wireText(withoutPadding(line)));
  }
  return {
    method,
    target,
    authority: host,
    listener,
    scheme: requested.scheme ?? protocol,
    path: mark === -1 ? target : target.slice(0, mark),
    query: mark === -1 ? undefined : target.slice(mark + 1),
    fields,
  };
}

function criterionTitle({ kind, name }: CriterionVerdict): string {
  return name === undefined ? kind : `${kind} ${name}`;
}

function routeVerdict(
  route: Route,
  index: number,
  winner: Route | undefined,
  winnerIndex: number,
  request: PathRequest,
): RouteVerdict {
  const { path } = route.match;
  const matches = pathTakes(path, request.path);
  if (matches !== true) {
    const reason = matches === "gave-up" ? "The path is too costly for the pattern, so it has no route" : whyNot(path);
    return { route: route.name, path: "no_match", reason, criteria: [] };
  }
  const narrowed = narrowings(route.match, request);
  const criteria = compileCriteria(route.match).map((criterion): CriterionVerdict => ({
    kind: criterion.kind,
    ...(criterion.name === undefined ? {} : { name: criterion.name }),
    expected: criterion.expected,
    found: criterion.found(request) ?? null,
    matches: holds(criterion, request, isPreflight({ ...request, route: { document: route } })),
  }));
  const all = [...narrowed, ...criteria];
  const missed = narrowed.find((verdict) => !verdict.matches);
  if (missed !== undefined) {
    return {
      route: route.name,
      path: "no_match",
      reason: `It is for the ${missed.kind} ${missed.expected}`,
      criteria: all,
    };
  }
  if (index === winnerIndex) return { route: route.name, path: "wins", reason: whyFirst(route), criteria: all };
  return { route: route.name, path: "loses", reason: whyLater(route, winner), criteria: all };
}

function pathTakes({ type, value }: Match["path"], path: string): boolean | "gave-up" {
  if (type === "prefix") return hasPrefix(path, barePrefix(value));
  if (type === "regex") return compilePathPattern(value).search(path);
  const segments = parseTemplate(value);
  return typeof segments !== "string" && templateTakes(segments, path);
}

function whyNot({ type, value }: Match["path"]): string {
  if (type === "regex") return `Nothing in the path matches the pattern ${value}`;
  if (type === "exact") return `The path is not ${value}`;
  return `The path is neither ${value} nor below it`;
}

function whyFirst({ name, match: { path } }: Route): string {
  if (path.type === "exact") return `The path is ${path.value}, which the route "${name}" has`;
  if (path.type === "regex") return `The pattern ${path.value} of the route "${name}" is the first one that matches`;
  return `The route "${name}" has the longest prefix of the path, ${path.value}`;
}

const RANKS = { exact: "An exact path", regex: "A pattern", prefix: "A prefix" } as const;

function haveSameHosts(one: Route, other: Route): boolean {
  const [first, second] = [parseMatchHost(one.match.host), parseMatchHost(other.match.host)];
  return !("issue" in first) && !("issue" in second) && hostKey(first) === hostKey(second);
}

function whyLater(route: Route, winner: Route | undefined): string {
  if (winner === undefined) return "A pattern declared before it cannot be decided on, so the path has no route";
  const [own, first] = [route.match.path, winner.match.path];
  const by = `the route "${winner.name}"`;
  if (winner.match.host !== undefined && !haveSameHosts(route, winner)) {
    return `The more specific host ${winner.match.host} comes first: ${by} decides`;
  }
  if (own.type !== first.type) {
    return `${RANKS[first.type]} comes before ${RANKS[own.type].toLowerCase()}: ${by} decides`;
  }
  if (own.type === "regex") return `The pattern of ${by} matches too and is declared before it`;
  if (own.type === "prefix" && barePrefix(own.value) !== barePrefix(first.value)) {
    return `The longer prefix ${first.value} of ${by} decides`;
  }
  if (own.type === "exact" && own.value !== first.value) {
    return `A static segment comes before a parameter: ${first.value} of ${by} decides`;
  }
  return `It has the same path as ${by}, which is declared before it`;
}
