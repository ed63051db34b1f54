import { type CryptoKey, importJWK, type JWK } from "jose";
import type { Logger } from "pino";
import { asEgressError } from "#egress/egress-failure.ts";
import type { Clock } from "#slice.ts";

/** Public-key algorithms (RFC 7518 section 3.1, RFC 8037, RFC 9864) and the keys they require. */
const ALGORITHMS: Readonly<Record<string, { readonly kty: string; readonly crv?: string }>> = {
  RS256: { kty: "RSA" },
  RS384: { kty: "RSA" },
  RS512: { kty: "RSA" },
  PS256: { kty: "RSA" },
  PS384: { kty: "RSA" },
  PS512: { kty: "RSA" },
  ES256: { kty: "EC", crv: "P-256" },
  ES384: { kty: "EC", crv: "P-384" },
  ES512: { kty: "EC", crv: "P-521" },
  EdDSA: { kty: "OKP", crv: "Ed25519" },
  Ed25519: { kty: "OKP", crv: "Ed25519" },
};

/** Algorithms a provider may use. `none` is unsigned, and HS* would make every key a shared secret. */
export const VERIFIABLE_ALGORITHMS: readonly string[] = Object.keys(ALGORITHMS);

/** Identifying members of a key (RFC 7638 section 3.2). */
const MATERIAL = ["kty", "crv", "n", "e", "x", "y"] as const;
const MAX_KEYS = 128;

export class VerificationKey {
  /** Equal for equal keys. */
  readonly id: string;
  readonly kid: string | undefined;
  readonly #jwk: JWK;
  readonly #imported = new Map<string, Promise<CryptoKey | undefined>>();

  constructor(jwk: JWK) {
    this.#jwk = jwk;
    this.kid = jwk.kid;
    this.id = JSON.stringify([jwk.kid, jwk.alg, ...MATERIAL.map((member) => jwk[member])]);
  }

