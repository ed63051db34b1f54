import type { ConfigDocument } from "@headworks/gateway-contract";
import type { IssueReport } from "#slice.ts";
import { ruleIdentity } from "./rate-rule.ts";

/** Warns about duplicate rules of a policy, which count once. */
export function checkRateLimits(document: ConfigDocument, report: IssueReport): void {
  for (const [at, policy] of document.policies.entries()) {
    const known = new Set<string>();
    for (const [index, rule] of (policy.rate_limits ?? []).entries()) {
      const identity = ruleIdentity(policy, rule);
      if (known.has(identity)) {
        const message = `The policy "${policy.name}" has the same rate limit twice; requests are counted once`;
        report.warning("duplicate_setting", ["policies", at, "rate_limits", index], message);
      }
      known.add(identity);
    }
  }
}
