import type { ConfigDocument, Listener, Route } from "@headworks/gateway-contract";
import { RateRule, ruleIdentity } from "./rate-rule.ts";

/** The rules of one level by entity name. */
type RulesByName = ReadonlyMap<string, readonly RateRule[]>;

/** All rules of a document by level. */
export class RateLimitLevels {
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
