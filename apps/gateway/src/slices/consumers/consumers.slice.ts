import type { SharedBytes } from "@headworks/sockets";
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Logger } from "pino";
import type { Secret } from "@headworks/contract-kit";
import type { ConfigDocument, Consumer, IntrospectionProvider, JwtProvider } from "@headworks/gateway-contract";
import { hasBody, ownText, wireText } from "@headworks/http1";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { parseEgressUrl } from "#egress/egress-url.ts";
import { post } from "#egress/post.ts";
import {
  API_KEY_FIELD,
  type Authentication,
  AuthenticationGate,
  AuthenticationReports,
  AUTHORIZATION_FIELD,
  ClientCertificates,
  type CredentialReader,
  INVALID,
  type PresentedCredentials,
  type Recognition,
  recognitionOf,
  SIGNING_FIELDS,
} from "./authentication-gate.ts";
import {
  challengesOf,
  type BodyCheck,
  type ConsumerIdentity,
  type Refusal,
  type RequestContext,
} from "#request/context.ts";
import type { Clock, CompileScope, CompiledSlice, GatewaySlice } from "#slice.ts";
import {
  credentialsOf,
  digestOfText,
  digestOfWire,
  identityOf,
  isSameDigest,
  type IsValid,
  selectorOf,
  validityOf,
} from "./consumer-identity.ts";
import { checkConsumers } from "./consumers.check.ts";
import { DiscoveredEndpoint, fetchPublished, jsonObject } from "./discovered-endpoint.ts";
import { IssuedKeys } from "./issued-credentials.ts";
import { KeySet, type KeySetRules } from "./key-set.ts";
import { NonceMemory, type Nonces, type NonceVerdict } from "./nonce-memory.ts";
import { type IntrospectionSource, TokenIntrospection } from "./token-introspection.ts";
import { TokenOwners, type TokenProvider, TokenVerifier } from "./token-verifier.ts";

const VERSION_TAG = "gateway-hmac-v1";

const SHAPES: Readonly<Record<keyof SigningParts, RegExp>> = {
  keyId: /^[!-~]{1,128}$/,
  timestamp: /^[0-9]{1,12}$/,
  nonce: /^[!-~]{16,256}$/,
  bodySha256: /^[0-9a-f]{64}$/,
  signature: /^[0-9a-f]{64}$/,
};

/** Signing secrets of a generation; HMAC needs them in plain text. */
class SigningKeys {
  readonly #byId = new Map<string, SigningKey>();
  /** Random secret for unknown key ids, for constant response time. */
  readonly #unknownSecret = randomBytes(32);

  constructor(consumers: readonly Consumer[], secret: (text: string) => Secret, clock: Clock) {
    for (const { consumer, credential } of credentialsOf(consumers, "hmac")) {
      this.#byId.set(credential.key_id, {
        secret: Buffer.from(secret(credential.secret).reveal()),
        identity: identityOf(consumer, "hmac"),
        isValid: validityOf(credential, clock),
      });
    }
  }

  get size(): number {
    return this.#byId.size;
  }

  /** The signer; undefined for an unknown key id or a wrong signature. */
  find(target: SignedTarget, parts: SigningParts): ConsumerIdentity | undefined {
    const key = this.#byId.get(parts.keyId);
    const mac = macOf(key?.secret ?? this.#unknownSecret, canonicalString(target, parts));
    const isRight = timingSafeEqual(mac, Buffer.from(parts.signature, "hex")) && key?.isValid?.() !== false;
    return isRight ? key?.identity : undefined;
  }
}

const RESPONSE_TIMEOUT_MS = 5000;

/** Typical responses have some hundred bytes. */
const MAX_RESPONSE_BYTES = 65_536;
const LOG_EVERY_MS = 10_000;

/**
 * Reads `Authorization: Bearer` (RFC 6750): verifies JSON Web Tokens of known issuers, introspects others. Tokens are
 * forwarded to upstreams, which may need their claims.
 */
