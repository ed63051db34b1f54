import { secondsUntil } from "@headworks/gateway-contract";
import type { Gate, Verdict } from "#request/phases.ts";
import type { RequestContext } from "#request/context.ts";
import type { BudgetName, ChargeResult, QuotaStore } from "#storage/state-store.ts";
import type { ConsumerBudgets, CurrentBudget } from "./consumer-budgets.ts";
import type { QuotaReports } from "./quota-reports.ts";

/** Charges requests of consumers with quotas; others pass synchronously. */
export class QuotaGate implements Gate {
  readonly #budgets: ReadonlyMap<string, ConsumerBudgets>;
  readonly #store: QuotaStore;
  readonly #reports: QuotaReports;
  readonly #nowMs: () => number;

  constructor(
    budgets: ReadonlyMap<string, ConsumerBudgets>,
    store: QuotaStore,
    reports: QuotaReports,
    nowMs: () => number,
  ) {
    this.#budgets = budgets;
    this.#store = store;
    this.#reports = reports;
    this.#nowMs = nowMs;
  }

  check(request: RequestContext): Verdict | Promise<Verdict> {
    if (request.consumer === undefined) return undefined;
    const budgets = this.#budgets.get(request.consumer.name);
    if (budgets === undefined) return undefined;
    const nowMs = this.#nowMs();
    const current = budgets.at(nowMs);
    const result = this.#store.charge(budgets.consumer, current, !budgets.isDryRun);
    if (!(result instanceof Promise)) return this.#verdict(request, budgets, current, nowMs, result);
    return this.#later(request, budgets, current, nowMs, result);
  }

  async #later(
    request: RequestContext,
    budgets: ConsumerBudgets,
    current: readonly CurrentBudget[],
    nowMs: number,
    result: Promise<ChargeResult>,
  ): Promise<Verdict> {
    return this.#verdict(request, budgets, current, nowMs, await result);
  }

  #verdict(
    request: RequestContext,
    { consumer }: ConsumerBudgets,
    current: readonly CurrentBudget[],
    nowMs: number,
    result: ChargeResult,
  ): Verdict {
    switch (result.outcome) {
      case "charged": {
        const binding = bindingBudget(current, result.over);
        if (binding !== undefined) this.#reports.wouldDeny(request, consumer, binding.budget);
        return undefined;
      }
      case "exhausted":
        return this.#refuse(request, consumer, current, nowMs, result.budgets);
      case "unsynced":
        this.#reports.unsynced(consumer);
        return undefined;
      case "failed":
        this.#reports.storeFailed(request, consumer, result.error);
        return { code: "quota_store_unavailable" };
    }
  }

  #refuse(
    request: RequestContext,
    consumer: string,
    current: readonly CurrentBudget[],
    nowMs: number,
    exhausted: readonly BudgetName[],
  ): Verdict {
    const binding = bindingBudget(current, exhausted);
    if (binding === undefined) return { code: "quota_store_unavailable" };
    request.wasRateLimited = true;
    this.#reports.denied(consumer, binding.budget);
    return {
      code: "quota_exceeded",
      fields: [
        "Retry-After",
        String(secondsUntil(binding.endMs, nowMs)),
        "X-RateLimit-Limit",
        String(binding.limit),
        "X-RateLimit-Remaining",
        "0",
        "X-RateLimit-Reset",
        String(binding.endMs / 1000),
      ],
    };
  }
}

/** The exhausted budget whose window ends last, which determines Retry-After. */
function bindingBudget(current: readonly CurrentBudget[], usedUp: readonly BudgetName[]): CurrentBudget | undefined {
  let binding: CurrentBudget | undefined;
  for (const budget of current) {
    if (!usedUp.includes(budget.budget)) continue;
    if (binding === undefined || budget.endMs > binding.endMs) binding = budget;
  }
  return binding;
}

/** Used without a store: logs once that quotas are not enforced. */
export class InertQuotaGate implements Gate {
  readonly #budgets: ReadonlyMap<string, ConsumerBudgets>;
  readonly #reports: QuotaReports;

  constructor(budgets: ReadonlyMap<string, ConsumerBudgets>, reports: QuotaReports) {
    this.#budgets = budgets;
    this.#reports = reports;
  }

  check(request: RequestContext): Verdict {
    if (request.consumer !== undefined && this.#budgets.has(request.consumer.name)) this.#reports.storeMissing();
    return undefined;
  }
}
