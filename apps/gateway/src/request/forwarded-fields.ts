import { countedDown, type RawFields } from "@headworks/http1";
import { identityKind, TREATMENT, type Treatments, X_REQUEST_ID } from "./forwarding-rules.ts";
import type { RequestContext } from "./context.ts";

const SCHEME = /^https?$/i;
const PORT = /^[0-9]{1,5}$/;

/** Fields that Connection cannot remove, because later steps rely on them. */
const NEVER_BY_CONNECTION = new Set(["authorization", "cookie", "set-cookie", "cache-control", "x-api-key"]);

/** Lower-case names that a Connection field removes; undefined for the usual values. */
function namedByConnection(value: string): Set<string> | undefined {
  if (value === "keep-alive" || value === "close" || value === "Keep-Alive" || value === "") return undefined;
  const named = new Set<string>();
  for (const part of value.split(",")) {
    const name = part.trim().toLowerCase();
    if (name !== "" && name !== "close" && name !== "keep-alive" && !NEVER_BY_CONNECTION.has(name)) named.add(name);
  }
  return named.size === 0 ? undefined : named;
}

function withoutNamed(fields: Readonly<RawFields>, named: ReadonlySet<string>): RawFields {
  const kept: RawFields = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (!named.has(name.toLowerCase())) kept.push(name, fields[at + 1] ?? "");
  }
  return kept;
}

/** Scheme, host and port as the upstream sees them: the gateway's, or what a trusted proxy sent. */
export function requestedOrigin({ generation, listener, peer, authority, fields }: RequestContext): RequestedOrigin {
  const origin: RequestedOrigin = { scheme: listener.isSecure ? "https" : "http", host: authority, port: undefined };
  if (!generation.trustedProxies.includes(peer.address)) return origin;
  const { requests } = generation.requestIdField ?? X_REQUEST_ID;
  for (let at = 0; at < fields.length; at += 2) {
    const value = fields[at + 1] ?? "";
    switch (requests.of(fields[at] ?? "")) {
      case TREATMENT.forwardedProto:
        if (SCHEME.test(value)) origin.scheme = value;
        break;
      case TREATMENT.forwardedHost:
        if (value !== "") origin.host = value;
        break;
      case TREATMENT.forwardedPort:
        if (PORT.test(value)) origin.port = value;
        break;
      default:
    }
  }
  return origin;
}

/** Forwarded identity headers apart from origin and address, on which a response may depend. */
export function identityKey({ generation, peer, fields }: RequestContext): string {
  const idField = generation.requestIdField ?? X_REQUEST_ID;
  const fromTrusted = generation.trustedProxies.includes(peer.address);
  if (!fromTrusted && !idField.passesIdentity) return "";
  let key = "";
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const treatment = idField.requests.of(name);
    const isSent = treatment === TREATMENT.fromAnybody || (fromTrusted && treatment === TREATMENT.fromTrusted);
    if (!isSent) continue;
    const lowerName = name.toLowerCase();
    if (identityKind(lowerName) === "request") key += `${lowerName}:${fields[at + 1] ?? ""}\r`;
  }
  return key;
}

interface RequestedOrigin {
  scheme: string;
  host: string | undefined;
  port: string | undefined;
}

/**
 * The fields of a request for its upstream, without Host and framing. Hop-by-hop fields and fields that clients may
 * not send are removed before the gateway adds its own. TE is hop-by-hop in HTTP/1.1; in HTTP/2 it announces support
 * of trailers (RFC 9113 section 8.2.2), which gRPC requires.
 */
