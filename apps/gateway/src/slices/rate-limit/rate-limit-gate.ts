import type { DryRunReport, Gate, RequestContext, Verdict } from "#request/context.ts";
import type { Clock } from "#slice.ts";
import type { RateRule, RuleState } from "./rate-rule.ts";

export interface RateCharge {
  readonly rule: string;
  readonly key: string;
}

/** Result of a rule in another process, whose monotonic clock differs. */
export interface RateOutcome extends Omit<RuleState, "fullAtMs"> {
  /** Milliseconds until the burst is fully replenished. */
  readonly fullInMs: number;
}

/** Counters shared by several processes of one gateway. */
export interface RateCounters {
  /** In the order of `charges`; undefined for rules unknown there. Never rejects. */
  charge(charges: readonly RateCharge[]): Promise<readonly (RateOutcome | undefined)[]>;
}

export interface RateLimitTools {
  /** Undefined: requests are counted in this process. */
  readonly counters: RateCounters | undefined;
  readonly clock: Clock;
  readonly report: DryRunReport;
}

/** Charges every applicable rule and refuses the request if one is exhausted. */
export class RateLimitGate implements Gate {
  readonly #rulesOf: (request: RequestContext) => readonly RateRule[];
  readonly #tools: RateLimitTools;

  constructor(rulesOf: (request: RequestContext) => readonly RateRule[], tools: RateLimitTools) {
    this.#rulesOf = rulesOf;
    this.#tools = tools;
  }

  check(request: RequestContext): Verdict | Promise<Verdict> {
    const rules = this.#rulesOf(request);
    if (rules.length === 0) return undefined;
    const { clock, counters } = this.#tools;
    if (counters !== undefined) return this.#countElsewhere(request, rules, counters);
    const nowMs = clock.monotonic();
    return this.#verdict(request, rules, nowMs, (rule) => rule.charge(rule.keyOf(request), nowMs));
  }

  async #countElsewhere(request: RequestContext, rules: readonly RateRule[], counters: RateCounters): Promise<Verdict> {
    const charges = rules.map((rule) => ({ rule: rule.identity, key: rule.keyOf(request) }));
    const outcomes = await counters.charge(charges);
    const nowMs = this.#tools.clock.monotonic();
    return this.#verdict(request, rules, nowMs, (rule, at) => {
      const outcome = outcomes[at];
      // A reload removed the rule there in the meantime; count locally.
      if (outcome === undefined) return rule.charge(charges[at]?.key ?? "", nowMs);
      const { waitMs, remaining, limit, fullInMs } = outcome;
      return { waitMs, remaining, limit, fullAtMs: nowMs + fullInMs };
    });
  }

  #verdict(
    request: RequestContext,
    rules: readonly RateRule[],
    nowMs: number,
    charge: (rule: RateRule, at: number) => RuleState,
  ): Verdict {
    let tightest: RuleState | undefined;
    let refusing: RuleState | undefined;
    let waitMs = 0;
    for (const [at, rule] of rules.entries()) {
      const state = charge(rule, at);
      if (rule.isDryRun) {
        if (state.waitMs > 0) this.#tools.report(request, 429, `the rate limit '${rule.label}' is used up`);
        continue;
      }
      if (state.waitMs > 0) {
        refusing ??= state;
        waitMs = Math.max(waitMs, state.waitMs);
      } else if (tightest === undefined || state.remaining < tightest.remaining) tightest = state;
    }
    if (refusing !== undefined) {
      request.wasRateLimited = true;
      const retryAfterS = Math.max(1, Math.ceil(waitMs / 1000));
      const fields = ["Retry-After", String(retryAfterS), ...this.#fields(refusing, nowMs)];
      return { code: "rate_limit_exceeded", fields };
    }
    if (tightest !== undefined) {
      const fields = this.#fields(tightest, nowMs);
      for (let at = 0; at < fields.length; at += 2) request.addResponseField(fields[at] ?? "", fields[at + 1] ?? "");
    }
    return undefined;
  }

  #fields(state: RuleState, nowMs: number): string[] {
    const resetMs = this.#tools.clock.now() + Math.max(0, state.fullAtMs - nowMs);
    return [
      "X-RateLimit-Limit",
      String(state.limit),
      "X-RateLimit-Remaining",
      String(state.remaining),
      "X-RateLimit-Reset",
      String(Math.ceil(resetMs / 1000)),
    ];
  }
}
