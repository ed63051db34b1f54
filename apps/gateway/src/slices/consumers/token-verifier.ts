import { hash } from "node:crypto";
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from "jose";
import type { Consumer, JwtProvider } from "@headworks/gateway-contract";
import type { ConsumerIdentity } from "#request/context.ts";
import type { Clock } from "#slice.ts";
import { INVALID, type Recognition } from "./authentication-gate.ts";
import { credentialsOf, identityOf } from "./consumer-identity.ts";
import type { KeySet, VerificationKey } from "./key-set.ts";

const MAX_TOKENS = 8192;

/** Maximum time before a token is verified again. */
const MAX_MS = 60_000;

export class TokenCache {
  readonly #byDigest = new Map<string, GoodToken>();

  get size(): number {
    return this.#byDigest.size;
  }

  /** The identity of a cached token. Wall clock, since expiry uses it. */
  get(token: string, nowMs: number): ConsumerIdentity | undefined {
    const digest = digestOf(token);
    const known = this.#byDigest.get(digest);
    if (known === undefined) return undefined;
    if (known.untilMs > nowMs) return known.identity;
    this.#byDigest.delete(digest);
    return undefined;
  }

  /** Caches a token until it expires, at most a minute. The oldest entry is evicted. */
  set(token: string, identity: ConsumerIdentity, nowMs: number, endMs: number): void {
    if (this.#byDigest.size >= MAX_TOKENS) {
      const oldest = this.#byDigest.keys().next().value;
      if (oldest !== undefined) this.#byDigest.delete(oldest);
    }
    this.#byDigest.set(digestOf(token), { identity, untilMs: Math.min(endMs, nowMs + MAX_MS) });
  }
}

export interface TokenProvider {
  readonly document: JwtProvider;
  readonly keys: KeySet;
}

const DEFAULT_ALGORITHMS: readonly string[] = ["RS256", "ES256"];
const DEFAULT_LEEWAY_S = 30;
/** Longer than typical header size limits allow. */
const MAX_TOKEN_CHARACTERS = 16_384;
/** Maximum keys tried for a token without a key id. */
const MAX_TRIES = 4;
const UNAVAILABLE: Recognition = Object.freeze({
  kind: "unavailable",
  why: "The keys of the token's issuer are unavailable",
});

interface TokenHead {
  readonly kid: string | undefined;
  readonly algorithm: string;
  /** Unverified; only selects the keys. */
  readonly issuer: string | undefined;
}

/** Verifies JSON Web Tokens and identifies their consumers. */
export class TokenVerifier {
  readonly #providers: readonly TokenProvider[];
  readonly #owners: TokenOwners;
  readonly #clock: Clock;
  readonly #cache = new TokenCache();

  constructor(providers: readonly TokenProvider[], owners: TokenOwners, clock: Clock) {
    this.#providers = providers;
    this.#owners = owners;
    this.#clock = clock;
  }

  /** Whether there are keys for the token's issuer; `perhaps`: providers without an issuer. */
  keysOf(token: string): "own" | "perhaps" | "none" {
    const head = token.length > MAX_TOKEN_CHARACTERS ? undefined : headOf(token);
    if (head === undefined) return "none";
    const [provider] = this.#providersFor(head.issuer);
    if (provider === undefined) return "none";
    return provider.document.issuer === undefined ? "perhaps" : "own";
  }

  /** The consumer of a token; synchronous if cached or malformed. */
  verify(token: string): Recognition | Promise<Recognition> {
    if (token.length > MAX_TOKEN_CHARACTERS) return INVALID;
    const known = this.#cache.get(token, this.#clock.now());
    if (known !== undefined) return { kind: "consumer", identity: known };
    const head = headOf(token);
    return head === undefined ? INVALID : this.#verify(token, head);
  }

