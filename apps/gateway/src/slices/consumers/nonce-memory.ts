import { hash } from "node:crypto";

/** What came of showing a nonce. `full`: there is no room to remember it, so nobody could tell if it came again. */
export type NonceVerdict = "new" | "seen" | "full";

/** Where nonces are remembered. */
export interface Nonces {
  /** Shows a nonce, which is remembered for `forMs`. `nowMs` is monotonic. */
  add(keyId: string, nonce: string, nowMs: number, forMs: number): NonceVerdict | Promise<NonceVerdict>;
}

/** Bounds of a memory: entries for one key and for all keys together. */
export interface NonceLimits {
  readonly perKey: number;
  readonly total: number;
}

/** About 100 bytes each. A key that signs 400 requests a second for ten minutes fits. */
const NONCE_LIMITS: NonceLimits = { perKey: 262_144, total: 1_048_576 };

/** A shorter text that stands for a nonce, however long that is. */
function digestOf(nonce: string): string {
  return hash("sha256", nonce, "buffer").toString("latin1", 0, 16);
}

/**
 * Remembers the nonces of requests whose signatures were good, each for the same time. Bounded for each key, so that
 * one that signs without end does not push out what others need; what has no room is refused, never forgotten.
 */
export class NonceMemory implements Nonces {
  readonly #limits: NonceLimits;
  /** By key id: nonces with the time they may be forgotten at. Entries are in the order of that time. */
  readonly #byKey = new Map<string, Map<string, number>>();
  #size = 0;

  constructor(limits: NonceLimits = NONCE_LIMITS) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#size;
  }

  /** Shows a nonce, which is remembered for `forMs`. `nowMs` is monotonic. */
  add(keyId: string, nonce: string, nowMs: number, forMs: number): NonceVerdict {
    const nonces = this.#byKey.get(keyId) ?? new Map<string, number>();
    this.#forget(nonces, nowMs);
    const digest = digestOf(nonce);
    const untilMs = nonces.get(digest);
    if (untilMs !== undefined) {
      if (untilMs > nowMs) return "seen";
      // Stands in the order of a time when nonces were remembered for longer.
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
