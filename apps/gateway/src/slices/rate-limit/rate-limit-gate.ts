// Tested by rate-limit.slice.test.ts
import type { RequestContext } from "#request/context.ts";
import type { DryRunReport } from "#request/dry-run-report.ts";
import type { Gate, Verdict } from "#request/phases.ts";
import type { Clock } from "#slice.ts";
import type { RateRule, RuleState } from "./rate-rule.ts";

/** What a gate needs besides its rules. */
export interface RateLimitTools {
  readonly clock: Clock;
  readonly report: DryRunReport;
}

/** Counts each request in every rule that applies to it, and refuses it when one of them is used up. */
export class RateLimitGate implements Gate {
  readonly #rulesOf: (request: RequestContext) => readonly RateRule[];
  readonly #tools: RateLimitTools;

  constructor(rulesOf: (request: RequestContext) => readonly RateRule[], tools: RateLimitTools) {
    this.#rulesOf = rulesOf;
    this.#tools = tools;
  }

  check(request: RequestContext): Verdict {
    const rules = this.#rulesOf(request);
    if (rules.length === 0) return undefined;
    const nowMs = this.#tools.clock.monotonic();
    let tightest: RuleState | undefined;
    let refusing: RuleState | undefined;
    let waitMs = 0;
    for (const rule of rules) {
      const state = rule.charge(request, nowMs);
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
      for (let at = 0; at < fields.length; at += 2) request.addAnswerField(fields[at] ?? "", fields[at + 1] ?? "");
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