class BearerReader implements CredentialReader {
  readonly fields = [AUTHORIZATION_FIELD];
  readonly isForwarded = true;
  readonly #verifier: TokenVerifier | undefined;
  readonly #introspection: TokenIntrospection | undefined;

  constructor(verifier: TokenVerifier | undefined, introspection: TokenIntrospection | undefined) {
    this.#verifier = verifier;
    this.#introspection = introspection;
  }

  claims({ authorization, repeated }: PresentedCredentials): boolean {
    return authorization?.scheme === "bearer" || repeated?.has(AUTHORIZATION_FIELD) === true;
  }

  read(
    _request: RequestContext,
    { authorization, repeated }: PresentedCredentials,
  ): Recognition | Promise<Recognition> {
    if (authorization === undefined || repeated?.has(AUTHORIZATION_FIELD) === true) return INVALID;
    const token = authorization.rest;
    if (this.#introspection === undefined) return this.#verifier?.verify(token) ?? INVALID;
    const keys = this.#verifier?.keysOf(token) ?? "none";
    if (this.#verifier === undefined || keys === "none") return this.#introspection.recognise(token);
    const verified = this.#verifier.verify(token);
    // Keys of the token's own issuer are authoritative; other keys may just not be the signer's.
    return keys === "own" ? verified : this.#unlessInvalid(verified, this.#introspection, token);
  }

  async #unlessInvalid(
    verified: Recognition | Promise<Recognition>,
    introspection: TokenIntrospection,
    token: string,
  ): Promise<Recognition> {
    const recognition = await verified;
    return recognition.kind === "invalid" ? await introspection.recognise(token) : recognition;
  }
}

const SOMEBODY: ConsumerIdentity = { name: "", groups: [], priority: undefined, credential: "basic" };

// Compared for unknown users, for constant response time.
const UNKNOWN_USER: readonly KnownPassword[] = [{ digest: digestOfText(""), identity: SOMEBODY, isValid: () => false }];

/** Users with passwords. Stores only SHA-256 of the passwords. */
class BasicPasswords {
  /** Several passwords per user allow rotation. */
  readonly #byName = new Map<string, KnownPassword[]>();

  constructor(consumers: readonly Consumer[], secret: (text: string) => Secret, clock: Clock) {
    for (const { consumer, credential } of credentialsOf(consumers, "basic")) {
      const digest = digestOfText(secret(credential.password).reveal());
      // Charset UTF-8 (RFC 7617 section 2.1).
      const name = wireText(credential.username);
      const passwords = this.#byName.get(name) ?? [];
      passwords.push({ digest, identity: identityOf(consumer, "basic"), isValid: validityOf(credential, clock) });
      this.#byName.set(name, passwords);
    }
  }

  get size(): number {
    return this.#byName.size;
  }

  /** The user of a credential; undefined for a wrong password or malformed credential. */
  find(credential: string): ConsumerIdentity | undefined {
    const presented = userPassOf(credential);
    if (presented === undefined) return undefined;
    const digest = digestOfWire(presented.password);
    let identity: ConsumerIdentity | undefined;
    for (const known of this.#byName.get(presented.username) ?? UNKNOWN_USER) {
      if (isSameDigest(known.digest, digest) && known.isValid?.() !== false) identity = known.identity;
    }
    return identity;
  }
}

/** SHA-256 of an empty body. */
const EMPTY_SHA256 = createHash("sha256").digest("hex");

/** Verifies the body of a signed request against the signed digest. */
class BodyDigestCheck implements BodyCheck {
  readonly #hash = createHash("sha256");
  readonly #expected: string;
  readonly #refused: () => Refusal;

  /** `refused` creates the response for a mismatch. */
  constructor(expected: string, refused: () => Refusal) {
    this.#expected = expected;
    this.#refused = refused;
  }

  onData(piece: SharedBytes): void {
    this.#hash.update(piece as Buffer);
  }

