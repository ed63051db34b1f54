import type { RawFields } from "@headworks/http1";
import type { RequestContext } from "./context.ts";

/** What happens to a field on its way through. */
const TREATMENT = {
  pass: 0,
  drop: 1,
  connection: 2,
  forwardedFor: 3,
  forwarded: 4,
  contentLength: 5,
  te: 6,
} as const;
type Treatment = (typeof TREATMENT)[keyof typeof TREATMENT];

/** Concern one connection only (RFC 9110, 7.6.1), or are set anew for the next one. */
const REQUEST_FIELDS: Readonly<Record<string, Treatment>> = {
  connection: TREATMENT.connection,
  "keep-alive": TREATMENT.drop,
  "transfer-encoding": TREATMENT.drop,
  "content-length": TREATMENT.drop,
  trailer: TREATMENT.drop,
  upgrade: TREATMENT.drop,
  expect: TREATMENT.drop,
  host: TREATMENT.drop,
  // Many programs would take it for the variable HTTP_PROXY ("httpoxy"); no standard knows it.
  proxy: TREATMENT.drop,
  te: TREATMENT.te,
  forwarded: TREATMENT.forwarded,
  "x-forwarded-for": TREATMENT.forwardedFor,
  "x-forwarded-proto": TREATMENT.drop,
  "x-forwarded-host": TREATMENT.drop,
  "x-forwarded-port": TREATMENT.drop,
  "x-real-ip": TREATMENT.drop,
  "x-request-id": TREATMENT.drop,
};

const ANSWER_FIELDS: Readonly<Record<string, Treatment>> = {
  connection: TREATMENT.connection,
  "keep-alive": TREATMENT.drop,
  "transfer-encoding": TREATMENT.drop,
  "content-length": TREATMENT.contentLength,
  trailer: TREATMENT.drop,
  upgrade: TREATMENT.drop,
  "x-request-id": TREATMENT.drop,
};

/** Names come as people write them, so that most are known by their own spelling; hostile ones must not fill memory. */
const MOST_SPELLINGS = 2000;

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
    if (this.#bySpelling.size < MOST_SPELLINGS) this.#bySpelling.set(name, treatment);
    return treatment;
  }
}

const requestTreatments = new Treatments(REQUEST_FIELDS, (lowerName) => {
  if (lowerName.startsWith("proxy-") || lowerName.startsWith("x-consumer-")) return TREATMENT.drop;
  // Many upstreams read `X_Consumer_Name` as if it were `X-Consumer-Name`.
  if (!lowerName.includes("_")) return TREATMENT.pass;
  const dashed = lowerName.replaceAll("_", "-");
  const isIdentity = dashed.startsWith("x-consumer-") || dashed.startsWith("x-forwarded-") || dashed === "x-real-ip";
  return isIdentity || dashed === "x-api-key" || Object.hasOwn(REQUEST_FIELDS, dashed)
    ? TREATMENT.drop
    : TREATMENT.pass;
});

const answerTreatments = new Treatments(ANSWER_FIELDS, (lowerName) =>
  lowerName.startsWith("proxy-") || lowerName.startsWith("x-ratelimit-") ? TREATMENT.drop : TREATMENT.pass,
);

/** Fields that Connection can never remove: what follows relies on them. */
const NEVER_BY_CONNECTION = new Set(["authorization", "cookie", "set-cookie", "cache-control", "x-api-key"]);

/** Lower-case names that a Connection field asks to remove; undefined for the usual values. */
function namedByConnection(value: string): Set<string> | undefined {
  if (value === "keep-alive" || value === "close" || value === "Keep-Alive" || value === "") return undefined;
  const named = new Set<string>();
  for (const part of value.split(",")) {
    const name = part.trim().toLowerCase();
    if (name !== "" && name !== "close" && name !== "keep-alive" && !NEVER_BY_CONNECTION.has(name)) named.add(name);
  }
  return named.size === 0 ? undefined : named;
}

