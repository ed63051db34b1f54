import { hash } from "node:crypto";

/** `full`: the nonce cannot be stored, so a replay would be undetectable. */
export type NonceVerdict = "new" | "seen" | "full";

export interface Nonces {
  /** Stores a nonce for `forMs` unless known. `nowMs` is monotonic. */
  add(keyId: string, nonce: string, nowMs: number, forMs: number): NonceVerdict | Promise<NonceVerdict>;
}

/** Maximum entries per key and in total. */
export interface NonceLimits {
  readonly perKey: number;
  readonly total: number;
}

/** About 100 bytes each; enough for a key with 400 requests per second for ten minutes. */
const NONCE_LIMITS: NonceLimits = { perKey: 262_144, total: 1_048_576 };

/** A digest of bounded length. */
function digestOf(nonce: string): string {
  return hash("sha256", nonce, "buffer").toString("latin1", 0, 16);
}

/**
 * Nonces of requests with valid signatures, each kept for the same time. Bounded per key, so that one key cannot evict
 * others' nonces; on overflow requests are refused, never nonces forgotten.
 */
export class NonceMemory implements Nonces {
  readonly #limits: NonceLimits;
  /** By key id: nonces with their expiry, in order of expiry. */
  readonly #byKey = new Map<string, Map<string, number>>();
  #size = 0;

  constructor(limits: NonceLimits = NONCE_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  add(keyId: string, nonce: string, nowMs: number, forMs: number): NonceVerdict {
    const nonces = this.#byKey.get(keyId) ?? new Map<string, number>();
    this.#forget(nonces, nowMs);
    const digest = digestOf(nonce);
    const untilMs = nonces.get(digest);
    if (untilMs !== undefined) {
      if (untilMs > nowMs) return "seen";
      // Its position reflects an earlier, longer retention.
      nonces.delete(digest);
      this.#size -= 1;
    }
    if (nonces.size >= this.#limits.perKey) return "full";
    if (this.#size >= this.#limits.total) {
      this.#forgetAll(nowMs);
      if (this.#size >= this.#limits.total) return "full";
    }
    nonces.set(digest, nowMs + forMs);
    this.#byKey.set(keyId, nonces);
    this.#size += 1;
    return "new";
  }

  #forgetAll(nowMs: number): void {
    for (const [keyId, nonces] of this.#byKey) {
      this.#forget(nonces, nowMs);
      if (nonces.size === 0) this.#byKey.delete(keyId);
    }
  }

  #forget(nonces: Map<string, number>, nowMs: number): void {
    for (const [digest, untilMs] of nonces) {
      if (untilMs > nowMs) return;
      nonces.delete(digest);
      this.#size -= 1;
    }
  }
}
