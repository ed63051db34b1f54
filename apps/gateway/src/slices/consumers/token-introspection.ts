import { hash } from "node:crypto";
import type { IntrospectionProvider } from "@headworks/gateway-contract";
import type { ConsumerIdentity } from "#request/context.ts";
import type { Clock } from "#slice.ts";
import { INVALID, recognitionOf, type Recognition } from "./authentication-gate.ts";
import type { TokenOwners } from "./token-verifier.ts";

/** The introspection response for a token; undefined if unavailable. */
export type Introspect = (token: string) => Promise<Readonly<Record<string, unknown>> | undefined>;

/** An endpoint of the running generation. */
export interface IntrospectionSource {
  readonly document: IntrospectionProvider;
  readonly introspect: Introspect;
}

interface Known {
  readonly recognition: Recognition;
  readonly untilMs: number;
}

/** Syntax of bearer tokens (RFC 6750, 2.1); others are refused without introspection. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;
const MAX_TOKEN_CHARACTERS = 16_384;
const MAX_KNOWN = 8192;
const DEFAULT_TTL_S = 60;
/** Short, since a token may be used just before it becomes valid. */
const MAX_REFUSED_MS = 10_000;
/** Maximum concurrent introspections, so that invented tokens do not flood the endpoint. */
const MAX_QUESTIONS = 64;
const UNAVAILABLE: Recognition = Object.freeze({
  kind: "unavailable",
  why: "The token introspection endpoint does not respond",
});
const UNCHECKED: Recognition = Object.freeze({
  kind: "unchecked",
  why: "The token introspection endpoint does not respond; fail_open lets requests pass anonymously",
});
const TOO_MANY: Recognition = Object.freeze({
  kind: "unavailable",
  why: `More than ${MAX_QUESTIONS} tokens are being asked about`,
});

/**
 * Introspects tokens (RFC 7662) with caching. Without a response the token is refused, unless all unavailable endpoints
 * fail open; then the client is anonymous.
 */
export class TokenIntrospection {
  readonly #sources: readonly IntrospectionSource[];
  readonly #owners: TokenOwners;
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();
  readonly #pending = new Map<string, Promise<Recognition>>();

  constructor(sources: readonly IntrospectionSource[], owners: TokenOwners, clock: Clock) {
    this.#sources = sources;
    this.#owners = owners;
    this.#clock = clock;
  }

  /** The consumer of a token. Concurrent requests with the same token share one introspection. */
  recognise(token: string): Recognition | Promise<Recognition> {
    if (token.length > MAX_TOKEN_CHARACTERS || !TOKEN.test(token)) return INVALID;
    const digest = hash("sha256", token, "hex");
    const known = this.#known.get(digest);
    if (known !== undefined && known.untilMs > this.#clock.now()) return known.recognition;
    this.#known.delete(digest);
    const pending = this.#pending.get(digest);
    if (pending !== undefined) return pending;
    if (this.#pending.size >= MAX_QUESTIONS) return TOO_MANY;
    const response = this.#introspect(token, digest).finally(() => this.#pending.delete(digest));
    this.#pending.set(digest, response);
    return response;
  }

  async #introspect(token: string, digest: string): Promise<Recognition> {
    const silent: IntrospectionProvider[] = [];
    for (const { document, introspect } of this.#sources) {
      const claims = await introspect(token);
      if (claims === undefined) silent.push(document);
      else if (claims["active"] === true) return this.#active(document, claims, digest);
    }
    if (silent.length > 0) return silent.every(({ fail_open: isOpen }) => isOpen) ? UNCHECKED : UNAVAILABLE;
    const ttlMs = Math.min(...this.#sources.map(({ document }) => ttlMsOf(document)), MAX_REFUSED_MS);
    return this.#remember(digest, INVALID, this.#clock.now() + ttlMs);
  }

  #active(document: IntrospectionProvider, claims: Readonly<Record<string, unknown>>, digest: string): Recognition {
    const nowMs = this.#clock.now();
    const endMs = typeof claims["exp"] === "number" ? claims["exp"] * 1000 : Number.POSITIVE_INFINITY;
    const untilMs = Math.min(nowMs + ttlMsOf(document), endMs);
    const identity = endMs > nowMs ? this.#ownerOf(document, claims) : undefined;
    return this.#remember(digest, recognitionOf(identity), identity === undefined ? nowMs + MAX_REFUSED_MS : untilMs);
  }

  #ownerOf(document: IntrospectionProvider, claims: Readonly<Record<string, unknown>>): ConsumerIdentity | undefined {
    const { iss = document.issuer, aud } = claims;
    if (document.issuer !== undefined && iss !== document.issuer) return undefined;
    const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
    if (document.audience !== undefined && !audiences.includes(document.audience)) return undefined;
    if (!hasScopes(claims, document.scopes)) return undefined;
    const owner = this.#owners.find(document, iss, aud);
    return owner === undefined ? undefined : Object.freeze({ ...owner, claims });
  }

  #remember(digest: string, recognition: Recognition, untilMs: number): Recognition {
    if (this.#known.size >= MAX_KNOWN) {
      const oldest = this.#known.keys().next().value;
      if (oldest !== undefined) this.#known.delete(oldest);
    }
    this.#known.set(digest, { recognition, untilMs });
    return recognition;
  }
}

/** Scopes are space-separated (RFC 7662, 2.2); some issuers send lists. */
function hasScopes({ scope }: Readonly<Record<string, unknown>>, demanded: readonly string[] = []): boolean {
  const granted: readonly unknown[] = typeof scope === "string" ? scope.split(" ") : Array.isArray(scope) ? scope : [];
  return demanded.every((each) => granted.includes(each));
}

function ttlMsOf({ introspection_cache_ttl_s: ttlS = DEFAULT_TTL_S }: IntrospectionProvider): number {
  return ttlS * 1000;
}
