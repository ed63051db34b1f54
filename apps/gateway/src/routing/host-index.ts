import type { Match } from "@headworks/gateway-contract";
import { canonicalHost, hostPortText, parseHostPort, validateHostPattern } from "@headworks/host-patterns";
import { ownText } from "@headworks/http1";

/** A compiled `match.host`: any host, one host, or all hosts below a name. Hosts are in the one spelling of `canonicalHost`. */
export type HostPattern =
  | { readonly kind: "every" }
  | { readonly kind: "one"; readonly name: string; readonly port: number | undefined }
  | { readonly kind: "below"; readonly name: string };

const EVERY: HostPattern = { kind: "every" };

/** Reads `match.host`; an issue is to be put behind "must be". */
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

/** The problem of a host that is written in another gateway's syntax. */
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

/** A host that a request asks for, as it is compared: neither letter case nor a final dot nor the form of an IDN counts. */
function askedHost(authority: string): { readonly name: string; readonly port: number | undefined } | undefined {
  // An empty port says nothing (RFC 3986 section 3.2.3).
  const parsed = parseHostPort(authority.endsWith(":") ? authority.slice(0, -1) : authority);
  return "issue" in parsed ? undefined : { name: canonicalHost(parsed.host), port: parsed.port };
}

/** Whether a request asks for a host, and for its port if it has one. */
export function isForHost(pattern: HostPattern, authority: string | undefined): boolean {
  if (pattern.kind === "every") return true;
  const asked = authority === undefined ? undefined : askedHost(authority);
  if (asked === undefined) return false;
  if (pattern.kind === "below") return asked.name.endsWith(`.${pattern.name}`);
  return asked.name === pattern.name && (pattern.port === undefined || pattern.port === asked.port);
}

/** The same for what the same requests ask for. */
export function hostKey(pattern: HostPattern): string {
  if (pattern.kind === "every") return "";
  if (pattern.kind === "below") return `*.${pattern.name}`;
  return pattern.port === undefined ? pattern.name : hostPortText(pattern.name, pattern.port);
}

/** Hosts of clients that are remembered with what they lead to; hostile ones must not fill memory. */
const MAX_HOSTS = 2000;
const MAX_HOST_LENGTH = 255;

/**
 * The values for a host, from the most specific to the least: for the host with its port, the host, all hosts below a
 * name, the longest first, and those for every host.
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

/** Routes by the hosts that they are for; `places` are theirs in the list of all routes. */
export interface HostRoutes {
  readonly host: HostPattern;
  readonly places: readonly number[];
}

/** Puts routes together that are for the same hosts; `isKept` says which of them. */
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
