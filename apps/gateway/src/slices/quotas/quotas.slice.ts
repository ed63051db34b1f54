import type { ConfigDocument } from "@headworks/gateway-contract";
import type { Logger } from "pino";
import type { Clock, CompiledSlice, GatewaySlice } from "#slice.ts";
import type { StateStore } from "#storage/state-store.ts";
import { budgetsOf } from "./consumer-budgets.ts";
import type { ConsumerBudgets } from "./consumer-budgets.ts";
import { InertQuotaGate, QuotaGate } from "./quota-gate.ts";
import { QuotaReports } from "./quota-reports.ts";
import type { QuotaMetrics } from "./quota-reports.ts";
import { checkQuotas } from "./quotas.check.ts";
import { usageRecordOf } from "./usage-record.ts";
import type { UsageRecord, UsageRefusal } from "./usage-record.ts";

export type { QuotaMetrics } from "./quota-reports.ts";
export { usageJson } from "./usage-record.ts";
export type { UsageRecord, UsageRefusal } from "./usage-record.ts";

/** What quotas need of the gateway. */
export interface QuotasHost {
  /** Undefined without `GATEWAY_STATE_DB`: quotas are not enforced then. */
  readonly store: StateStore | undefined;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics: QuotaMetrics;
}

/** The slice, and what the admin API asks it. */
export interface QuotasSlice extends GatewaySlice {
  /** The answer of `GET /quotas/usage` for the running configuration. Rejects when the store cannot be read. */
  usageRecord(consumer?: string): Promise<UsageRecord | UsageRefusal>;
  /**
   * Corrects what a consumer used of a budget in its current window; the answer is its record afterwards. Rejects when
   * the store does not take it.
   */
  adjust(consumer: string, budget: "daily" | "monthly", delta: bigint): Promise<UsageRecord | UsageRefusal>;
}

/** Budgets of consumers over UTC days and months. */
export function quotas(host: QuotasHost): QuotasSlice {
  const { store, log, clock } = host;
  const reports = new QuotaReports(log, host.metrics, () => clock.monotonic());
  let running: ReadonlyMap<string, ConsumerBudgets> = new Map();

  const compile = (document: ConfigDocument): CompiledSlice => {
    const budgets = budgetsOf(document);
    const published = (): void => {
      running = budgets;
      if (store === undefined || budgets.size === 0) return;
      // A charge that comes before the rows are there waits for them, or fails.
      store.quotas.syncConsumers([...budgets.keys()]).catch((error: unknown) => {
        log.error({ code: "quota_sync_failed", err: error }, "The state store has no rows for the consumers yet");
      });
    };
    if (budgets.size === 0) return { published };
    const gate =
      store === undefined
        ? new InertQuotaGate(budgets, reports)
        : new QuotaGate(budgets, store.quotas, reports, () => clock.now());
    return { gateFor: () => gate, published };
  };

  return {
    name: "quotas",
    check: checkQuotas,
    compile,
    usageRecord: async (consumer) => await usageRecordOf(store, running, clock.now(), consumer),
    adjust: async (consumer, budget, delta) => {
      const nowMs = clock.now();
      const window = running
        .get(consumer)
        ?.at(nowMs)
        .find((current) => current.budget === budget);
      if (running.has(consumer) && window === undefined) {
        return { refused: "quota_bad_budget", message: `Consumer '${consumer}' has no ${budget} budget` };
      }
      if (window !== undefined) await store?.quotas.adjust(consumer, window, delta);
      return await usageRecordOf(store, running, nowMs, consumer);
    },
  };
}