  onEnd(): Refusal | undefined {
    // Both digests are known to the client, so timing reveals nothing.
    return this.#hash.digest("hex") === this.#expected ? undefined : this.#refused();
  }
}

const FULL: Recognition = Object.freeze({
  kind: "unavailable",
  why: "There is no room to remember the nonces of signed requests",
});

/**
 * Reads the five `X-Gateway-*` fields of a signed request, cheapest checks first. A nonce is stored only after its
 * signature is verified, so that others cannot fill the memory.
 */
class SignatureReader implements CredentialReader {
  readonly fields = Object.values(SIGNING_FIELDS);
  readonly isForwarded = false;
  readonly #tools: SignatureTools;

  constructor(tools: SignatureTools) {
    this.#tools = tools;
  }

  claims({ signing }: PresentedCredentials): boolean {
    return signing !== undefined;
  }

  read(request: RequestContext, presented: PresentedCredentials): Recognition | Promise<Recognition> {
    const { keys, nonces, clock, maxSkewMs } = this.#tools;
    const parts = signingPartsOf(presented);
    if (parts === undefined) return INVALID;
    if (Math.abs(clock.now() - Number(parts.timestamp) * 1000) > maxSkewMs) return INVALID;
    const identity = keys.find(request, parts);
    if (identity === undefined) return INVALID;
    if (!hasBody(request.framing) && parts.bodySha256 !== EMPTY_SHA256) return INVALID;
    // A timestamp at the far end of the window stays valid for twice its width.
    const verdict = nonces.add(parts.keyId, parts.nonce, clock.monotonic(), 2 * maxSkewMs);
    return verdict instanceof Promise
      ? verdict.then((known) => this.#recognised(request, parts.bodySha256, identity, known))
      : this.#recognised(request, parts.bodySha256, identity, verdict);
  }

  #recognised(
    request: RequestContext,
    bodySha256: string,
    identity: ConsumerIdentity,
    verdict: NonceVerdict,
  ): Recognition {
    if (verdict === "seen") return INVALID;
    if (verdict === "full") return FULL;
    if (hasBody(request.framing)) {
      request.bodyCheck = new BodyDigestCheck(bodySha256, () => this.#mismatch(request));
    }
    return { kind: "consumer", identity };
  }

  #mismatch(request: RequestContext): Refusal {
    const { log, unauthorized } = this.#tools;
    const { requestId, consumer, route } = request;
    const labels = { request_id: requestId, consumer: consumer?.name, route: route?.name };
    log.warn(
      { code: "signature_body_mismatch", ...labels },
      "The body of a signed request is not the one that was signed",
    );
    return unauthorized;
  }
}

/** Reads `Authorization: Basic` (RFC 7617). */
class BasicReader implements CredentialReader {
  readonly fields = [AUTHORIZATION_FIELD];
  readonly isForwarded = false;
  readonly #passwords: BasicPasswords;

  constructor(passwords: BasicPasswords) {
    this.#passwords = passwords;
  }

  claims({ authorization, repeated }: PresentedCredentials): boolean {
    return authorization?.scheme === "basic" || repeated?.has(AUTHORIZATION_FIELD) === true;
  }

  read(_request: RequestContext, { authorization, repeated }: PresentedCredentials): Recognition {
    if (authorization === undefined || repeated?.has(AUTHORIZATION_FIELD) === true) return INVALID;
    return recognitionOf(this.#passwords.find(authorization.rest));
  }
}

/** Recently used valid keys; most concurrent requests carry the same few. */
const MAX_RECENT = 1024;

/** Configured and issued API keys. Stores SHA-256, and recent texts to avoid a digest per request. */
class ApiKeys {
  readonly #byDigest = new Map<string, KnownKey>();
  readonly #recent = new Map<string, KnownKey>();
  readonly #issued: IssuedKeys;
  /** Consumers of this generation; keys of a removed consumer are invalid. */
  readonly #byName = new Map<string, ConsumerIdentity>();

