import type { GatewaySettings } from "@headworks/gateway-contract";
import { countedDown, ownText, type RawFields } from "@headworks/http1";
import { dashedName, identityKind } from "./client-identity.ts";
import type { RequestContext } from "./context.ts";

const DEFAULT_PASSES = 1;

/**
 * The gateway's marks in Via (RFC 9110, 7.6.3), made once per generation. The pseudonym ends with a token of the
 * instance, so that two instances with the same name in a chain are no loop.
 */
export class Via {
  readonly #instance: string;
  readonly #maxPasses: number;
  /** For requests to upstreams; undefined: none. */
  readonly requests: Marks | undefined;
  /** For responses to clients. */
  readonly responses: Marks | undefined;

  /** `instance` is a token unique to this instance; the workers of one gateway share it. */
  constructor({ name = "gateway", via }: Pick<GatewaySettings, "name" | "via">, instance: string) {
    this.#instance = `-${instance}`;
    this.#maxPasses = via?.max_passes ?? DEFAULT_PASSES;
    const viaPseudonym = `${name}${this.#instance}`;
    // RFC 9113, 8.3: HTTP/2 is version 2.0.
    const marks: Marks = { "1.0": `1.0 ${viaPseudonym}`, "1.1": `1.1 ${viaPseudonym}`, "2": `2.0 ${viaPseudonym}` };
    this.requests = (via?.requests ?? true) ? marks : undefined;
    this.responses = via?.answers === true ? marks : undefined;
  }

  /** Whether a request has passed this instance as often as allowed. */
  isLoop(fields: Readonly<RawFields>): boolean {
    let passes = 0;
    for (let at = 0; at < fields.length; at += 2) {
      if (isVia(fields[at] ?? "")) passes += this.#passesIn(fields[at + 1] ?? "");
    }
    return passes >= this.#maxPasses;
  }

