import { fieldValue, fieldValues, hasBody, hasField, type Framing, type RawFields } from "@headworks/http1";
import { parseAcceptEncoding, parseHttpDate } from "@headworks/http-fields";
import type { RequestContext, ResponseHead } from "#request/context.ts";
import { requestedOrigin, identityKey } from "#request/forwarded-fields.ts";
import { ANY_FRESH, remembering, requestPolicy, type RequestPolicy } from "./cache-control.ts";

/** The cache policy of a request; undefined if it bypasses the cache, being personal or unsafe. */
export function requestPolicyOf(request: RequestContext, vary: readonly string[]): RequestPolicy | undefined {
  const { method, framing, upgrade, fields, consumer } = request;
  if ((method !== "GET" && method !== "HEAD") || hasBody(framing) || upgrade !== undefined) return undefined;
  let saysMore = false;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (!LENGTHS_OF_READ.has(name.length)) continue;
    const lower = name.toLowerCase();
    if (PERSONAL.has(lower)) return undefined;
    // A known consumer is in the key; other credentials can only be judged by the upstream.
    if (consumer === undefined && CREDENTIALS.has(lower) && !vary.includes(lower)) return undefined;
    saysMore ||= DIRECTIVES.has(lower);
  }
  return saysMore ? requestPolicy(fields) : ANY_FRESH;
}

/** Fields that make a response personal. */
const PERSONAL: ReadonlySet<string> = new Set(["range", "cookie", "authorization"]);
/** Credential fields that the gateway reads itself. */
const CREDENTIALS: ReadonlySet<string> = new Set(["x-api-key", "x-gateway-key-id", "x-gateway-signature"]);
const DIRECTIVES: ReadonlySet<string> = new Set(["cache-control", "pragma"]);
/** Length filter that avoids most name comparisons. */
const LENGTHS_OF_READ: ReadonlySet<number> = new Set(
  [...PERSONAL, ...CREDENTIALS, ...DIRECTIVES].map(({ length }) => length),
);

/**
 * The cache key: route, target, scheme and consumer as sent to the upstream, path and query as written, and the fields
 * in `vary`. Parts contain no line breaks.
 */
export function cacheKey(request: RequestContext, vary: readonly string[]): string {
  const { route, consumer, fields } = request;
  const who = consumer === undefined ? "" : `consumer ${consumer.name}`;
  let key = `${route?.name ?? ""}\n${who}\n${resourceKey(request)}\n${identityKey(request)}`;
  for (const name of vary) key += hasField(fields, name) ? `\n=${fieldValues(fields, name).join(", ")}` : "\n";
  return key;
}

/** Identifies a resource for invalidation: target as sent to the upstream, path and query. */
export function resourceKey(request: RequestContext): string {
  const { scheme, host, port } = requestedOrigin(request);
  const authority = request.authority?.toLowerCase() ?? "";
  const believed = host === request.authority && port === undefined ? "" : `${host?.toLowerCase()} ${port}`;
  return `${scheme.toLowerCase()}\n${authority}\n${believed}\n${request.target}`;
}

/** True if storable apart from its policy: 200, not personal, at most one coding, known Vary. */
export function mayStore(head: ResponseHead, framing: Framing, vary: readonly string[], maxBodyBytes: number): boolean {
  const { status, fields } = head;
  if (status !== 200) return false;
  if (framing.kind === "length" && framing.lengthBytes > maxBodyBytes) return false;
  if (contentCoding(fields) === undefined) return false;
  // A response that depends on more than the key could be served to the wrong clients.
  return membersOf(fields, "vary").every((name) => name === "accept-encoding" || vary.includes(name));
}

/** Default maximum body size. */
export const DEFAULT_BODY_BYTES = 1024 * 1024;

/** Cacheable codings, smallest results first. */
const CODINGS = ["br", "zstd", "gzip", "deflate", "compress"] as const;

