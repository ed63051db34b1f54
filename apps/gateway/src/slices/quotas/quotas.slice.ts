import type { Logger } from "pino";
import type { ConfigDocument } from "@headworks/gateway-contract";
import type { Clock, CompiledSlice, GatewaySlice, IssueReport } from "#slice.ts";
import type { StateStore } from "#storage/state-store.ts";
import { budgetsOf, type ConsumerBudgets } from "./consumer-budgets.ts";
import { InertQuotaGate, QuotaGate } from "./quota-gate.ts";
import { type QuotaMetrics, QuotaReports } from "./quota-reports.ts";
import { type UsageRecord, usageRecordOf, type UsageRefusal } from "./usage-record.ts";

const BUDGETS = ["daily_requests", "monthly_requests"] as const;

export type { QuotaMetrics } from "./quota-reports.ts";
export { usageJson } from "./usage-record.ts";
export type { UsageRecord, UsageRefusal } from "./usage-record.ts";

export interface QuotasHost {
  /** Undefined without `GATEWAY_STATE_DB`: quotas are not enforced. */
  readonly store: StateStore | undefined;
  readonly log: Logger;
  readonly clock: Clock;
  readonly metrics: QuotaMetrics;
}

export interface QuotasSlice extends GatewaySlice {
  /** The response of `GET /quotas/usage` for the running configuration. Rejects if the store cannot be read. */
  usageRecord(consumer?: string): Promise<UsageRecord | UsageRefusal>;
  /**
   * Corrects the usage of a budget in its current window; resolves with the updated record. Rejects if the store fails.
   */
  adjust(consumer: string, budget: "daily" | "monthly", delta: bigint): Promise<UsageRecord | UsageRefusal>;
}

/** Request budgets of consumers per UTC day and month. */
export function quotas(host: QuotasHost): QuotasSlice {
  const { store, log, clock } = host;
  const reports = new QuotaReports(log, host.metrics, () => clock.monotonic());
  let running: ReadonlyMap<string, ConsumerBudgets> = new Map();

  const compile = (document: ConfigDocument): CompiledSlice => {
    const budgets = budgetsOf(document);
    const published = (): void => {
      running = budgets;
      if (store === undefined || budgets.size === 0) return;
      // Charges that precede the rows wait for them or fail.
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

/** Quota rule 1: a consumer with quotas has at least one budget, none of them zero. */
function checkQuotas(document: ConfigDocument, report: IssueReport): void {
  for (const [index, consumer] of document.consumers.entries()) {
    const { quotas } = consumer;
    if (quotas === undefined) continue;
    const fieldPath = ["consumers", index, "quotas"];
    if (BUDGETS.every((budget) => quotas[budget] === undefined)) {
      const message = `consumer '${consumer.name}' has quotas without a budget: set daily_requests or monthly_requests, or leave quotas out`;
      report.error("quota_empty", fieldPath, message);
    }
    for (const budget of BUDGETS) {
      if (quotas[budget] !== 0n) continue;
      const message = `consumer '${consumer.name}' has ${budget} 0: a budget must be greater than zero; omit it for no budget`;
      report.error("quota_zero", [...fieldPath, budget], message);
    }
  }
}
