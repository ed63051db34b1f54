import { createHash } from "node:crypto";
import type { Callout, ConfigDocument, Policy, Route } from "@headworks/gateway-contract";
import { type RawFields, wireText } from "@headworks/http1";
import type { EgressDialer } from "#egress/egress-dialer.ts";
import { type EgressUrl, parseEgressUrl } from "#egress/egress-url.ts";
import { KeptConnections, post } from "#egress/post.ts";
import type { Timer } from "#egress/timer.ts";
import type { Clock, CompileScope } from "#slice.ts";
import { type CalloutDecision, readDecision } from "./decision.ts";

/** LRU cache of decisions with expiry. */
export class DecisionCache {
  readonly #ttlMs: number;
  readonly #capacity: number;
  readonly #decisions = new Map<string, { readonly isAllowed: boolean; readonly untilMs: number }>();

  /** `ttlMs` 0 disables it. */
  constructor(ttlMs: number, capacity = 10_000) {
    this.#ttlMs = ttlMs;
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#decisions.size;
  }

  /** The cached decision, unless expired at `nowMs`. */
  get(key: string, nowMs: number): boolean | undefined {
    const found = this.#decisions.get(key);
    if (found === undefined) return undefined;
    this.#decisions.delete(key);
    if (nowMs >= found.untilMs) return undefined;
    this.#decisions.set(key, found);
    return found.isAllowed;
  }

  set(key: string, isAllowed: boolean, nowMs: number): void {
    if (this.#ttlMs === 0) return;
    this.#decisions.delete(key);
    const [oldest] = this.#decisions.keys();
    if (this.#decisions.size >= this.#capacity && oldest !== undefined) this.#decisions.delete(oldest);
    this.#decisions.set(key, { isAllowed, untilMs: nowMs + this.#ttlMs });
  }
}

/** Maximum concurrent callouts; more fail, so that a slow decision point cannot exhaust memory. */
const MAX_QUESTIONS = 512;
const MAX_RESPONSE_BYTES = 65_536;

/** A decision point with keep-alive connections and a cache. */
class DecisionPoint {
  readonly #parts: DecisionPointParts;
  readonly #tools: DecisionPointTools;
  readonly #kept = new KeptConnections(32);
  readonly #cache: DecisionCache;
  /** Concurrent equal callouts are merged if caching is enabled. */
  readonly #pending = new Map<string, Promise<CalloutDecision>>();
  #underWay = 0;

  constructor(parts: DecisionPointParts, tools: DecisionPointTools) {
    this.#parts = parts;
    this.#tools = tools;
    this.#cache = new DecisionCache(parts.cacheTtlMs);
  }

  /** The decision for an input, synchronous if cached; errors are not. Never rejects; has a timeout. */
  decide(input: object, requestId: string): CalloutDecision | Promise<CalloutDecision> {
    const body = Buffer.from(JSON.stringify({ input }));
    if (this.#parts.cacheTtlMs === 0) return this.#call(body, requestId);
    const key = createHash("sha256").update(body).digest("base64");
    const isAllowed = this.#cache.get(key, this.#tools.clock.monotonic());
    if (isAllowed !== undefined) return { kind: isAllowed ? "allow" : "deny" };
    const pending = this.#pending.get(key) ?? this.#callAndCache(key, body, requestId);
    this.#pending.set(key, pending);
    return pending;
  }

  /** Closes idle connections when the next generation is published. */
  retire(): void {
    this.#kept.close();
  }

  async #callAndCache(key: string, body: Buffer, requestId: string): Promise<CalloutDecision> {
    try {
      const decision = await this.#call(body, requestId);
      const nowMs = this.#tools.clock.monotonic();
      if (decision.kind !== "error") this.#cache.set(key, decision.kind === "allow", nowMs);
      return decision;
    } finally {
      this.#pending.delete(key);
    }
  }

  async #call(body: Buffer, requestId: string): Promise<CalloutDecision> {
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

const DEFAULT_TIMEOUT_MS = 500;

export interface CompiledCallout {
  readonly policy: string;
  readonly point: DecisionPoint;
  /** The decision on errors. */
  readonly passesOnError: boolean;
  readonly isDryRun: boolean;
}

export interface CalloutLevels {
  /** Of the gateway, service and route; equal for all requests of a route. */
  ofRoute(route: Route): readonly CompiledCallout[];
  readonly ofListeners: ReadonlyMap<string, readonly CompiledCallout[]>;
  readonly ofConsumers: ReadonlyMap<string, readonly CompiledCallout[]>;
  /** All referenced callouts. */
  readonly all: readonly CompiledCallout[];
}

/** Compiles each referenced callout once. */
export function compileCallouts(
  document: ConfigDocument,
  scope: CompileScope,
  tools: DecisionPointTools,
): CalloutLevels {
  const policies = new Map(document.policies.map((policy) => [policy.name, policy]));
  const compiled = new Map<string, CompiledCallout | undefined>();
  const named = (names: readonly string[] | undefined): CompiledCallout[] =>
    (names ?? []).flatMap((name) => {
      if (!compiled.has(name)) compiled.set(name, compileCallout(policies.get(name), scope, tools));
      return compiled.get(name) ?? [];
    });
  const mapOf = (entities: readonly { name: string; policies?: string[] }[]): Map<string, CompiledCallout[]> =>
    new Map(
      entities.map((entity) => [entity.name, named(entity.policies)] as const).filter(([, list]) => list.length > 0),
    );
  const global = named(document.gateway.global_policies);
  const services = mapOf(document.services);
  const routes = mapOf(document.routes);
  const ofListeners = mapOf(document.listeners);
  const ofConsumers = mapOf(document.consumers);
  const ofService = (name: string | undefined): readonly CompiledCallout[] =>
    name === undefined ? [] : (services.get(name) ?? []);
  return {
    ofRoute: (route) => [...new Set([...global, ...ofService(route.service), ...(routes.get(route.name) ?? [])])],
    ofListeners,
    ofConsumers,
    all: [...compiled.values()].filter((callout) => callout !== undefined),
  };
}

function compileCallout(
  policy: Policy | undefined,
  scope: CompileScope,
  tools: DecisionPointTools,
): CompiledCallout | undefined {
  if (policy?.callout === undefined) return undefined;
  const { callout } = policy;
  const url = parseEgressUrl(callout.url);
  if ("issue" in url) return undefined;
  const parts = {
    type: callout.type,
    url,
    fields: fieldsOf(callout, scope),
    timeoutMs: callout.timeout_ms ?? DEFAULT_TIMEOUT_MS,
    cacheTtlMs: callout.cache_ttl_ms ?? 0,
  };
  return {
    policy: policy.name,
    point: new DecisionPoint(parts, tools),
    passesOnError: callout.on_error === "allow",
    isDryRun: policy.dry_run === true,
  };
}

function fieldsOf(callout: Callout, scope: CompileScope): string[] {
  const fields = ["Content-Type", "application/json", "Accept", "application/json", "User-Agent", "gateway-callout"];
  for (const [name, text] of Object.entries(callout.headers ?? {})) {
    fields.push(name, wireText(scope.secret(text).reveal()));
  }
  return fields;
}

interface DecisionPointParts {
  readonly type: "opa" | "http";
  readonly url: EgressUrl;
  /** Contains resolved secrets; never log it. */
  readonly fields: Readonly<RawFields>;
  readonly timeoutMs: number;
  readonly cacheTtlMs: number;
}

interface DecisionPointTools {
  readonly dialer: EgressDialer;
  readonly clock: Clock;
  readonly timer: Timer;
}