/** The content coding of a response; `identity` for none, undefined for several or an unknown one. */
export function contentCoding(fields: Readonly<RawFields>): string | undefined {
  if (!hasField(fields, "content-encoding")) return "identity";
  const codings = membersOf(fields, "content-encoding").filter((coding) => coding !== "identity");
  const [coding = "identity", ...more] = codings;
  const name = coding.replace(/^x-/, "");
  const isKnown = name === "identity" || CODINGS.some((each) => each === name);
  return more.length === 0 && isKnown ? name : undefined;
}

export function variesOnCoding(fields: Readonly<RawFields>): boolean {
  return contentCoding(fields) !== "identity" || membersOf(fields, "vary").includes("accept-encoding");
}

/** A client's accepted codings, equal for all equivalent values of Accept-Encoding. */
export interface AcceptedCodings {
  /** In order of preference, without those below identity. */
  readonly codings: readonly string[];
  /** Key of the accepted codings and of an uncoded response selected for them. */
  readonly identity: string;
}

const readAcceptedCodings = remembering((text: string): AcceptedCodings => {
  const weights = parseAcceptEncoding(text);
  const weightOf = (coding: string): number => weights.get(coding) ?? weights.get("*") ?? 0;
  const min = weights.get("identity") ?? 0;
  const codings = CODINGS.filter((coding) => weightOf(coding) > 0 && weightOf(coding) >= min);
  codings.sort((one, other) => weightOf(other) - weightOf(one));
  return { codings, identity: `identity ${codings.toSorted().join(" ")}` };
});

/** The stored representation that the upstream selected for such requests, else an acceptable one. */
export function representationFor(
  stored: readonly string[],
  { identity, codings }: AcceptedCodings,
): string | undefined {
  for (let at = 0; at < stored.length; at += 2) if (stored[at] === identity) return stored[at + 1];
  return codings.find((coding) => stored.includes(coding));
}

export const acceptedCodings = (fields: Readonly<RawFields>): AcceptedCodings =>
  readAcceptedCodings(fieldValues(fields, "accept-encoding").join());

function membersOf(fields: Readonly<RawFields>, lowerName: string): string[] {
  if (!hasField(fields, lowerName)) return [];
  return fieldValues(fields, lowerName)
    .join(",")
    .split(",")
    .map((member) => member.trim().toLowerCase())
    .filter((member) => member !== "");
}

/** Conditional fields that revalidate the stored response; empty without a validator. */
export function conditionsFor(kept: Readonly<RawFields>): RawFields {
  const tag = fieldValue(kept, "etag");
  if (tag !== undefined) return ["If-None-Match", tag];
  const modified = fieldValue(kept, "last-modified");
  return modified === undefined ? [] : ["If-Modified-Since", modified];
}

/** True if the client's copy is current, so that 304 suffices (RFC 9110, 13.2.2). */
export function isUnchanged(request: Readonly<RawFields>, kept: Readonly<RawFields>): boolean {
  const tag = fieldValue(kept, "etag");
  const requested = fieldValues(request, "if-none-match");
  if (requested.length > 0) {
    if (requested.some((value) => value.trim() === "*")) return true;
    return tag !== undefined && requested.some((value) => entityTags(value).includes(opaque(tag)));
  }
  const condition = fieldValue(request, "if-modified-since");
  if (condition === undefined) return false;
  const since = parseHttpDate(condition);
  // RFC 9111, 4.3.2
  const modified = parseHttpDate(fieldValue(kept, "last-modified") ?? fieldValue(kept, "date") ?? "");
  return since !== undefined && modified !== undefined && modified <= since;
}

/** True if a 304 is about this stored response; a different tag refers to another one (RFC 9111, 4.3.4). */
export function confirms(fields: Readonly<RawFields>, kept: Readonly<RawFields>): boolean {
  const [tag, keptTag] = [fieldValue(fields, "etag"), fieldValue(kept, "etag")];
  return tag === undefined || keptTag === undefined || opaque(tag) === opaque(keptTag);
}

/** Tags for weak comparison. */
function entityTags(list: string): string[] {
  return Array.from(list.matchAll(/(?:W\/)?("[^"]*")/g), ([, tag = ""]) => tag);
}

const opaque = (tag: string): string => (tag.startsWith("W/") ? tag.slice(2) : tag).trim();
