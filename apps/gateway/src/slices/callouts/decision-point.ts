import { createHash } from "node:crypto";
import type { RawFields } from "@headworks/http1";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import type { EgressUrl } from "#egress/egress-url.ts";
import { KeptConnections } from "#egress/kept-connections.ts";
import { post } from "#egress/post.ts";
import type { Timer } from "#egress/timer.ts";
import type { Clock } from "#slice.ts";
import { readDecision, type Decision } from "./decision.ts";
import { DecisionCache } from "./decision-cache.ts";

/** Questions that may be under way at once; more are errors, so that a slow decision point fills no memory. */
const MAX_QUESTIONS = 512;
const MAX_RESPONSE_BYTES = 65_536;

/** A callout of one generation. */
export interface DecisionPointParts {
  readonly type: "opa" | "http";
  readonly url: EgressUrl;
  /** With resolved secrets, so never to be printed. */
  readonly fields: Readonly<RawFields>;
  readonly timeoutMs: number;
  readonly cacheTtlMs: number;
}

export interface DecisionPointTools {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly timer: Timer;
}

/** Asks one place for decisions, over connections that are kept, and remembers what it may. */
export class DecisionPoint {
  readonly #parts: DecisionPointParts;
  readonly #tools: DecisionPointTools;
  readonly #kept = new KeptConnections(32);
  readonly #cache: DecisionCache;
  /** With a cache: questions under way, so that the same one is asked once. */
  readonly #asked = new Map<string, Promise<Decision>>();
  #underWay = 0;

  constructor(parts: DecisionPointParts, tools: DecisionPointTools) {
    this.#parts = parts;
    this.#tools = tools;
    this.#cache = new DecisionCache(parts.cacheTtlMs);
  }

  /**
   * The decision about an input, at once if it is remembered. Errors are never remembered. Never rejects, and takes
   * at most the callout's time.
   */
  decide(input: object, requestId: string): Decision | Promise<Decision> {
    const body = Buffer.from(JSON.stringify({ input }));
    if (this.#parts.cacheTtlMs === 0) return this.#ask(body, requestId);
    const key = createHash("sha256").update(body).digest("base64");
    const isAllowed = this.#cache.get(key, this.#tools.clock.monotonic());
    if (isAllowed !== undefined) return { kind: isAllowed ? "allow" : "deny" };
    const asked = this.#asked.get(key) ?? this.#askAndRemember(key, body, requestId);
    this.#asked.set(key, asked);
    return asked;
  }

  /** The next generation is published: idle connections are closed. */
  retire(): void {
    this.#kept.close();
  }

  async #askAndRemember(key: string, body: Buffer, requestId: string): Promise<Decision> {
    try {
      const decision = await this.#ask(body, requestId);
      const nowMs = this.#tools.clock.monotonic();
      if (decision.kind !== "error") this.#cache.set(key, decision.kind === "allow", nowMs);
      return decision;
    } finally {
      this.#asked.delete(key);
    }
  }

  async #ask(body: Buffer, requestId: string): Promise<Decision> {
    if (this.#underWay >= MAX_QUESTIONS) return { kind: "error", why: "saturated" };
    const over = new AbortController();
    const cancel = this.#tools.timer(this.#parts.timeoutMs, () => over.abort());
    this.#underWay += 1;
    try {
      const request = {
        url: this.#parts.url,
        purpose: "callout",
        fields: [...this.#parts.fields, "X-Request-Id", requestId],
        body,
        maxBodyBytes: MAX_RESPONSE_BYTES,
        needsBody: this.#parts.type === "opa",
        isLenient: false,
        kept: this.#kept,
      } as const;
      return readDecision(this.#parts.type, await post(this.#tools.dialer, request, over.signal));
    } finally {
      this.#underWay -= 1;
      cancel();
    }
  }
}
