import type { ConfigDocument } from "@headworks/gateway-contract";
import { parseEgressUrl } from "#egress/egress-url.ts";
import { fieldNameIssue, fieldValueIssue } from "#egress/outbound-fields.ts";
import type { CheckScope, IssueReport } from "#slice.ts";

/** Fields that callouts set themselves, besides those of every outgoing request. */
const OWN_FIELDS = new Set(["accept", "x-request-id"]);

export function checkCallouts(document: ConfigDocument, report: IssueReport, scope: CheckScope): void {
  for (const [index, { callout }] of document.policies.entries()) {
    if (callout === undefined) continue;
    const fieldPath = ["policies", index, "callout"];
    const url = parseEgressUrl(callout.url);
    if ("issue" in url) report.error("bad_url", [...fieldPath, "url"], url.issue);
    const names = new Set<string>();
    for (const [name, text] of Object.entries(callout.headers ?? {})) {
      const field = [...fieldPath, "headers", name];
      const lower = name.toLowerCase();
      const own = OWN_FIELDS.has(lower) ? "This header is set by the gateway itself." : undefined;
      const nameIssue = fieldNameIssue(name) ?? own;
      if (nameIssue !== undefined) report.error("bad_header", field, nameIssue);
      if (names.has(lower)) report.error("bad_header", field, "The header is named twice, in different letter case.");
      names.add(lower);
      const value = scope.secret(text);
      const valueIssue = value === undefined ? undefined : fieldValueIssue(value.reveal());
      if (valueIssue !== undefined) report.error("bad_header", field, valueIssue);
    }
  }
}
