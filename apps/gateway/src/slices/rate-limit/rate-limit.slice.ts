import type { Listener, Route } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import { dryRunReport } from "#request/dry-run-report.ts";
import type { RequestContext } from "#request/context.ts";
import type { Gate } from "#request/phases.ts";
import type { Clock, GatewaySlice } from "#slice.ts";
import { RateLimitGate, type RateCharge, type RateCounters, type RateOutcome } from "./rate-limit-gate.ts";
import { RateLimitLevels } from "./rate-limit.compile.ts";
import { checkRateLimits } from "./rate-limit.check.ts";
import type { RateRule } from "./rate-rule.ts";

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

/**
 * Rate limits by peer address, consumer, route or a combination. Counters are per process; a reload keeps those of
 * unchanged rules.
 */
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
