import type { X509Certificate } from "node:crypto";
import type { Logger } from "pino";
import type { Consumer } from "@headworks/gateway-contract";
import type { RawFields } from "@headworks/http1";
import type { ConsumerIdentity, Gate, Refusal, RequestContext, Verdict } from "#request/context.ts";
import type { Clock } from "#slice.ts";
import { credentialsOf, identityOf } from "./consumer-identity.ts";

/** The authenticators of a generation. */
export interface Authentication {
  /** In order of precedence: the first that claims the credentials decides. */
  readonly readers: readonly CredentialReader[];
  /** Used only without credential fields; undefined if no consumer has a certificate. */
  readonly certificates: ClientCertificates | undefined;
  /** True if upstreams receive valid credential fields. */
  readonly forwardsCredentials: boolean;
  readonly unauthorized: Refusal;
  readonly reports: AuthenticationReports;
}

const UNAVAILABLE: Refusal = { code: "authentication_unavailable" };
const NONE: ReadonlySet<string> = new Set();

/** Identifies the consumer. Presented credentials must be valid even on public routes. */
export class AuthenticationGate implements Gate {
  readonly #authentication: Authentication;
  readonly #isRequired: boolean;
  /** Fields withheld from upstreams, by index of the reader that recognized the request. */
  readonly #hidden: readonly ReadonlySet<string>[];
  readonly #everyField: ReadonlySet<string>;

  constructor(authentication: Authentication, isRequired: boolean) {
    this.#authentication = authentication;
    this.#isRequired = isRequired;
    this.#hidden = authentication.readers.map(({ fields, isForwarded }) =>
      isForwarded || authentication.forwardsCredentials ? NONE : new Set(fields),
    );
    this.#everyField = new Set(authentication.readers.flatMap(({ fields }) => fields));
  }

  check(request: RequestContext): Verdict | Promise<Verdict> {
    const presented = presentedCredentials(request.fields);
    return presented === undefined ? this.#authenticatePeer(request) : this.#authenticate(request, presented);
  }

  #authenticate(request: RequestContext, presented: PresentedCredentials): Verdict | Promise<Verdict> {
    const { readers } = this.#authentication;
    for (let at = 0; at < readers.length; at++) {
      const reader = readers[at];
      if (reader?.claims(presented) !== true) continue;
      const hidden = this.#hiddenBy(at, presented);
      const recognition = reader.read(request, presented);
      return recognition instanceof Promise
        ? this.#later(request, recognition, hidden)
        : this.#verdict(request, recognition, hidden);
    }
    return this.#authenticatePeer(request);
  }

  async #later(
    request: RequestContext,
    later: Promise<Recognition>,
    hidden: ReadonlySet<string> | undefined,
  ): Promise<Verdict> {
    return this.#verdict(request, await later, hidden);
  }

  #authenticatePeer(request: RequestContext): Verdict {
    const { certificates, unauthorized } = this.#authentication;
    const { certificate } = request.peer;
    if (certificates !== undefined && certificate !== undefined) {
      return this.#verdict(request, certificates.read(certificate), undefined);
    }
    return this.#isRequired ? unauthorized : undefined;
  }

  #verdict(request: RequestContext, recognition: Recognition, hidden: ReadonlySet<string> | undefined): Verdict {
    switch (recognition.kind) {
      case "consumer":
        request.consumer = recognition.identity;
        request.credentialFields = hidden;
        return undefined;
      case "unavailable":
        this.#authentication.reports.unavailable(request, recognition.why);
        return UNAVAILABLE;
      case "unchecked":
        this.#authentication.reports.unavailable(request, recognition.why);
        // Unverified credentials must not reach upstreams.
        request.credentialFields = this.#everyField;
        return this.#isRequired ? this.#authentication.unauthorized : undefined;
      case "invalid":
        return this.#authentication.unauthorized;
    }
  }

  /**
   * Fields to remove before forwarding: those of the verified credential and of others not checked. An upstream may
   * trust the gateway to have verified a credential type.
   */
  #hiddenBy(at: number, presented: PresentedCredentials): ReadonlySet<string> | undefined {
    const { readers } = this.#authentication;
    let hidden = this.#hidden[at] ?? NONE;
    for (let other = at + 1; other < readers.length; other++) {
      const reader = readers[other];
      if (reader?.claims(presented) === true) hidden = hidden.union(new Set(reader.fields));
    }
    return hidden.size === 0 ? undefined : hidden;
  }
}