  async #verify(token: string, head: TokenHead): Promise<Recognition> {
    let isUnavailable = false;
    for (const provider of this.#providersFor(head.issuer)) {
      // The algorithm is chosen by configuration, never by the token.
      if (!(provider.document.algorithms ?? DEFAULT_ALGORITHMS).includes(head.algorithm)) continue;
      const keys = await provider.keys.find(head.kid, head.algorithm);
      if (keys === "unavailable") {
        isUnavailable = true;
        continue;
      }
      const identity = await this.#verifyWith(provider.document, keys.slice(0, MAX_TRIES), token, head.algorithm);
      if (identity !== undefined) return { kind: "consumer", identity };
    }
    return isUnavailable ? UNAVAILABLE : INVALID;
  }

  /** Providers of this issuer, otherwise those without an issuer. */
  #providersFor(issuer: string | undefined): readonly TokenProvider[] {
    const named = this.#providers.filter(({ document }) => document.issuer !== undefined && document.issuer === issuer);
    return named.length > 0 ? named : this.#providers.filter(({ document }) => document.issuer === undefined);
  }

  async #verifyWith(
    provider: JwtProvider,
    keys: readonly VerificationKey[],
    token: string,
    algorithm: string,
  ): Promise<ConsumerIdentity | undefined> {
    for (const candidate of keys) {
      const key = await candidate.forAlgorithm(algorithm);
      if (key === undefined) continue;
      try {
        const { payload } = await jwtVerify(token, key, this.#demandsOf(provider, algorithm));
        return this.#recognise(provider, token, payload);
      } catch (error) {
        // Another key may have the same id; other errors do not depend on the key.
        if (!(error instanceof errors.JWSSignatureVerificationFailed)) return undefined;
      }
    }
    return undefined;
  }

  #demandsOf(provider: JwtProvider, algorithm: string): NonNullable<Parameters<typeof jwtVerify>[2]> {
    const { issuer, audience, leeway_secs: leewayS = DEFAULT_LEEWAY_S } = provider;
    return {
      algorithms: [algorithm],
      clockTolerance: leewayS,
      currentDate: new Date(this.#clock.now()),
      // A token without expiry would be valid forever, even if stolen.
      requiredClaims: ["exp"],
      ...(issuer === undefined ? {} : { issuer }),
      ...(audience === undefined ? {} : { audience }),
    };
  }

  #recognise(provider: JwtProvider, token: string, payload: JWTPayload): ConsumerIdentity | undefined {
    const owner = this.#owners.find(provider, payload.iss, payload.aud);
    if (owner === undefined) return undefined;
    const identity: ConsumerIdentity = Object.freeze({ ...owner, claims: payload });
    const nowMs = this.#clock.now();
    const endMs = ((payload.exp ?? 0) + (provider.leeway_secs ?? DEFAULT_LEEWAY_S)) * 1000;
    // The refresh interval bounds how long a removed key stays effective.
    const freshMs = (provider.refresh_secs ?? Number.POSITIVE_INFINITY) * 1000;
    this.#cache.set(token, identity, nowMs, Math.min(endMs, nowMs + freshMs));
    return identity;
  }
}

function headOf(token: string): TokenHead | undefined {
  try {
    const { kid, alg } = decodeProtectedHeader(token);
    const { iss } = decodeJwt(token);
    if (alg === undefined) return undefined;
    return {
      kid: typeof kid === "string" ? kid : undefined,
      algorithm: alg,
      issuer: typeof iss === "string" ? iss : undefined,
    };
  } catch {
    return undefined;
  }
}

interface GoodToken {
  readonly identity: ConsumerIdentity;
  readonly untilMs: number;
}

/** Tokens themselves are not stored. */
function digestOf(token: string): string {
  return hash("sha256", Buffer.from(token, "latin1"), "buffer").toString("latin1");
}

interface TokenOwner {
  /** Empty: any audience. */
  readonly audiences: readonly string[];
  readonly identity: ConsumerIdentity;
}

/** Maps a verified token to a consumer: its provider's, or the one with a credential of its issuer. */
export class TokenOwners {
  readonly #byName = new Map<string, ConsumerIdentity>();
  readonly #byIssuer = new Map<string, TokenOwner[]>();

  constructor(consumers: readonly Consumer[]) {
    for (const consumer of consumers) this.#byName.set(consumer.name, identityOf(consumer, "jwt"));
    for (const { consumer, credential } of credentialsOf(consumers, "jwt")) {
      const owners = this.#byIssuer.get(credential.issuer) ?? [];
      owners.push({ audiences: credential.audiences ?? [], identity: identityOf(consumer, "jwt") });
      this.#byIssuer.set(credential.issuer, owners);
    }
    for (const owners of this.#byIssuer.values()) {
      // Credentials with a named audience take precedence.
      owners.sort((a, b) => Number(a.audiences.length === 0) - Number(b.audiences.length === 0));
    }
  }

  /** The consumer, without claims; undefined for a valid token without a consumer. */
  find(provider: Pick<JwtProvider, "consumer">, issuer: unknown, audience: unknown): ConsumerIdentity | undefined {
    if (provider.consumer !== undefined) return this.#byName.get(provider.consumer);
    if (typeof issuer !== "string") return undefined;
    const named: readonly unknown[] = Array.isArray(audience) ? audience : [audience];
    return this.#byIssuer
      .get(issuer)
      ?.find(({ audiences }) => audiences.length === 0 || audiences.some((each) => named.includes(each)))?.identity;
  }
}
