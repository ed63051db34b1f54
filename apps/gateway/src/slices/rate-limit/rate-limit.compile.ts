import type { ConfigDocument, Listener, Route } from "@headworks/gateway-contract";
import { RateRule, ruleIdentity } from "./rate-rule.ts";

/** The rules that stand at a level of the document, by what they hang on. */
type RulesByName = ReadonlyMap<string, readonly RateRule[]>;

/** All rules of one document, and where they apply. */
export class RateLimitLevels {
  readonly #global: readonly RateRule[];
  readonly #listeners: RulesByName;
  readonly #services: RulesByName;
  readonly #routes: RulesByName;
  readonly #consumers: RulesByName;
  /** All of them by identity. */
  readonly rules: ReadonlyMap<string, RateRule>;

  /** Rules that `running` knows go on counting where they stand. */
  constructor(document: ConfigDocument, running: ReadonlyMap<string, RateRule>) {
    const known = new Map<string, RateRule>();
    const policies = new Map<string, readonly RateRule[]>();
    for (const policy of document.policies) {
      const rules: RateRule[] = [];
      for (const rule of policy.rate_limits ?? []) {
        const identity = ruleIdentity(policy, rule);
        // The same rule twice in a policy is one: counting a request twice is not what anybody means by it.
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

  /** Whether any request of the route can meet a rule. */
  concerns(route: Route): boolean {
    return (
      this.#global.length > 0 ||
      this.#listeners.size > 0 ||
      this.#consumers.size > 0 ||
      this.#routes.has(route.name) ||
      this.#services.has(route.service ?? "")
    );
  }

  /** Whether the consumer has rules of its own. */
  concernsConsumer(name: string): boolean {
    return this.#consumers.has(name);
  }

  /** Every rule for such requests once, most specific level first. */
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

  /** The rules for requests of a listener that no route takes. */
  unroutedRules(listener: Listener): readonly RateRule[] {
    return [...new Set([...(this.#listeners.get(listener.name) ?? []), ...this.#global])];
  }
}