  constructor(
    consumers: readonly Consumer[],
    secret: (text: string) => Secret,
    clock: Clock,
    issued = new IssuedKeys(clock),
  ) {
    this.#issued = issued;
    for (const consumer of consumers) this.#byName.set(consumer.name, identityOf(consumer, "api_key"));
    for (const { consumer, credential } of credentialsOf(consumers, "api_key")) {
      const digest = digestOfText(secret(credential.key).reveal());
      const identity = identityOf(consumer, "api_key");
      this.#byDigest.set(selectorOf(digest), { digest, identity, isValid: validityOf(credential, clock) });
    }
  }

  get size(): number {
    return this.#byDigest.size;
  }

  /** The owner of a valid key. `key` is a field value, one byte per character. */
  find(key: string): ConsumerIdentity | undefined {
    const recent = this.#recent.get(key);
    if (recent !== undefined) return recent.isValid?.() === false ? undefined : recent.identity;
    const digest = digestOfWire(key);
    // A client cannot choose digests of unknown keys, so lookup timing reveals nothing.
    const known = this.#byDigest.get(selectorOf(digest));
    if (known === undefined || !isSameDigest(known.digest, digest)) return this.#findIssued(digest);
    if (this.#recent.size >= MAX_RECENT) this.#recent.clear();
    this.#recent.set(ownText(key), known);
    return known.isValid?.() === false ? undefined : known.identity;
  }

  /** True for a key of the document, whether currently valid or not. */
  knows(key: string): boolean {
    return this.#byDigest.has(selectorOf(digestOfText(key)));
  }

  #findIssued(digest: Buffer): ConsumerIdentity | undefined {
    const owner = this.#issued.ownerOf(digest);
    return owner === undefined ? undefined : this.#byName.get(owner);
  }
}

/** Reads `X-API-Key`, a field of the gateway: if any consumers exist, a key must belong to one. */
class ApiKeyReader implements CredentialReader {
  readonly fields = [API_KEY_FIELD];
  readonly isForwarded = false;
  readonly #keys: ApiKeys;

  constructor(keys: ApiKeys) {
    this.#keys = keys;
  }

  claims({ apiKey }: PresentedCredentials): boolean {
    return apiKey !== undefined;
  }

  read(_request: RequestContext, { apiKey, repeated }: PresentedCredentials): Recognition {
    if (apiKey === undefined || repeated?.has(API_KEY_FIELD) === true) return INVALID;
    return recognitionOf(this.#keys.find(apiKey));
  }
}

const DEFAULT_REFRESH_S = 300;
const DEFAULT_GRACE_S = 86_400;

/** Key sets that survive generations, so that a reload refetches nothing. */
class TokenProviders {
  readonly #tools: TokenProviderTools;
  #running: ReadonlyMap<string, KnownKeySet> = new Map();

  constructor(tools: TokenProviderTools) {
    this.#tools = tools;
  }

  /** The providers of a candidate. Keys of the same URL are reused; `published` commits them. */
  prepare(
    documents: readonly JwtProvider[],
    readFile: (path: string) => Buffer,
  ): { readonly providers: readonly TokenProvider[]; readonly published: () => void } {
    const prepared = new Map<string, KnownKeySet>();
    const adopted: (() => void)[] = [];
    const providers = documents.map((document): TokenProvider => {
      const roots =
        document.trusted_ca_file === undefined ? undefined : [readFile(document.trusted_ca_file).toString()];
      const source = JSON.stringify([document.jwks_url, roots]);
      const known = this.#running.get(document.name);
      const rules = rulesOf(document);
      const isSame = known?.source === source;
      const keys = isSame ? known.keys : this.#keySet(document, roots, rules);
      prepared.set(document.name, { source, keys });
      adopted.push(() => (keys.rules = rules));
      return { document, keys };
    });
    return {
      providers,
      published: () => {
        this.#running = prepared;
        for (const adopt of adopted) adopt();
      },
    };
  }

