import type { Logger } from "pino";
import { asEgressError } from "#egress/egress-failure.ts";
import type { Clock } from "#slice.ts";
import { readKeySet, type VerificationKey } from "./verification-keys.ts";

export interface KeySetRules {
  /** For logs. */
  readonly provider: string;
  readonly refreshMs: number;
  readonly retiredGraceMs: number;
}

export interface KeySetParts {
  readonly rules: KeySetRules;
  /** Fetches the key set; rejects on failure or when `signal` aborts. */
  readonly fetch: (signal: AbortSignal) => Promise<Buffer>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Candidate keys of a token; `unavailable` if they cannot be determined now. */
export type KeySearch = readonly VerificationKey[] | "unavailable";

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
