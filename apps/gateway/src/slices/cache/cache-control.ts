import { fieldValue, fieldValues, hasField, ownText, type RawFields } from "@headworks/http1";
import {
  parseDictionary,
  parseHttpDate,
  parseParameter,
  splitOutsideQuotes,
  type StructuredValue,
} from "@headworks/http-fields";

/** Directives by lower-case name; `true` for one without an argument. */
type Directives = ReadonlyMap<string, string | true>;

const MAX_REMEMBERED_TEXTS = 256;
const MAX_REMEMBERED_LENGTH = 256;

/** Memoizes parsing of short field values; most messages have one of a few. */
export function remembering<T>(read: (text: string) => T): (text: string) => T {
  const known = new Map<string, T>();
  return (text) => {
    const remembered = known.get(text);
    if (remembered !== undefined) return remembered;
    if (text.length > MAX_REMEMBERED_LENGTH) return read(text);
    // Copied, so that the cached text does not retain the header it was sliced from.
    const own = ownText(text);
    const meaning = read(own);
    if (known.size >= MAX_REMEMBERED_TEXTS) known.clear();
    known.set(own, meaning);
    return meaning;
  };
}

/** Larger values are equivalent (RFC 9111, 1.2.2). */
const MAX_DELTA_S = 2 ** 31;

/** Argument types of directives in a targeted field (RFC 9213, 2.1); unknown directives may have any. */
const TYPES: ReadonlyMap<string, readonly StructuredValue["type"][]> = new Map([
  ["max-age", ["integer"]],
  ["s-maxage", ["integer"]],
  ["stale-while-revalidate", ["integer"]],
  ["no-cache", ["boolean", "string"]],
  ["private", ["boolean", "string"]],
  ["no-store", ["boolean"]],
  ["must-revalidate", ["boolean"]],
  ["proxy-revalidate", ["boolean"]],
  ["must-understand", ["boolean"]],
]);

export interface ResponsePolicy {
  /** Undefined: no explicit freshness. */
  readonly lifetimeS: number | undefined;
  /** `no-store` or `private`. */
  readonly forbidsStoring: boolean;
  /** `no-cache`: each reuse needs a validation. */
  readonly needsValidation: boolean;
  /** Must not be served stale without validation (RFC 9111, 4.2.4). */
  readonly forbidsStale: boolean;
  readonly staleWhileRevalidateS: number | undefined;
  /** Lower-case names from `private="…"` and `no-cache="…"`; these fields are not stored. */
  readonly withheldFields: ReadonlySet<string> | undefined;
}

/** Reads the policy of a response. CDN-Cache-Control replaces Cache-Control and Expires (RFC 9213, 2.2). */
export function responsePolicy(fields: Readonly<RawFields>, receivedMs: number): ResponsePolicy {
  const targetedLines = fieldValues(fields, "cdn-cache-control");
  const targeted = targetedLines.length === 0 ? undefined : targetedDirectives(targetedLines);
  if (targeted !== undefined) return policyOf(targeted);
  const policy = readPolicy(fieldValues(fields, "cache-control").join());
  if (policy.lifetimeS !== undefined || !hasField(fields, "expires")) return policy;
  return { ...policy, lifetimeS: lifetimeByExpires(fields, receivedMs) };
}

const readPolicy = remembering((text: string) => policyOf(parseCacheControl(text)));

function policyOf(directives: Directives): ResponsePolicy {
  const noCache = directives.get("no-cache");
  const isPrivate = directives.get("private");
  const withheld = [noCache, isPrivate].filter((names) => typeof names === "string");
  const names = withheld.flatMap((list) => list.toLowerCase().split(",")).map((name) => name.trim());
  return {
    lifetimeS: deltaSeconds(directives.get("s-maxage")) ?? deltaSeconds(directives.get("max-age")),
    // must-understand overrides no-store for the status 200 (RFC 9111, 5.2.2.3).
    forbidsStoring: isPrivate === true || (directives.has("no-store") && !directives.has("must-understand")),
    needsValidation: noCache === true,
    forbidsStale: ["must-revalidate", "proxy-revalidate", "s-maxage"].some((name) => directives.has(name)),
    staleWhileRevalidateS: deltaSeconds(directives.get("stale-while-revalidate")),
    withheldFields: names.length === 0 ? undefined : new Set(names),
  };
}

function targetedDirectives(lines: readonly string[]): Directives | undefined {
  const members = parseDictionary(lines);
  if (members === undefined || members.size === 0) return undefined;
  const directives = new Map<string, string | true>();
  for (const [name, { type, value }] of members) {
    const types = TYPES.get(name);
    if (types === undefined) continue;
    const isNegative = typeof value === "number" && value < 0;
    if (!types.includes(type) || typeof value === "object" || isNegative) return undefined;
    if (value !== false) directives.set(name, value === true ? true : String(value));
  }
  return directives;
}

