import type { ConfigDocument } from "@headworks/gateway-contract";
import { parseNetwork } from "@headworks/host-patterns";
import { OPEN_RULES, type EgressDialer } from "#egress/egress-dialer.ts";
import { EgressFilter, isEnabled } from "#egress/egress-filter.ts";
import type { GatewaySlice, IssueReport } from "#slice.ts";

/** Applies the document's SSRF filter to the dialer. */
export function createEgressFilter(dialer: EgressDialer): GatewaySlice {
  return {
    name: "egress-filter",
    check: checkFilter,
    compile: ({ gateway }) => {
      const rules = {
        filter: isEnabled(gateway.ssrf_filter) ? new EgressFilter(gateway.ssrf_filter) : undefined,
        dnsTimeoutMs: gateway.egress?.dns_timeout_ms ?? OPEN_RULES.dnsTimeoutMs,
      };
      return { published: () => dialer.apply(rules) };
    },
  };
}

function checkFilter(document: ConfigDocument, report: IssueReport): void {
  const filter = document.gateway.ssrf_filter;
  if (filter === undefined) return;
  const fieldPath = ["gateway", "ssrf_filter"];
  if (isEnabled(filter) && (filter.deny ?? []).length === 0) {
    report.error("ssrf_deny_required", [...fieldPath, "deny"], "A filter that is on must deny at least one range.");
  }
  if (filter.allow !== undefined && filter.allowlist !== undefined) {
    report.error(
      "duplicate_setting",
      [...fieldPath, "allowlist"],
      "allowlist is the older spelling of allow; give one of them.",
    );
  }
  for (const list of ["deny", "allow", "allowlist"] as const) {
    for (const [index, text] of (filter[list] ?? []).entries()) {
      if (parseNetwork(text) !== undefined) continue;
      report.error(
        "bad_cidr",
        [...fieldPath, list, index],
        "This is neither an address nor a network such as 10.0.0.0/8.",
      );
    }
  }
}