  #keySet(document: JwtProvider, roots: readonly string[] | undefined, rules: KeySetRules): KeySet {
    const { dialer, clock, log } = this.#tools;
    const url = parseEgressUrl(document.jwks_url);
    if ("issue" in url) throw new Error(`The jwks_url of ${document.name} was not checked`);
    return new KeySet({
      rules,
      clock,
      log,
      fetch: async (signal) => await fetchPublished(dialer, { url, roots, purpose: "key-set" }, signal),
    });
  }
}

export { IssuedCredentials, type CredentialRefusal } from "./issued-credentials.ts";
export { IssuedKeys } from "./issued-credentials.ts";
export { NonceMemory, type Nonces, type NonceVerdict } from "./nonce-memory.ts";

export interface ConsumersHost {
  /** Fetches keys of token providers. */
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
  /** Nonces of signed requests. Shared by all generations, so that a reload forgets none. */
  readonly nonces?: Nonces;
  /** Keys issued through the admin API; they change without a reload. */
  readonly issued?: IssuedKeys;
}

const DEFAULT_SKEW_S = 300;

export interface ConsumersSlice extends GatewaySlice {
  /** True if the published document contains this API key. */
  hasKey(key: string): boolean;
}

/** Identifies the consumer of each request by its credentials. */
export function createConsumers(host: ConsumersHost): ConsumersSlice {
  const nonces = host.nonces ?? new NonceMemory();
  // Outlives generations, so that a reload refetches no keys.
  const tokenProviders = new TokenProviders(host);
  const reports = new AuthenticationReports(host.log, host.clock);
  let published: ApiKeys | undefined;

  const compile = (document: ConfigDocument, scope: CompileScope): CompiledSlice => {
    const { consumers, gateway } = document;
    const documents = gateway.jwt_providers ?? [];
    const tokens = tokenProviders.prepare(documents, (path) => scope.readFile(path));
    const unauthorized: Refusal = { code: "unauthorized", fields: [...challengesOf(document)] };
    const certificates = new ClientCertificates(consumers);
    const keys = new ApiKeys(consumers, (text) => scope.secret(text), host.clock, host.issued);
    const authentication: Authentication = {
      readers: readersOf({ document, scope, host, keys, nonces, providers: tokens.providers, unauthorized }),
      certificates: certificates.size === 0 ? undefined : certificates,
      forwardsCredentials: gateway.forward_credentials === true,
      unauthorized,
      reports,
    };
    const isOn = consumers.length > 0 || documents.length > 0 || (gateway.oidc_providers ?? []).length > 0;
    const optional = new AuthenticationGate(authentication, false);
    const required = new AuthenticationGate(authentication, true);
    return {
      gateFor: (route) => {
        // A route with auth_required stays closed if there are no consumers.
        if (route.auth_required === true) return required;
        return isOn ? optional : undefined;
      },
      published: () => {
        published = keys;
        tokens.published?.();
      },
    };
  };

  return {
    name: "consumers",
    check: (document, report, scope) => checkConsumers(document, report, scope, host.issued),
    compile,
    hasKey: (key) => published?.knows(key) === true,
  };
}

interface ReaderParts {
  readonly document: ConfigDocument;
  readonly scope: CompileScope;
  readonly host: ConsumersHost;
  readonly keys: ApiKeys;
  readonly nonces: Nonces;
  readonly providers: readonly TokenProvider[];
  readonly unauthorized: Refusal;
}

/** Readers in order of precedence, without unused credential types. */
function readersOf({
  document,
  scope,
  host,
  keys: apiKeys,
  nonces,
  providers,
  unauthorized,
}: ReaderParts): CredentialReader[] {
  const { consumers, gateway } = document;
  const { clock, log } = host;
  const secret = (text: string): ReturnType<CompileScope["secret"]> => scope.secret(text);
  const readers: CredentialReader[] = [new ApiKeyReader(apiKeys)];
  const passwords = new BasicPasswords(consumers, secret, clock);
  if (passwords.size > 0) readers.push(new BasicReader(passwords));
  const introspected = (gateway.oidc_providers ?? []).map((provider) => introspectionSource(provider, scope, host));
  if (providers.length > 0 || introspected.length > 0) {
    const owners = new TokenOwners(consumers);
    const verifier = providers.length > 0 ? new TokenVerifier(providers, owners, clock) : undefined;
    const introspection = introspected.length > 0 ? new TokenIntrospection(introspected, owners, clock) : undefined;
    readers.push(new BearerReader(verifier, introspection));
  }
  const keys = new SigningKeys(consumers, secret, clock);
  if (keys.size > 0) {
    const maxSkewMs = (gateway.hmac_auth?.max_clock_skew_secs ?? DEFAULT_SKEW_S) * 1000;
    readers.push(new SignatureReader({ keys, nonces, clock, log, maxSkewMs, unauthorized }));
  }
  return readers;
}

interface TokenProviderTools {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
}

interface KnownKeySet {
  readonly source: string;
  readonly keys: KeySet;
}

function rulesOf(document: JwtProvider): KeySetRules {
  return {
    provider: document.name,
    refreshMs: (document.refresh_secs ?? DEFAULT_REFRESH_S) * 1000,
    retiredGraceMs: (document.retired_key_grace_secs ?? DEFAULT_GRACE_S) * 1000,
  };
}

interface KnownKey {
  readonly digest: Buffer;
  readonly identity: ConsumerIdentity;
  readonly isValid: IsValid;
}

interface SignatureTools {
  readonly keys: SigningKeys;
  readonly nonces: Nonces;
  readonly clock: Clock;
  readonly log: Logger;
  /** Allowed clock difference in both directions. */
  readonly maxSkewMs: number;
  readonly unauthorized: Refusal;
}

interface KnownPassword {
  readonly digest: Buffer;
  readonly identity: ConsumerIdentity;
  readonly isValid: IsValid;
}

/** One byte per character. */
interface UserPass {
  readonly username: string;
  readonly password: string;
}

/** Decodes user and password (RFC 7617): strict base64, padding optional, with a colon after the user. */
function userPassOf(credential: string): UserPass | undefined {
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(credential)) return undefined;
  const text = Buffer.from(credential, "base64").toString("latin1");
  const colon = text.indexOf(":");
  return colon === -1 ? undefined : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

interface IntrospectionTools {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly log: Logger;
}

/** An introspection endpoint. Failures are logged at a limited rate, without tokens or secrets. */
function introspectionSource(
  document: IntrospectionProvider,
  scope: Pick<CompileScope, "secret" | "readFile">,
  tools: IntrospectionTools,
): IntrospectionSource {
  const { dialer, clock, log } = tools;
  const { trusted_ca_file: file } = document;
  const roots = file === undefined ? undefined : [scope.readFile(file).toString()];
  const endpoint = endpointOf(document, roots, tools);
  const credentials = `${encoded(document.client_id)}:${encoded(scope.secret(document.client_secret).reveal())}`;
  const fields = [
    ["Authorization", `Basic ${Buffer.from(credentials).toString("base64")}`],
    ["Content-Type", "application/x-www-form-urlencoded"],
    ["Accept", "application/json"],
    ["User-Agent", "gateway-introspection"],
  ].flat();
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  const failed = (why: string): undefined => {
    const nowMs = clock.monotonic();
    if (nowMs - loggedAtMs < LOG_EVERY_MS) return;
    loggedAtMs = nowMs;
    const provider = document.name;
    log.warn({ code: "introspection_failed", provider, why }, "A token introspection endpoint does not respond");
  };
  return {
    document,
    introspect: async (token) => {
      const found = await endpoint.find();
      if (found === undefined) return failed("It is not known where it is");
      const url = roots === undefined ? found : { ...found, roots };
      const body = Buffer.from(`token=${encoded(token)}&token_type_hint=access_token`);
      const maxBodyBytes = MAX_RESPONSE_BYTES;
      const request = { url, fields, body, maxBodyBytes, needsBody: true, isLenient: true } as const;
      const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
      const result = await post(dialer, { ...request, purpose: "introspection" }, signal);
      const claims = result.kind === "response" && result.status === 200 ? jsonObject(result.body) : undefined;
      if (claims !== undefined) return claims;
      endpoint.markFailed();
      if (result.kind === "failure") return failed(result.error.message);
      if (result.status !== 200) return failed(`The status of the response is ${result.status}, not 200`);
      return failed("The response is no JSON object");
    },
  };
}

/** The configured or discovered endpoint. */
function endpointOf(
  document: IntrospectionProvider,
  roots: readonly string[] | undefined,
  tools: IntrospectionTools,
): Pick<DiscoveredEndpoint, "find" | "markFailed"> {
  const { name, introspection_endpoint: written, issuer = "" } = document;
  if (written === undefined) return new DiscoveredEndpoint({ provider: name, issuer, roots, ...tools });
  const url = parseEgressUrl(written);
  if ("issue" in url) throw new Error(`The introspection_endpoint of ${name} was not checked`);
  return { find: async () => await Promise.resolve(url), markFailed: () => undefined };
}

/** Form encoding, which client ids and secrets need as well (RFC 6749, 2.3.1). */
function encoded(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}

interface SigningKey {
  readonly secret: Buffer;
  readonly identity: ConsumerIdentity;
  readonly isValid: IsValid;
}

/** Well-formed signing fields of a request. */
interface SigningParts {
  readonly keyId: string;
  readonly timestamp: string;
  readonly nonce: string;
  /** SHA-256 of the body, lower-case hexadecimal. */
  readonly bodySha256: string;
  /** HMAC-SHA256 of the canonical string, lower-case hexadecimal. */
  readonly signature: string;
}

/** The signing fields, if each is present once and well-formed. */
function signingPartsOf({ signing, repeated }: PresentedCredentials): SigningParts | undefined {
  const partOf = (part: keyof SigningParts): string | undefined => {
    const name = SIGNING_FIELDS[part];
    const value = signing?.get(name);
    if (value === undefined || repeated?.has(name) === true) return undefined;
    return SHAPES[part].test(value) ? value : undefined;
  };
  const keyId = partOf("keyId");
  const timestamp = partOf("timestamp");
  const nonce = partOf("nonce");
  const bodySha256 = partOf("bodySha256");
  const signature = partOf("signature");
  if (keyId === undefined || timestamp === undefined || nonce === undefined) return undefined;
  if (bodySha256 === undefined || signature === undefined) return undefined;
  return { keyId, timestamp, nonce, bodySha256, signature };
}

/** Signed parts of a request besides the signing fields; path and query as on the wire. */
interface SignedTarget {
  readonly method: string;
  readonly sentTarget: string;
}

/** The signed text, version 1: eight lines separated by line feeds, none at the end. */
function canonicalString({ method, sentTarget }: SignedTarget, parts: Omit<SigningParts, "signature">): string {
  const mark = sentTarget.indexOf("?");
  return [
    VERSION_TAG,
    parts.keyId,
    method.toUpperCase(),
    mark === -1 ? sentTarget : sentTarget.slice(0, mark),
    mark === -1 ? "" : sentTarget.slice(mark + 1),
    parts.timestamp,
    parts.nonce,
    parts.bodySha256,
  ].join("\n");
}

/** HMAC-SHA256 of a canonical string, one byte per character. */
function macOf(secret: Buffer, canonical: string): Buffer {
  return createHmac("sha256", secret).update(canonical, "latin1").digest();
}