/** Parses Cache-Control: the first numeric directive counts; field lists merge, and bare forms win. */
function parseCacheControl(text: string): Directives {
  const directives = new Map<string, string | true>();
  for (const member of splitOutsideQuotes(text, ",")) {
    const [name, argument] = parseParameter(member) ?? [member.toLowerCase(), true as const];
    const before = directives.get(name);
    const isList = name === "no-cache" || name === "private";
    const value = isList && argument === "" ? true : argument;
    if (before === undefined || (isList && value === true)) directives.set(name, value);
    else if (isList && before !== true) directives.set(name, `${before},${value}`);
  }
  return directives;
}

/** A malformed argument makes a response stale immediately (RFC 9111, 4.2.1). */
function deltaSeconds(argument: string | true | undefined): number | undefined {
  if (argument === undefined) return undefined;
  return argument !== true && /^[0-9]+$/.test(argument) ? Math.min(Number(argument), MAX_DELTA_S) : 0;
}

/** Most responses within a second have the same Date. */
const dateMsOf = remembering((text: string): number => parseHttpDate(text) ?? Number.NaN);

function lifetimeByExpires(fields: Readonly<RawFields>, receivedMs: number): number {
  const lines = fieldValues(fields, "expires");
  const [expires = ""] = lines;
  // Repeated or invalid Expires counts as expired (RFC 9111, 5.3).
  const expiresMs = lines.length > 1 ? undefined : parseHttpDate(expires, receivedMs);
  const dateMs = dateMsOf(fieldValue(fields, "date") ?? "");
  const sinceMs = Number.isNaN(dateMs) ? receivedMs : dateMs;
  return expiresMs === undefined ? 0 : Math.max(0, (expiresMs - sinceMs) / 1000);
}

/**
 * The age of a response on arrival in milliseconds (RFC 9111, 4.2.3). `isDateCounted`: a past Date counts as age, in
 * case an intermediate cache sent no Age; a future one does not.
 */
export function initialAgeMs(
  fields: Readonly<RawFields>,
  { receivedMs, delayMs, isDateCounted }: { receivedMs: number; delayMs: number; isDateCounted: boolean },
): number {
  const age = fieldValue(fields, "age")?.split(",")[0]?.trim() ?? "";
  const correctedMs = (/^[0-9]+$/.test(age) ? Math.min(Number(age), MAX_DELTA_S) * 1000 : 0) + delayMs;
  const dateMs = isDateCounted ? dateMsOf(fieldValue(fields, "date") ?? "") : Number.NaN;
  if (Number.isNaN(dateMs)) return correctedMs;
  // Dates have a resolution of one second.
  const apparentMs = Math.floor((receivedMs - dateMs) / 1000) * 1000;
  return Math.max(correctedMs, apparentMs);
}

/** Cache directives of a request (RFC 9111, 5.2.1), in milliseconds. */
export interface RequestPolicy {
  readonly maxAgeMs: number;
  readonly minFreshMs: number;
  /** Maximum accepted staleness; negative: none. */
  readonly maxStaleMs: number;
  readonly noCache: boolean;
  readonly noStore: boolean;
  readonly onlyIfCached: boolean;
}

/** The policy of a request without directives. */
export const ANY_FRESH: RequestPolicy = {
  maxAgeMs: Number.POSITIVE_INFINITY,
  minFreshMs: 0,
  maxStaleMs: -1,
  noCache: false,
  noStore: false,
  onlyIfCached: false,
};

/** Reads the policy of a request; Pragma counts only without Cache-Control (RFC 9111, 5.4). */
export function requestPolicy(fields: Readonly<RawFields>): RequestPolicy {
  const lines = fieldValues(fields, "cache-control");
  return readRequestPolicy((lines.length > 0 ? lines : fieldValues(fields, "pragma")).join());
}

const readRequestPolicy = remembering((text: string): RequestPolicy => {
  const directives = parseCacheControl(text);
  const maxStale = directives.get("max-stale");
  return {
    maxAgeMs: (deltaSeconds(directives.get("max-age")) ?? Number.POSITIVE_INFINITY) * 1000,
    minFreshMs: (deltaSeconds(directives.get("min-fresh")) ?? 0) * 1000,
    maxStaleMs: maxStale === true ? Number.POSITIVE_INFINITY : (deltaSeconds(maxStale) ?? -0.001) * 1000,
    noCache: directives.has("no-cache"),
    noStore: directives.has("no-store"),
    onlyIfCached: directives.has("only-if-cached"),
  };
});
