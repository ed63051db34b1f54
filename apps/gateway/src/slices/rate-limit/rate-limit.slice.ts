import type { Logger } from "pino";
import type { ConfigDocument, Listener, Route } from "@headworks/gateway-contract";
import { dryRunReport, type Gate, type RequestContext } from "#request/context.ts";
import type { Clock, GatewaySlice, IssueReport } from "#slice.ts";
import { type RateCharge, type RateCounters, RateLimitGate, type RateOutcome } from "./rate-limit-gate.ts";
import { RateRule, ruleIdentity } from "./rate-rule.ts";

class RateLimitLevels {
  readonly #global: readonly RateRule[];
  readonly #listeners: RulesByName;
  readonly #services: RulesByName;
  readonly #routes: RulesByName;
  readonly #consumers: RulesByName;
  /** By identity. */
  readonly rules: ReadonlyMap<string, RateRule>;

  /** Unchanged rules of `running` keep their counters. */
  constructor(document: ConfigDocument, running: ReadonlyMap<string, RateRule>) {
    const known = new Map<string, RateRule>();
    const policies = new Map<string, readonly RateRule[]>();
    for (const policy of document.policies) {
      const rules: RateRule[] = [];
      for (const rule of policy.rate_limits ?? []) {
        const identity = ruleIdentity(policy, rule);
        // A duplicate rule of a policy counts once.
        if (known.has(identity)) continue;
        const compiled = new RateRule(policy, rule, running.get(identity)?.buckets);
        known.set(identity, compiled);
        rules.push(compiled);
      }
      policies.set(policy.name, rules);
    }
    this.rules = known;
    const named = (names: readonly string[] | undefined): RateRule[] =>
      (names ?? []).flatMap((name) => policies.get(name) ?? []);
    const mapOf = (entities: readonly { name: string; policies?: string[] }[]): RulesByName =>
      new Map(
        entities
          .map((entity) => [entity.name, named(entity.policies)] as const)
          .filter(([, rules]) => rules.length > 0),
      );
    this.#global = named(document.gateway.global_policies);
    this.#listeners = mapOf(document.listeners);
    this.#services = mapOf(document.services);
    this.#routes = mapOf(document.routes);
    this.#consumers = mapOf(document.consumers);
  }

  /** True if any rule may apply to the route's requests. */
  concerns(route: Route): boolean {
    return (
      this.#global.length > 0 ||
      this.#listeners.size > 0 ||
      this.#consumers.size > 0 ||
      this.#routes.has(route.name) ||
      this.#services.has(route.service ?? "")
    );
  }

  /** True if the consumer has own rules. */
  concernsConsumer(name: string): boolean {
    return this.#consumers.has(name);
  }

  /** All applicable rules without duplicates, most specific level first. */
  rulesFor(route: Route, listener: string, consumer: string): readonly RateRule[] {
    return [
      ...new Set([
        ...(this.#consumers.get(consumer) ?? []),
        ...(this.#routes.get(route.name) ?? []),
        ...(this.#services.get(route.service ?? "") ?? []),
        ...(this.#listeners.get(listener) ?? []),
        ...this.#global,
      ]),
    ];
  }

  /** Rules for requests that match no route. */
  unroutedRules(listener: Listener): readonly RateRule[] {
    return [...new Set([...(this.#listeners.get(listener.name) ?? []), ...this.#global])];
  }
}

export type { RateCharge, RateCounters, RateOutcome } from "./rate-limit-gate.ts";

export interface RateLimitHost {
  readonly clock: Clock;
  readonly log: Logger;
  /** Counts a refusal ignored by a dry run. */
  readonly onDryRun: (route: string) => void;
  /** Shared counters; default: this process. */
  readonly counters?: RateCounters | undefined;
}

export interface RateLimits extends GatewaySlice {
  /** Charges rules on behalf of another process; undefined for unknown rules. */
  charge(charges: readonly RateCharge[]): readonly (RateOutcome | undefined)[];
  /** Number of tracked keys, and of evicted keys whose limits were still in effect. */
  counts(): { readonly liveKeys: number; readonly evictions: number };
}

/** Rate limits by peer address, consumer, route or combinations. Counters are per process. */
export function createRateLimits({ clock, log, onDryRun, counters }: RateLimitHost): RateLimits {
  const tools = { clock, counters, report: dryRunReport(log, "rate_limit", onDryRun) };
  let running: ReadonlyMap<string, RateRule> = new Map();
  let forgotten = 0;
  return {
    name: "rate-limit",
    check: checkRateLimits,
    compile: (document) => {
      const levels = new RateLimitLevels(document, running);
      return {
        gateFor: (route) => (levels.concerns(route) ? new RateLimitGate(rulesOf(levels, route), tools) : undefined),
        unroutedGateFor: (listener: Listener): Gate | undefined => {
          const rules = levels.unroutedRules(listener);
          return rules.length === 0 ? undefined : new RateLimitGate(() => rules, tools);
        },
        published: () => {
          for (const [identity, { buckets }] of running) {
            if (!levels.rules.has(identity)) forgotten += buckets.evictions;
          }
          running = levels.rules;
        },
      };
    },
    charge: (charges) => {
      const nowMs = clock.monotonic();
      return charges.map(({ rule, key }) => {
        const state = running.get(rule)?.charge(key, nowMs);
        if (state === undefined) return undefined;
        const { waitMs, remaining, limit, fullAtMs } = state;
        return { waitMs, remaining, limit, fullInMs: fullAtMs - nowMs };
      });
    },
    counts: () => {
      const all = [...running.values()].map(({ buckets }) => buckets);
      return {
        liveKeys: all.reduce((sum, { size }) => sum + size, 0),
        evictions: all.reduce((sum, { evictions }) => sum + evictions, forgotten),
      };
    },
  };
}

/** Rules of a route's requests, computed once per listener and consumer with own rules. */
function rulesOf(levels: RateLimitLevels, route: Route): (request: RequestContext) => readonly RateRule[] {
  // Created on the first request: most of thousands of routes have little traffic.
  let known: Map<string, Map<string, readonly RateRule[]>> | undefined;
  return ({ listener, consumer }) => {
    known ??= new Map<string, Map<string, readonly RateRule[]>>();
    let byConsumer = known.get(listener.name);
    if (byConsumer === undefined) known.set(listener.name, (byConsumer = new Map<string, readonly RateRule[]>()));
    const name = consumer !== undefined && levels.concernsConsumer(consumer.name) ? consumer.name : "";
    let rules = byConsumer.get(name);
    if (rules === undefined) byConsumer.set(name, (rules = levels.rulesFor(route, listener.name, name)));
    return rules;
  };
}

/** Warns about duplicate rules of a policy, which count once. */
function checkRateLimits(document: ConfigDocument, report: IssueReport): void {
  for (const [at, policy] of document.policies.entries()) {
    const known = new Set<string>();
    for (const [index, rule] of (policy.rate_limits ?? []).entries()) {
      const identity = ruleIdentity(policy, rule);
      if (known.has(identity)) {
        const message = `The policy "${policy.name}" has the same rate limit twice; requests are counted once`;
        report.warning("duplicate_setting", ["policies", at, "rate_limits", index], message);
      }
      known.add(identity);
    }
  }
}

/** The rules of one level by entity name. */
type RulesByName = ReadonlyMap<string, readonly RateRule[]>;
