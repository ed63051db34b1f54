import { dayOf, monthOf, type ConfigDocument } from "@headworks/gateway-contract";
import type { BudgetCharge, BudgetName } from "#storage/state-store.ts";

export interface CurrentBudget extends BudgetCharge {
  readonly endMs: number;
}

/** The configured budgets of a consumer. */
export class ConsumerBudgets {
  readonly consumer: string;
  readonly isDryRun: boolean;
  readonly #daily: bigint | undefined;
  readonly #monthly: bigint | undefined;
  #current: readonly CurrentBudget[] = [];
  #fromMs = Number.POSITIVE_INFINITY;
  #untilMs = Number.NEGATIVE_INFINITY;

  constructor(
    consumer: string,
    limits: { readonly daily: bigint | undefined; readonly monthly: bigint | undefined },
    isDryRun: boolean,
  ) {
    this.consumer = consumer;
    this.isDryRun = isDryRun;
    this.#daily = limits.daily;
    this.#monthly = limits.monthly;
  }

  /** Windows of both budgets at the same instant, daily first. Cached until the day ends or the clock is set back. */
  at(nowMs: number): readonly CurrentBudget[] {
    if (nowMs >= this.#fromMs && nowMs < this.#untilMs) return this.#current;
    const day = dayOf(nowMs);
    const month = monthOf(nowMs);
    const budgets: CurrentBudget[] = [];
    const add = (budget: BudgetName, window: { startMs: number; endMs: number }, limit: bigint | undefined): void => {
      if (limit === undefined) return;
      budgets.push({ budget, limit, windowStartS: window.startMs / 1000, endMs: window.endMs });
    };
    add("daily", day, this.#daily);
    add("monthly", month, this.#monthly);
    this.#current = budgets;
    this.#fromMs = day.startMs;
    this.#untilMs = day.endMs;
    return budgets;
  }
}

/** Consumers with quotas by name, in document order. */
export function budgetsOf(document: ConfigDocument): ReadonlyMap<string, ConsumerBudgets> {
  const budgets = new Map<string, ConsumerBudgets>();
  for (const { name, quotas } of document.consumers) {
    if (quotas === undefined) continue;
    const limits = { daily: quotas.daily_requests, monthly: quotas.monthly_requests };
    budgets.set(name, new ConsumerBudgets(name, limits, quotas.dry_run ?? false));
  }
  return budgets;
}
