import type { ConfigDocument } from "@headworks/gateway-contract";
import { parseEgressUrl } from "#egress/egress-url.ts";
import { fieldNameIssue } from "#egress/outbound-fields.ts";
import type { IssueReport } from "#slice.ts";

export function checkTracing({ analytics }: ConfigDocument, report: IssueReport): void {
  const traces = analytics?.traces;
  if (traces === undefined) return;
  const fieldPath = ["analytics", "traces"];
  const url = parseEgressUrl(traces.url);
  if ("issue" in url) report.error("bad_url", [...fieldPath, "url"], url.issue);
  for (const name of Object.keys(traces.headers ?? {})) {
    const issue = fieldNameIssue(name);
    if (issue !== undefined) report.error("bad_header", [...fieldPath, "headers", name], issue);
  }
  const { buffer = DEFAULTS.buffer, batch_max: batchMax = DEFAULTS.batchMax } = traces;
  if (batchMax > buffer) {
    const message = `batch_max (${batchMax}) must not be above buffer (${buffer}): a batch would never be full`;
    report.error("out_of_range", [...fieldPath, "batch_max"], message);
  }
}

export const DEFAULTS = { sampleRatio: 1, timeoutMs: 5000, buffer: 8192, flushMs: 1000, batchMax: 512 } as const;