function withoutNamed(fields: RawFields, named: ReadonlySet<string>): RawFields {
  const kept: RawFields = [];
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (!named.has(name.toLowerCase())) kept.push(name, fields[at + 1] ?? "");
  }
  return kept;
}

/**
 * The fields of a request for its upstream, without Host and framing: what concerns the client's connection is left
 * out, whatever a client may not say about itself is removed before the gateway says it (engine rules 11 and 12).
 */
export function upstreamRequestFields(request: RequestContext): RawFields {
  const { fields, peer } = request;
  const fromTrusted = request.generation.trustedProxies.includes(peer.address);
  let kept: RawFields = [];
  let named: Set<string> | undefined;
  let forwardedFor = "";
  let forwarded = "";
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const value = fields[at + 1] ?? "";
    switch (requestTreatments.of(name)) {
      case TREATMENT.pass:
        kept.push(name, value);
        break;
      case TREATMENT.connection: {
        const more = namedByConnection(value);
        if (more !== undefined) named = named === undefined ? more : named.union(more);
        break;
      }
      case TREATMENT.forwardedFor:
        forwardedFor += `${value}, `;
        break;
      case TREATMENT.forwarded:
        forwarded += `${value}, `;
        break;
      case TREATMENT.te:
        if (/(?:^|,)[ \t]*trailers[ \t]*(?:,|$)/i.test(value)) kept.push("TE", "trailers");
        break;
      default:
    }
  }
  if (named !== undefined) kept = withoutNamed(kept, named);
  if (request.credentialFields !== undefined) kept = withoutNamed(kept, request.credentialFields);
  const scheme = request.listener.isSecure ? "https" : "http";
  kept.push("X-Forwarded-For", fromTrusted ? forwardedFor + peer.address : peer.address, "X-Forwarded-Proto", scheme);
  if (request.authority !== undefined) kept.push("X-Forwarded-Host", request.authority);
  kept.push("X-Real-IP", peer.address);
  if (fromTrusted && forwarded !== "") kept.push("Forwarded", forwarded + forwardedElement(request, scheme));
  kept.push("X-Request-Id", request.requestId);
  const marks = request.generation.via?.requests;
  if (marks !== undefined) kept.push("Via", marks[request.version]);
  if (request.consumer !== undefined) kept.push("X-Consumer-Name", request.consumer.name);
  return kept;
}

/** The trailers of a request for its upstream: what may not stand in its head may not come behind its body either. */
export function upstreamRequestTrailers(request: RequestContext, fields: RawFields): RawFields | undefined {
  const kept = onlyPassing(fields, requestTreatments);
  const trailers = request.credentialFields === undefined ? kept : withoutNamed(kept, request.credentialFields);
  return trailers.length === 0 ? undefined : trailers;
}

/** The same for the trailers of an answer. */
export function clientAnswerTrailers(fields: RawFields): RawFields | undefined {
  const kept = onlyPassing(fields, answerTreatments);
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

/** One element of RFC 7239; an IPv6 address is quoted and in brackets. */
function forwardedElement(request: RequestContext, scheme: string): string {
  const { address } = request.peer;
  const by = address.includes(":") ? `"[${address}]"` : address;
  const host = request.authority === undefined ? "" : `;host="${request.authority.replace(/["\\]/g, "")}"`;
  return `for=${by}${host};proto=${scheme}`;
}

/**
 * The fields of an upstream's answer for the client, without framing; `keepLength` keeps a Content-Length that
 * describes a body which does not come (HEAD, 304). Limits that an upstream announces are not the client's.
 */
export function clientAnswerFields(fields: Readonly<RawFields>, keepLength: boolean): RawFields {
  let kept: RawFields = [];
  let named: Set<string> | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const value = fields[at + 1] ?? "";
    switch (answerTreatments.of(name)) {
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
