import { importJWK, type CryptoKey, type JWK } from "jose";

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

/**
 * Signature keys of a JSON Web Key Set (RFC 7517 section 5), without other uses and unknown types. Undefined if the
 * text is no key set.
 */
export function readKeySet(body: Buffer): VerificationKey[] | undefined {
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
