import type { Match } from "@headworks/gateway-contract";
import { canonicalHost, hostPortText, parseHostPort, validateHostPattern } from "@headworks/host-patterns";
import { ownText } from "@headworks/http1";

/** A compiled `match.host`: any host, one host, or all subdomains of a name, in the spelling of `canonicalHost`. */
export type HostPattern =
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
  const asked = askedHost(text);
  return asked === undefined ? { issue: wrongHost(text) } : { kind: "one", ...asked };
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
function askedHost(authority: string): { readonly name: string; readonly port: number | undefined } | undefined {
  // An empty port is ignored (RFC 3986 section 3.2.3).
  const parsed = parseHostPort(authority.endsWith(":") ? authority.slice(0, -1) : authority);
  return "issue" in parsed ? undefined : { name: canonicalHost(parsed.host), port: parsed.port };
}

/** Whether a request is for a host, and for its port if the pattern has one. */
export function isForHost(pattern: HostPattern, authority: string | undefined): boolean {
  if (pattern.kind === "every") return true;
  const asked = authority === undefined ? undefined : askedHost(authority);
  if (asked === undefined) return false;
  if (pattern.kind === "below") return asked.name.endsWith(`.${pattern.name}`);
  return asked.name === pattern.name && (pattern.port === undefined || pattern.port === asked.port);
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

/**
 * The values for a host, from the most specific to the least: host with port, host, wildcards with the longest name
 * first, any host.
 */
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
    const asked = askedHost(authority);
    if (asked === undefined) return this.#forOthers;
    const { name, port } = asked;
    const keys = port === undefined ? [name] : [hostPortText(name, port), name];
    for (let dot = name.indexOf("."); dot !== -1; dot = name.indexOf(".", dot + 1)) keys.push(`*${name.slice(dot)}`);
    const found = keys.map((key) => this.#byKey.get(key)).filter((value) => value !== undefined);
    return found.length === 0 ? this.#forOthers : [...found, ...this.#forOthers];
  }
}

/** Routes by host; `places` are their indexes in the list of all routes. */
export interface HostRoutes {
  readonly host: HostPattern;
  readonly places: readonly number[];
}

/** Groups routes by host; `isWanted` selects them. */
export function routesByHost(
  matches: readonly Pick<Match, "host">[],
  isWanted: (place: number) => boolean,
): ReadonlyMap<string, HostRoutes> {
  const byKey = new Map<string, { host: HostPattern; places: number[] }>();
  for (const [place, { host }] of matches.entries()) {
    const pattern = parseMatchHost(host);
    if ("issue" in pattern || !isWanted(place)) continue;
    const key = hostKey(pattern);
    const routes = byKey.get(key);
    if (routes === undefined) byKey.set(key, { host: pattern, places: [place] });
    else routes.places.push(place);
  }
  return byKey;
}