  #passesIn(value: string): number {
    if (!value.includes(this.#instance)) return 0;
    // The token is secret, so comments and unusual spellings need no parsing: a client that writes it was here, or
    // only blocks itself.
    return value.split(this.#instance).length - 1;
  }
}

/** How a field is treated when it is forwarded. */
const TREATMENT = {
  pass: 0,
  drop: 1,
  connection: 2,
  forwardedFor: 3,
  forwarded: 4,
  contentLength: 5,
  te: 6,
  forwardedProto: 7,
  forwardedHost: 8,
  forwardedPort: 9,
  maxForwards: 10,
  /** Passes only from trusted proxies. */
  fromTrusted: 11,
  /** Passes from every client, because the operator allows it. */
  fromAnybody: 12,
} as const;
type Treatment = (typeof TREATMENT)[keyof typeof TREATMENT];

/** Hop-by-hop fields (RFC 9110, 7.6.1), and fields that are set anew for the next connection. */
const REQUEST_FIELDS: Readonly<Record<string, Treatment>> = {
  connection: TREATMENT.connection,
  "keep-alive": TREATMENT.drop,
  "transfer-encoding": TREATMENT.drop,
  "content-length": TREATMENT.drop,
  trailer: TREATMENT.drop,
  upgrade: TREATMENT.drop,
  expect: TREATMENT.drop,
  host: TREATMENT.drop,
  // Many programs would read it as the variable HTTP_PROXY ("httpoxy"); it is in no standard.
  proxy: TREATMENT.drop,
  te: TREATMENT.te,
  "max-forwards": TREATMENT.maxForwards,
  forwarded: TREATMENT.forwarded,
  "x-forwarded-for": TREATMENT.forwardedFor,
  "x-forwarded-proto": TREATMENT.forwardedProto,
  "x-forwarded-host": TREATMENT.forwardedHost,
  "x-forwarded-port": TREATMENT.forwardedPort,
  "x-real-ip": TREATMENT.drop,
};

const RESPONSE_FIELDS: Readonly<Record<string, Treatment>> = {
  connection: TREATMENT.connection,
  "keep-alive": TREATMENT.drop,
  "transfer-encoding": TREATMENT.drop,
  "content-length": TREATMENT.contentLength,
  trailer: TREATMENT.drop,
  upgrade: TREATMENT.drop,
};

/** Limit of cached spellings: clients mostly use the usual ones, and hostile ones must not fill memory. */
const MAX_SPELLINGS = 2000;
const MAX_SPELLING_LENGTH = 64;

class Treatments {
  readonly #byLowerName: Readonly<Record<string, Treatment>>;
  readonly #rest: (lowerName: string) => Treatment;
  readonly #bySpelling = new Map<string, Treatment>();

  constructor(byLowerName: Readonly<Record<string, Treatment>>, rest: (lowerName: string) => Treatment) {
    this.#byLowerName = byLowerName;
    this.#rest = rest;
  }

  of(name: string): Treatment {
    const known = this.#bySpelling.get(name);
    if (known !== undefined) return known;
    const lowerName = name.toLowerCase();
    const listed = Object.hasOwn(this.#byLowerName, lowerName) ? this.#byLowerName[lowerName] : undefined;
    const treatment = listed ?? this.#rest(lowerName);
    const mayStay = name.length <= MAX_SPELLING_LENGTH && this.#bySpelling.size < MAX_SPELLINGS;
    if (mayStay) this.#bySpelling.set(ownText(name), treatment);
    return treatment;
  }
}

function requestTreatments(table: Readonly<Record<string, Treatment>>): Treatments {
  return new Treatments(table, (lowerName) => {
    if (lowerName.startsWith("proxy-") || lowerName.startsWith("x-consumer-")) return TREATMENT.drop;
    // Many upstreams read `X_Consumer_Name` as if it were `X-Consumer-Name`.
    const dashed = dashedName(lowerName);
    const isIdentity = identityKind(dashed) !== undefined;
    if (dashed === lowerName) return isIdentity ? TREATMENT.fromTrusted : TREATMENT.pass;
    const isOurs = dashed.startsWith("x-consumer-") || dashed === "x-api-key" || Object.hasOwn(table, dashed);
    return isIdentity || isOurs ? TREATMENT.drop : TREATMENT.pass;
  });
}

function responseTreatments(table: Readonly<Record<string, Treatment>>): Treatments {
  return new Treatments(table, (lowerName) =>
    lowerName.startsWith("proxy-") || lowerName.startsWith("x-ratelimit-") ? TREATMENT.drop : TREATMENT.pass,
  );
}

const SCHEME = /^https?$/i;
const PORT = /^[0-9]{1,5}$/;

/** Carries the correlation id. */
const CORRELATION = "X-Correlation-Id";
export const LOWER_CORRELATION = "x-correlation-id";

/**
 * The field that carries the request id, to upstreams and to clients, together with the correlation id. Values that
 * clients and upstreams send in these fields are replaced.
 */
export class RequestIdField {
  readonly name: string;
  readonly lowerName: string;
  /** False if the request id itself is sent in X-Correlation-Id. */
  readonly hasCorrelation: boolean;
  /** Whether clients may send some identity headers. */
  readonly passesIdentity: boolean;
  readonly requests: Treatments;
  readonly responses: Treatments;

  /** `fromAnybody`: names of identity headers that clients may send. */
  constructor(name: string, fromAnybody: readonly string[] = []) {
    this.name = name;
    this.lowerName = name.toLowerCase();
    this.hasCorrelation = this.lowerName !== LOWER_CORRELATION;
    this.passesIdentity = fromAnybody.length > 0;
    const own = { [this.lowerName]: TREATMENT.drop, [LOWER_CORRELATION]: TREATMENT.drop };
    const passing = Object.fromEntries(fromAnybody.map((each) => [each.toLowerCase(), TREATMENT.fromAnybody]));
    this.requests = requestTreatments({ ...passing, ...REQUEST_FIELDS, ...own });
    this.responses = responseTreatments({ ...RESPONSE_FIELDS, ...own });
  }

  pushIds(fields: RawFields, { requestId, correlationId }: Pick<RequestContext, "requestId" | "correlationId">): void {
    fields.push(this.name, requestId);
    if (this.hasCorrelation) fields.push(CORRELATION, correlationId);
  }
}

/** The default. */
export const X_REQUEST_ID = new RequestIdField("X-Request-Id");

/** Whether a response field carries an id, which the gateway adds after all other fields. */
export function carriesAnId(
  name: string,
  { request_id_header: idField }: Pick<GatewaySettings, "request_id_header">,
): boolean {
  const lowerName = name.toLowerCase();
  return lowerName === LOWER_CORRELATION || lowerName === (idField?.toLowerCase() ?? X_REQUEST_ID.lowerName);
}

/** Whether a header is removed unless a trusted proxy sent it, and the gateway does not write it itself. */
export function isRemovedFromClients(name: string): boolean {
  return X_REQUEST_ID.requests.of(name.toLowerCase()) === TREATMENT.fromTrusted;
}

/** Fields with a meaning of their own for clients, upstreams or this gateway. */
const NO_IDS = new Set(["accept", "authorization", "cookie", "date", "set-cookie", "vary", "via", "x-api-key"]);
const NO_ID_FORMS = /^(?:access-control-|cache-|content-|if-|sec-|trace|www-|x-gateway-|x-ratelimit-)/;

export function mayCarryRequestId(name: string): boolean {
  const lowerName = name.toLowerCase();
  if (lowerName === X_REQUEST_ID.lowerName || lowerName === LOWER_CORRELATION) return true;
  const isHandled = X_REQUEST_ID.requests.of(lowerName) !== TREATMENT.pass;
  return !isHandled && !NO_IDS.has(lowerName) && !NO_ID_FORMS.test(lowerName);
}

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

/**
 * Scheme, host and port of the request as its upstream sees them: those of this gateway, or those that a trusted
 * proxy sent.
 */
export function askedOrigin({ generation, listener, peer, authority, fields }: RequestContext): AskedOrigin {
  const asked: AskedOrigin = { scheme: listener.isSecure ? "https" : "http", host: authority, port: undefined };
  if (!generation.trustedProxies.includes(peer.address)) return asked;
  const { requests } = generation.requestIdField ?? X_REQUEST_ID;
  for (let at = 0; at < fields.length; at += 2) {
    const value = fields[at + 1] ?? "";
    switch (requests.of(fields[at] ?? "")) {
      case TREATMENT.forwardedProto:
        if (SCHEME.test(value)) asked.scheme = value;
        break;
      case TREATMENT.forwardedHost:
        if (value !== "") asked.host = value;
        break;
      case TREATMENT.forwardedPort:
        if (PORT.test(value)) asked.port = value;
        break;
      default:
    }
  }
  return asked;
}

/**
 * Forwarded identity headers apart from origin and client address; an upstream's response may depend on them. Empty
 * for nearly all requests.
 */
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

interface AskedOrigin {
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
  const { scheme, host, port } = askedOrigin(request);
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

/** The trailers of a response for the client. */
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

/** The HTTP version of a message that the gateway received. */
type ReceivedVersion = "1.0" | "1.1" | "2";

type Marks = Readonly<Record<ReceivedVersion, string>>;

function isVia(name: string): boolean {
  return name.length === 3 && (name === "Via" || name.toLowerCase() === "via");
}
