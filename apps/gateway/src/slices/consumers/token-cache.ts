import { hash } from "node:crypto";
import type { ConsumerIdentity } from "#request/context.ts";

const MAX_TOKENS = 8192;
/** How long a token is believed without looking at its issuer's keys again. */
const MAX_MS = 60_000;

interface GoodToken {
  readonly identity: ConsumerIdentity;
  readonly untilMs: number;
}

/** Remembers tokens that were good, so that a client that sends one with each request has it verified now and then. */
export class TokenCache {
  readonly #byDigest = new Map<string, GoodToken>();

  get size(): number {
    return this.#byDigest.size;
  }

  /** Whose token it is, if that is known. Times are wall clock, since tokens end by it. */
  get(token: string, nowMs: number): ConsumerIdentity | undefined {
    const digest = digestOf(token);
    const known = this.#byDigest.get(digest);
    if (known === undefined) return undefined;
    if (known.untilMs > nowMs) return known.identity;
    this.#byDigest.delete(digest);
    return undefined;
  }

  /** Remembers a good token until it ends, but not for longer than a minute. The oldest makes room. */
  set(token: string, identity: ConsumerIdentity, nowMs: number, endMs: number): void {
    if (this.#byDigest.size >= MAX_TOKENS) {
      const oldest = this.#byDigest.keys().next().value;
      if (oldest !== undefined) this.#byDigest.delete(oldest);
    }
    this.#byDigest.set(digestOf(token), { identity, untilMs: Math.min(endMs, nowMs + MAX_MS) });
  }
}

/** Tokens themselves are not kept. */
function digestOf(token: string): string {
  return hash("sha256", Buffer.from(token, "latin1"), "buffer").toString("latin1");
}
