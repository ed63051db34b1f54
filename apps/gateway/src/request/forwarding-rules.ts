import type { GatewaySettings } from "@headworks/gateway-contract";
import {
  formatPlainAddress,
  type IpNetwork,
  networkContains,
  parseAddress,
  parseNetwork,
} from "@headworks/host-patterns";
import { fieldValues, ownText, type RawFields } from "@headworks/http1";
import { turnMs } from "@headworks/sockets";

/** The proxies whose `X-Forwarded-For` is trusted. */
export class TrustedProxies {
  readonly #networks: readonly IpNetwork[];

  /** Takes addresses and CIDR networks; other texts are skipped, since validation has refused them. */
  constructor(networks: readonly string[]) {
    this.#networks = networks.map((text) => parseNetwork(text)).filter((network) => network !== undefined);
  }

  includes(address: string): boolean {
    if (this.#networks.length === 0) return false;
    const parsed = parseAddress(address);
    return parsed !== undefined && this.#networks.some((network) => networkContains(network, parsed));
  }

  /**
   * The client's address: the peer's, unless the peer is trusted; then the first untrusted address of
   * `X-Forwarded-For` from right to left, in canonical spelling. Empty members are ignored (RFC 9110 section
   * 5.6.1.2); a member without an address ends the walk at the previous one.
   */
  clientAddress(peer: string, fields: Readonly<RawFields>): string {
    if (!this.includes(peer)) return peer;
    const members = fieldValues(fields, "x-forwarded-for").join(",").split(",").toReversed();
    let client = peer;
    for (const member of members) {
      const text = member.trim();
      if (text === "") continue;
      const address = addressOf(text);
      if (address === undefined) return client;
      client = address;
      if (!this.includes(address)) return client;
    }
    return client;
  }
}

/** An IPv4 address with an optional port, or an IPv6 address in brackets with an optional port. */
const WITH_PORT = /^(?:([0-9.]+):[0-9]{1,5}|\[([^\]]*:[^\]]*)\](?::[0-9]{1,5})?)$/;

/** A header names the client (`address`) or the requested URL and protocol (`request`). */
type IdentityKind = "address" | "request";

/** Header families: each name with such a prefix counts. */
const PREFIXES = [
  "forwarded-",
  "ssl-client-",
  "x-arr-",
  "x-auth-request-",
  "x-client-cert",
  "x-envoy-",
  "x-forwarded",
  "x-original-",
  "x-rewrite-",
  "x-ssl-",
] as const;

const ADDRESSES: ReadonlySet<string> = new Set([
  "cf-connecting-ip",
  "cf-connecting-ipv6",
  "cf-pseudo-ipv4",
  "client-ip",
  "cloudfront-viewer-address",
  "fastly-client-ip",
  "fly-client-ip",
  "forwarded",
  "forwarded-for",
  "remote-addr",
  "true-client-ip",
  "x-appengine-user-ip",
  "x-azure-clientip",
  "x-azure-socketip",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-envoy-external-address",
  "x-envoy-original-dst-host",
  "x-envoy-peer-metadata",
  "x-envoy-peer-metadata-id",
  "x-forward-for",
  "x-forwarded",
  "x-forwarded-for",
  "x-nf-client-connection-ip",
  "x-original-forwarded-for",
  "x-originating-ip",
  "x-proxyuser-ip",
  "x-real-ip",
  "x-real-port",
  "x-remote-addr",
  "x-remote-ip",
  "x-sucuri-clientip",
  "x-vercel-forwarded-for",
]);

const OTHERS: ReadonlySet<string> = new Set([
  "cf-ipcountry",
  "cf-visitor",
  // RFC 9440.
  "client-cert",
  "client-cert-chain",
  "cloudfront-forwarded-proto",
  "cloudfront-viewer-country",
  "fastly-ssl",
  "front-end-https",
  "remote-user",
  "x-amzn-mtls-clientcert",
  "x-amzn-mtls-clientcert-leaf",
  "x-amzn-mtls-clientcert-serial-number",
  "x-amzn-mtls-clientcert-subject",
  "x-appengine-country",
  "x-base-url",
  "x-host",
  "x-http-destinationurl",
  "x-http-host-override",
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
  "x-override-url",
  "x-proxy-url",
  "x-real-host",
  "x-real-proto",
  "x-remote-user",
  "x-request-uri",
  "x-scheme",
  "x-script-name",
  "x-server-name",
  "x-tls-client-cert",
  "x-url-scheme",
  "x-verified-client-cert",
  "x-webauth-user",
]);

/** The name as CGI and similar programs see it, which map `-`, or any other separator, to `_`. */
export const dashedName = (lowerName: string): string => lowerName.replace(/[^a-z0-9]/g, "-");

/** The kind of a header given in lower case with dashes; undefined for headers that say nothing about the client. */
export function identityKind(dashed: string): IdentityKind | undefined {
  if (ADDRESSES.has(dashed)) return "address";
  return OTHERS.has(dashed) || PREFIXES.some((prefix) => dashed.startsWith(prefix)) ? "request" : undefined;
}

/** The address of a member, which proxies may write with a port, in brackets (`[2001:db8::9]:51234`) and in quotes. */
function addressOf(member: string): string | undefined {
  const node = /^"(.*)"$/.exec(member)?.[1] ?? member;
  const [, v4, v6] = WITH_PORT.exec(node) ?? [];
  const address = v4 ?? v6 ?? node;
  const parsed = parseAddress(address);
  return parsed === undefined ? undefined : formatPlainAddress(parsed);
}

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
export const TREATMENT = {
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

export class Treatments {
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

const CORRELATION = "X-Correlation-Id";
export const LOWER_CORRELATION = "x-correlation-id";

/** Ids of one request. */
interface RequestIds {
  readonly requestId: string;
  /** The correlation id that the client sent, else the request id. */
  readonly correlationId: string;
}

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

  pushIds(fields: RawFields, { requestId, correlationId }: RequestIds): void {
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

/** The HTTP version of a message that the gateway received. */
type ReceivedVersion = "1.0" | "1.1" | "2";
type Marks = Readonly<Record<ReceivedVersion, string>>;

function isVia(name: string): boolean {
  return name.length === 3 && (name === "Via" || name.toLowerCase() === "via");
}

const MAX_CHARACTERS = 128;
const PRINTABLE = /^[!-~]+$/;
const boot = process.hrtime.bigint();
const bootNs = BigInt(Date.now()) * 1_000_000n;
let counter = 0;
let secondPart = "";
let secondPartUntil = 0;

/** A new id: `req-<16 hex digits: nanoseconds since 1970>-<6 hex digits: a counter>`. */
export function newRequestId(): string {
  const nowMs = turnMs();
  if (nowMs >= secondPartUntil) {
    secondPartUntil = Math.floor(nowMs) + 1;
    secondPart = `req-${(bootNs + process.hrtime.bigint() - boot).toString(16).padStart(16, "0")}-`;
  }
  counter = (counter + 1) & 0xff_ffff;
  return secondPart + (counter + 0x100_0000).toString(16).slice(1);
}

/** The client's request or correlation id, if acceptable: printable ASCII without spaces, at most 128 characters. */
export function acceptableRequestId(sent: string | undefined): string | undefined {
  if (sent === undefined || sent.length > MAX_CHARACTERS || !PRINTABLE.test(sent)) return undefined;
  return sent;
}

/** The request id of both planes: the client's if acceptable, else a new one. */
export function requestIdFor(sent: string | undefined): string {
  return acceptableRequestId(sent) ?? newRequestId();
}