export function upstreamRequestFields(request: RequestContext, toHttp2 = false): RawFields {
  const { fields, peer } = request;
  const idField = request.generation.requestIdField ?? X_REQUEST_ID;
  const treatments = idField.requests;
  const fromTrusted = request.generation.trustedProxies.includes(peer.address);
  let kept: RawFields = [];
  let named: Set<string> | undefined;
  let forwardedFor = "";
  let forwarded = "";
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const value = fields[at + 1] ?? "";
    switch (treatments.of(name)) {
      case TREATMENT.pass:
      case TREATMENT.fromAnybody:
        kept.push(name, value);
        break;
      case TREATMENT.connection: {
        const more = namedByConnection(value);
        if (more !== undefined) named = named === undefined ? more : named.union(more);
        break;
      }
      case TREATMENT.forwardedFor:
        if (value !== "") forwardedFor += `${value}, `;
        break;
      case TREATMENT.forwarded:
        forwarded += `${value}, `;
        break;
      case TREATMENT.maxForwards:
        kept.push(name, countedDown(request.method, value));
        break;
      case TREATMENT.te:
        if (toHttp2 && /(?:^|,)[ \t]*trailers[ \t]*(?:,|$)/i.test(value)) kept.push("TE", "trailers");
        break;
      case TREATMENT.fromTrusted:
        if (fromTrusted) kept.push(name, value);
        break;
      default:
    }
  }
  if (named !== undefined) kept = withoutNamed(kept, named);
  if (request.credentialFields !== undefined) kept = withoutNamed(kept, request.credentialFields);
  if (request.validation !== undefined) kept = withConditions(kept, request.validation);
  const { scheme, host, port } = requestedOrigin(request);
  kept.push("X-Forwarded-For", fromTrusted ? forwardedFor + peer.address : peer.address, "X-Forwarded-Proto", scheme);
  if (host !== undefined) kept.push("X-Forwarded-Host", host);
  if (port !== undefined) kept.push("X-Forwarded-Port", port);
  kept.push("X-Real-IP", request.clientAddress);
  if (fromTrusted && forwarded !== "") kept.push("Forwarded", forwarded + forwardedElement(request));
  idField.pushIds(kept, request);
  const marks = request.generation.via?.requests;
  if (marks !== undefined) kept.push("Via", marks[request.version]);
  if (request.consumer !== undefined) kept.push("X-Consumer-Name", request.consumer.name);
  return kept;
}

/** Conditions of a client concern its own copy, not the stored one (RFC 9110, 13.1). */
const CONDITIONS: ReadonlySet<string> = new Set([
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
]);

/** The fields with `conditions` in place of the client's. */
export function withConditions(fields: Readonly<RawFields>, conditions: Readonly<RawFields>): RawFields {
  return [...withoutNamed(fields, CONDITIONS), ...conditions];
}

/** The trailers of a request for its upstream: fields that are removed from the head are removed here, too. */
export function upstreamRequestTrailers(request: RequestContext, fields: RawFields): RawFields | undefined {
  const kept = onlyPassing(fields, (request.generation.requestIdField ?? X_REQUEST_ID).requests);
  const trailers = request.credentialFields === undefined ? kept : withoutNamed(kept, request.credentialFields);
  return trailers.length === 0 ? undefined : trailers;
}

export function clientResponseTrailers(fields: RawFields, idField = X_REQUEST_ID): RawFields | undefined {
  const kept = onlyPassing(fields, idField.responses);
  return kept.length === 0 ? undefined : kept;
}

function onlyPassing(fields: RawFields, treatments: Treatments): RawFields {
  const kept: RawFields = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (treatments.of(name) === TREATMENT.pass) kept.push(name, fields[at + 1] ?? "");
  }
  return kept;
}

/** One element of Forwarded (RFC 7239); an IPv6 address is quoted and in brackets. */
function forwardedElement(request: RequestContext): string {
  const { address } = request.peer;
  const scheme = request.listener.isSecure ? "https" : "http";
  const by = address.includes(":") ? `"[${address}]"` : address;
  const host = request.authority === undefined ? "" : `;host="${request.authority.replace(/["\\]/g, "")}"`;
  return `for=${by}${host};proto=${scheme}`;
}

/**
 * The fields of an upstream's response for the client, without framing; `keepLength` keeps the Content-Length of an
 * absent body (HEAD, 304). Rate limit fields of the upstream are removed.
 */
export function clientResponseFields(
  fields: Readonly<RawFields>,
  keepLength: boolean,
  idField = X_REQUEST_ID,
): RawFields {
  let kept: RawFields = [];
  let named: Set<string> | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const value = fields[at + 1] ?? "";
    switch (idField.responses.of(name)) {
      case TREATMENT.pass:
        kept.push(name, value);
        break;
      case TREATMENT.contentLength:
        if (keepLength) kept.push(name, value);
        break;
      case TREATMENT.connection: {
        const more = namedByConnection(value);
        if (more !== undefined) named = named === undefined ? more : named.union(more);
        break;
      }
      default:
    }
  }
  if (named !== undefined) kept = withoutNamed(kept, named);
  return kept;
}