export const API_KEY_FIELD = "x-api-key";
export const AUTHORIZATION_FIELD = "authorization";
/** The fields of a signed request. */
export const SIGNING_FIELDS = {
  keyId: "x-gateway-key-id",
  timestamp: "x-gateway-timestamp",
  nonce: "x-gateway-nonce",
  bodySha256: "x-gateway-body-sha256",
  signature: "x-gateway-signature",
} as const;

/** Credential fields of a request. */
export interface PresentedCredentials {
  apiKey: string | undefined;
  authorization: SchemeCredential | undefined;
  signing: Map<string, string> | undefined;
  /** Lower-case names of repeated fields, which are ambiguous. */
  repeated: Set<string> | undefined;
}

const SIGNING_NAMES: ReadonlySet<string> = new Set(Object.values(SIGNING_FIELDS));
const MIN_SIGNING_NAME_LENGTH = Math.min(...Object.values(SIGNING_FIELDS).map((name) => name.length));

/**
 * Collects credentials in one pass; undefined for anonymous requests, the most common case. Names are prefiltered by
 * length and first letter before lower-casing.
 */
export function presentedCredentials(fields: Readonly<RawFields>): PresentedCredentials | undefined {
  let found: PresentedCredentials | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? "";
    if (!mayMatter(name)) continue;
    const lowerName = name.toLowerCase();
    const value = fields[at + 1] ?? "";
    if (lowerName === API_KEY_FIELD) {
      found ??= nothing();
      if (found.apiKey !== undefined) addRepeated(found, lowerName);
      found.apiKey = value;
    } else if (lowerName === AUTHORIZATION_FIELD) {
      found ??= nothing();
      if (found.authorization !== undefined) addRepeated(found, lowerName);
      found.authorization = schemeOf(value);
    } else if (SIGNING_NAMES.has(lowerName)) {
      found ??= nothing();
      found.signing ??= new Map();
      if (found.signing.has(lowerName)) addRepeated(found, lowerName);
      found.signing.set(lowerName, value);
    }
  }
  return found;
}

function mayMatter(name: string): boolean {
  // Lower-cases letters; false positives are excluded by the full comparison.
  const first = name.charCodeAt(0) | 0x20;
  if (first === 0x61) return name.length === AUTHORIZATION_FIELD.length;
  return first === 0x78 && (name.length === API_KEY_FIELD.length || name.length >= MIN_SIGNING_NAME_LENGTH);
}

function addRepeated(found: PresentedCredentials, lowerName: string): void {
  (found.repeated ??= new Set()).add(lowerName);
}

function nothing(): PresentedCredentials {
  return { apiKey: undefined, authorization: undefined, signing: undefined, repeated: undefined };
}

/** A parsed `Authorization` value (RFC 9110 section 11.6.2). */
interface SchemeCredential {
  /** In lower case. */
  readonly scheme: string;
  /** The rest after the scheme and spaces. */
  readonly rest: string;
}

/** Splits an `Authorization` value. Never fails; an empty value has an empty scheme. */
function schemeOf(value: string): SchemeCredential {
  const end = value.search(/[ \t]/);
  if (end === -1) return { scheme: value.toLowerCase(), rest: "" };
  return { scheme: value.slice(0, end).toLowerCase(), rest: value.slice(end).trim() };
}

