import type { ConfigDocument } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";

const BUDGETS = ["daily_requests", "monthly_requests"] as const;

/** Quota rule 1: a consumer with quotas has at least one budget, none of them zero. */
export function checkQuotas(document: ConfigDocument, report: IssueReport): void {
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
      const message = `consumer '${consumer.name}' has ${budget} 0: a budget is greater than zero; leave it out for no budget`;
      report.error("quota_zero", [...fieldPath, budget], message);
    }
  }
}
