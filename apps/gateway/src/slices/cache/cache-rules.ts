import type { Cache } from "@headworks/gateway-contract";
import { fieldValue, fieldValues, hasBody, hasField, type Framing, type RawFields } from "@headworks/http1";
import { parseHttpDate } from "@headworks/http-fields";
import type { RequestContext } from "#request/context.ts";
import { askedOrigin, identityKey } from "#request/forwarded-fields.ts";
import type { AnswerHead } from "#request/phases.ts";

/**
 * What requests must be for an answer to be kept or used: anything else concerns one client, or changes something. `vary`
 * names, in lower case, the fields that are part of the key.
 */
export function mayUseCache(request: RequestContext, vary: readonly string[]): boolean {
  const { method, framing, upgrade, fields, consumer } = request;
  if (method !== "GET" || hasBody(framing) || upgrade !== undefined) return false;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (!LENGTHS_OF_PERSONAL.has(name.length)) continue;
    const lower = name.toLowerCase();
    if (PERSONAL.has(lower)) return false;
    // A known consumer is part of the key; who anybody else is only the upstream may know.
    if (consumer === undefined && CREDENTIALS.has(lower) && !vary.includes(lower)) return false;
  }
  return true;
}

/** Fields that make an answer one for this client alone. */
const PERSONAL: ReadonlySet<string> = new Set(["range", "cookie", "authorization"]);
/** Fields that say who a client is, where the gateway itself reads them. */
const CREDENTIALS: ReadonlySet<string> = new Set(["x-api-key", "x-gateway-key-id", "x-gateway-signature"]);
/** They spare most names the comparison. */
const LENGTHS_OF_PERSONAL: ReadonlySet<number> = new Set([...PERSONAL, ...CREDENTIALS].map(({ length }) => length));

/**
 * What tells answers apart: the route, everything the upstream is told of where the request was sent and who sent it,
 * path and query as they were written, and the fields that the operator names. Parts have no line ends.
 */
export function cacheKey(request: RequestContext, vary: readonly string[]): string {
  const { route, consumer, fields } = request;
  const who = consumer === undefined ? "" : `consumer ${consumer.name}`;
  let key = `${route?.name ?? ""}\n${who}\n${resourceKey(request)}\n${identityKey(request)}`;
  for (const name of vary) key += hasField(fields, name) ? `\n=${fieldValues(fields, name).join(", ")}` : "\n";
  return key;
}

/** What tells resources apart: where the request was sent, as its upstream is told, and path and query. */
export function resourceKey(request: RequestContext): string {
  const { scheme, host, port } = askedOrigin(request);
  const authority = request.authority?.toLowerCase() ?? "";
  const believed = host === request.authority && port === undefined ? "" : `${host?.toLowerCase()} ${port}`;
  return `${scheme.toLowerCase()}\n${authority}\n${believed}\n${request.target}`;
}

/** Whether an answer may be kept: 200, for everybody, as long as its upstream does not forbid it. */
export function mayKeep(head: AnswerHead, framing: Framing, { vary = [], max_body_bytes: mostBytes }: Cache): boolean {
  const { status, fields } = head;
  if (status !== 200 || hasField(fields, "set-cookie")) return false;
  if (framing.kind === "length" && framing.lengthBytes > (mostBytes ?? DEFAULT_BODY_BYTES)) return false;
  if (fieldValues(fields, "content-encoding").some(isCoded)) return false;
  if (isForbidden(fields)) return false;
  const known = new Set(["accept-encoding", ...vary.map((name) => name.toLowerCase())]);
  // An answer that depends on more than the key would be given to those it is not for.
  return membersOf(fields, "vary").every((name) => known.has(name));
}

/** What a body may have unless the document says more. */
export const DEFAULT_BODY_BYTES = 1024 * 1024;

const isCoded = (coding: string): boolean => coding.trim().toLowerCase() !== "identity";

/** Whether an upstream forbids that its answer is kept. */
export function isForbidden(fields: Readonly<RawFields>): boolean {
  return fieldValues(fields, "cache-control").some(forbids);
}

/** Whether a shared cache may not give an answer that has become stale (RFC 9111, 4.2.4). */
export function forbidsStale(fields: Readonly<RawFields>): boolean {
  return fieldValues(fields, "cache-control").some((value) => names(value, STALE_FORBIDDEN));
}

const FORBIDDEN: ReadonlySet<string> = new Set(["no-store", "private", "no-cache"]);
const STALE_FORBIDDEN: ReadonlySet<string> = new Set(["must-revalidate", "proxy-revalidate", "s-maxage"]);

const forbids = (cacheControl: string): boolean => names(cacheControl, FORBIDDEN);

/** Whether Cache-Control has one of these directives. */
function names(cacheControl: string, directives: ReadonlySet<string>): boolean {
  return cacheControl
    .split(",")
    .some((directive) => directives.has(directive.split("=")[0]?.trim().toLowerCase() ?? ""));
}

function membersOf(fields: Readonly<RawFields>, lowerName: string): string[] {
  return fieldValues(fields, lowerName)
    .join(",")
    .split(",")
    .map((member) => member.trim().toLowerCase())
    .filter((member) => member !== "");
}

/** What a request says so that 304 means that an answer with these fields is as good as ever; empty if it cannot. */
export function conditionsFor(kept: Readonly<RawFields>): RawFields {
  const tag = fieldValue(kept, "etag");
  if (tag !== undefined) return ["If-None-Match", tag];
  const modified = fieldValue(kept, "last-modified");
  return modified === undefined ? [] : ["If-Modified-Since", modified];
}

/** Whether a client has what is kept already, so that 304 says enough (RFC 9110, 13.2.2). */
export function isUnchanged(request: Readonly<RawFields>, kept: Readonly<RawFields>): boolean {
  const tag = fieldValue(kept, "etag");
  const asked = fieldValues(request, "if-none-match");
  if (asked.length > 0) {
    if (asked.some((value) => value.trim() === "*")) return true;
    return tag !== undefined && asked.some((value) => entityTags(value).includes(opaque(tag)));
  }
  const since = parseHttpDate(fieldValue(request, "if-modified-since") ?? "");
  const modified = parseHttpDate(fieldValue(kept, "last-modified") ?? "");
  return since !== undefined && modified !== undefined && Number(modified) <= Number(since);
}

/** Tags as they are compared weakly. */
function entityTags(list: string): string[] {
  return Array.from(list.matchAll(/(?:W\/)?("[^"]*")/g), ([, tag = ""]) => tag);
}

const opaque = (tag: string): string => (tag.startsWith("W/") ? tag.slice(2) : tag).trim();