export type Recognition =
  | { readonly kind: "consumer"; readonly identity: ConsumerIdentity }
  | { readonly kind: "invalid" }
  /** Verification is unavailable; `why` is a sentence for the log. */
  | { readonly kind: "unavailable"; readonly why: string }
  /** As above, but the document lets such requests pass anonymously. */
  | { readonly kind: "unchecked"; readonly why: string };

export const INVALID: Recognition = Object.freeze({ kind: "invalid" });

/** One way to present credentials in fields. */
export interface CredentialReader {
  /** Lower-case field names. */
  readonly fields: readonly string[];
  /** True if upstreams always receive valid credentials of this type. */
  readonly isForwarded: boolean;
  /** True if the credentials are for this reader. Unclaimed ones are left to the upstream. */
  claims(presented: PresentedCredentials): boolean;
  /** Verifies claimed credentials; returns a promise only if it has to wait. */
  read(request: RequestContext, presented: PresentedCredentials): Recognition | Promise<Recognition>;
}

export function recognitionOf(identity: ConsumerIdentity | undefined): Recognition {
  return identity === undefined ? INVALID : { kind: "consumer", identity };
}

/** Minimum interval of repeated log lines. */
const REPEAT_MS = 1000;

/** Logs why credentials cannot be verified. */
export class AuthenticationReports {
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #reported = new Map<string, { atMs: number; requests: number }>();

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Logs at most once a second per reason, with the number of requests. */
  unavailable(request: RequestContext, why: string): void {
    const reported = this.#reported.get(why) ?? { atMs: Number.NEGATIVE_INFINITY, requests: 0 };
    this.#reported.set(why, reported);
    reported.requests += 1;
    const nowMs = this.#clock.monotonic();
    if (nowMs - reported.atMs < REPEAT_MS) return;
    const labels = { request_id: request.requestId, route: request.route?.name, requests: reported.requests };
    this.#log.error({ code: "authentication_unavailable", ...labels }, why);
    reported.atMs = nowMs;
    reported.requests = 0;
  }
}

/** Consumers by client certificate, which the listener has already verified. */
export class ClientCertificates {
  readonly #byFingerprint = new Map<string, ConsumerIdentity>();
  readonly #bySubject = new Map<string, ConsumerIdentity>();
  /** A connection presents the same certificate with every request. */
  readonly #known = new WeakMap<X509Certificate, Recognition>();

  constructor(consumers: readonly Consumer[]) {
    for (const { consumer, credential } of credentialsOf(consumers, "mtls")) {
      const identity = identityOf(consumer, "mtls");
      if (credential.fingerprint !== undefined) {
        this.#byFingerprint.set(plainFingerprint(credential.fingerprint), identity);
      } else if (credential.subject !== undefined) {
        this.#bySubject.set(credential.subject, identity);
      }
    }
  }

  get size(): number {
    return this.#byFingerprint.size + this.#bySubject.size;
  }

  /** The consumer of a certificate; one without a consumer is refused. */
  read(certificate: X509Certificate): Recognition {
    const known = this.#known.get(certificate) ?? this.#find(certificate);
    this.#known.set(certificate, known);
    return known;
  }

  #find(certificate: X509Certificate): Recognition {
    const exact = this.#byFingerprint.get(plainFingerprint(certificate.fingerprint256));
    if (exact !== undefined || this.#bySubject.size === 0) return recognitionOf(exact);
    const name = commonNameOf(certificate);
    return name === undefined ? INVALID : recognitionOf(this.#bySubject.get(name));
  }
}

/** Hexadecimal digits without colons, in lower case. */
export function plainFingerprint(text: string): string {
  return text.replaceAll(":", "").toLowerCase();
}

/** The common name of the subject; undefined unless exactly one. */
function commonNameOf(certificate: X509Certificate): string | undefined {
  // Parsing the printed subject would be open to injection.
  const name: unknown = certificate.toLegacyObject().subject.CN;
  return typeof name === "string" ? name : undefined;
}