  /** True if a token with this key id, or none, and algorithm may be signed with the key. */
  fits(kid: string | undefined, algorithm: string): boolean {
    if (kid !== undefined && kid !== this.kid) return false;
    const needed = Object.hasOwn(ALGORITHMS, algorithm) ? ALGORITHMS[algorithm] : undefined;
    if (needed === undefined || needed.kty !== this.#jwk.kty) return false;
    if (needed.crv !== undefined && needed.crv !== this.#jwk.crv) return false;
    return this.#jwk.alg === undefined || this.#jwk.alg === algorithm;
  }

  /** The key for one algorithm; undefined for invalid material. */
  async forAlgorithm(algorithm: string): Promise<CryptoKey | undefined> {
    let imported = this.#imported.get(algorithm);
    if (imported === undefined) this.#imported.set(algorithm, (imported = importKey(this.#jwk, algorithm)));
    return await imported;
  }
}

async function importKey(jwk: JWK, algorithm: string): Promise<CryptoKey | undefined> {
  try {
    const key = await importJWK(jwk, algorithm);
    return key instanceof Uint8Array ? undefined : key;
  } catch {
    return undefined;
  }
}

/** Signature keys of a JSON Web Key Set (RFC 7517 section 5). Undefined if the text is no key set. */
function readKeySet(body: Buffer): VerificationKey[] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
  const keys: unknown = isRecord(value) ? value["keys"] : undefined;
  if (!Array.isArray(keys)) return undefined;
  return keys.slice(0, MAX_KEYS).flatMap((key: unknown) => verificationKeyOf(key) ?? []);
}

function verificationKeyOf(key: unknown): VerificationKey | undefined {
  if (!isRecord(key)) return undefined;
  const { use, key_ops: operations } = key;
  if (use !== undefined && use !== "sig") return undefined;
  if (Array.isArray(operations) && !operations.includes("verify")) return undefined;
  const jwk: Record<string, string> = {};
  // Drops private members that an issuer may have published by mistake.
  for (const member of [...MATERIAL, "kid", "alg"]) {
    const text = key[member];
    if (typeof text === "string") jwk[member] = text;
  }
  const { kty } = jwk;
  return kty === "RSA" || kty === "EC" || kty === "OKP" ? new VerificationKey({ ...jwk, kty }) : undefined;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface KeySetRules {
  /** For logs. */
  readonly provider: string;
  readonly refreshMs: number;
  readonly retiredGraceMs: number;
}

interface KeySetParts {
  readonly rules: KeySetRules;
  /** Fetches the key set; rejects on failure or when `signal` aborts. */
  readonly fetch: (signal: AbortSignal) => Promise<Buffer>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Candidate keys of a token; `unavailable` if they cannot be determined now. */
type KeySearch = readonly VerificationKey[] | "unavailable";

const FETCH_MS = 5000;
/** Minimum interval of attempts, so that unknown key ids do not flood the issuer. */
const MIN_PAUSE_MS = 5000;
/** How long keys are trusted while the issuer is unreachable. */
const MAX_STALE_MS = 86_400_000;
const MAX_RETIRED = 64;

interface RetiredKey {
  readonly key: VerificationKey;
  readonly untilMs: number;
}

/**
 * The keys of one issuer: fetched on first use, refreshed in the background, and refetched at a limited rate for an
 * unknown key id. A removed key stays valid for a grace period, since tokens signed with it are in use.
 */
export class KeySet {
  rules: KeySetRules;
  readonly #parts: KeySetParts;
  #keys: readonly VerificationKey[] = [];
  #retired: readonly RetiredKey[] = [];
  #fetchedMs = Number.NEGATIVE_INFINITY;
  #attemptedMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;
  #loading: Promise<void> | undefined;

  constructor(parts: KeySetParts) {
    this.#parts = parts;
    this.rules = parts.rules;
  }

  /** Keys for a key id, if any, and algorithm; empty if there are none. Never rejects. */
  async find(kid: string | undefined, algorithm: string): Promise<KeySearch> {
    const nowMs = this.#parts.clock.monotonic();
    const ageMs = nowMs - this.#fetchedMs;
    if (ageMs > MAX_STALE_MS) {
      await this.#load(nowMs);
      if (nowMs - this.#fetchedMs > MAX_STALE_MS) return "unavailable";
    } else if (ageMs >= this.rules.refreshMs) {
      // Never rejects.
      void this.#load(nowMs);
    }
    const known = this.#fitting(kid, algorithm);
    if (known.length > 0) return known;
    await this.#load(nowMs);
    const found = this.#fitting(kid, algorithm);
    return found.length === 0 && this.#isFailing ? "unavailable" : found;
  }

  #fitting(kid: string | undefined, algorithm: string): readonly VerificationKey[] {
    const nowMs = this.#parts.clock.monotonic();
    const retired = this.#retired.filter(({ untilMs }) => untilMs > nowMs).map(({ key }) => key);
    return [...this.#keys, ...retired].filter((key) => key.fits(kid, algorithm));
  }

  /** Fetches keys or joins a fetch in progress, unless attempted within the minimum interval. */
  async #load(nowMs: number): Promise<void> {
    if (this.#loading !== undefined) return await this.#loading;
    if (nowMs - this.#attemptedMs < Math.min(MIN_PAUSE_MS, this.rules.refreshMs)) return;
    this.#attemptedMs = nowMs;
    this.#loading = this.#fetch();
    await this.#loading;
    this.#loading = undefined;
  }

  async #fetch(): Promise<void> {
    const { fetch, clock, log } = this.#parts;
    const { provider } = this.rules;
    try {
      const keys = readKeySet(await fetch(AbortSignal.timeout(FETCH_MS)));
      if (keys === undefined) throw new Error("The response is no JSON Web Key Set");
      const nowMs = clock.monotonic();
      this.#replace(keys, nowMs);
      this.#fetchedMs = nowMs;
      this.#isFailing = false;
      log.debug({ code: "key_set_fetched", provider, keys: keys.length }, "The keys of a token provider were fetched");
    } catch (error) {
      this.#isFailing = true;
      const { code, message } = asEgressError(error, "bad_answer");
      // The message contains nothing of the response.
      log.warn(
        { code: "key_set_unavailable", provider, failure: code },
        `The keys of a provider cannot be had: ${message}`,
      );
    }
  }

  #replace(keys: readonly VerificationKey[], nowMs: number): void {
    const published = new Set(keys.map(({ id }) => id));
    const untilMs = nowMs + this.rules.retiredGraceMs;
    const leaving = this.#keys.map((key): RetiredKey => ({ key, untilMs }));
    this.#retired = [...leaving, ...this.#retired]
      .filter(({ key, untilMs: endMs }) => endMs > nowMs && !published.has(key.id))
      .slice(0, MAX_RETIRED);
    const before = new Map(this.#keys.map((key) => [key.id, key]));
    // Reuses imported keys.
    this.#keys = keys.map((key) => before.get(key.id) ?? key);
  }
}
