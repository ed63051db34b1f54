import { EVENT_KINDS, type ConfigDocument, type WebhookTarget } from "@headworks/gateway-contract";
import { parseEgressUrl, type EgressUrl } from "#egress/egress-url.ts";
import { fieldNameIssue, fieldValueIssue } from "#egress/outbound-fields.ts";
import type { CheckScope, IssueReport } from "#slice.ts";
import { signingKey } from "./signature.ts";
import { DEFAULTS } from "./webhooks.compile.ts";

const known: ReadonlySet<string> = new Set(EVENT_KINDS);

export function checkWebhooks(document: ConfigDocument, report: IssueReport, scope: CheckScope): void {
  const seen = new Map<string, number>();
  for (const [index, target] of document.webhooks.entries()) {
    const fieldPath = ["webhooks", index];
    checkUrl(target, fieldPath, seen, report);
    checkEvents(target, fieldPath, report);
    checkHeaders(target, fieldPath, report, scope);
    checkBackoff(target, fieldPath, report);
    checkSigning(target, fieldPath, report, scope);
  }
}

type FieldPath = readonly (string | number)[];

function checkUrl(target: WebhookTarget, fieldPath: FieldPath, seen: Map<string, number>, report: IssueReport): void {
  const url = parseEgressUrl(target.url);
  if ("issue" in url) {
    report.error("bad_url", [...fieldPath, "url"], url.issue);
    return;
  }
  const spelling = sameEverywhere(url);
  const first = seen.get(spelling);
  if (first === undefined) seen.set(spelling, fieldPath.length > 1 ? Number(fieldPath[1]) : 0);
  else report.error("duplicate_url", [...fieldPath, "url"], `The webhook number ${first + 1} has this URL already.`);
}

/** Canonical form for duplicate detection. */
const sameEverywhere = (url: EgressUrl): string => `${String(url.isSecure)} ${url.host} ${url.port} ${url.target}`;

function checkEvents(target: WebhookTarget, fieldPath: FieldPath, report: IssueReport): void {
  if (target.events.length === 0) {
    report.error("empty_events", [...fieldPath, "events"], "A webhook must name at least one kind of event.");
  }
  for (const [index, kind] of target.events.entries()) {
    if (known.has(kind)) continue;
    const hint = kind === "quota_near_limit" ? "This kind is reserved for later. " : "";
    report.error(
      "unknown_event_kind",
      [...fieldPath, "events", index],
      `${hint}The kinds of events are ${EVENT_KINDS.join(", ")}.`,
    );
  }
}

function checkHeaders(target: WebhookTarget, fieldPath: FieldPath, report: IssueReport, scope: CheckScope): void {
  const names = new Set<string>();
  for (const [name, text] of Object.entries(target.headers ?? {})) {
    const field = [...fieldPath, "headers", name];
    const nameIssue = fieldNameIssue(name);
    if (nameIssue !== undefined) report.error("bad_header", field, nameIssue);
    const lower = name.toLowerCase();
    if (names.has(lower)) report.error("bad_header", field, "The header is named twice, in different letter case.");
    names.add(lower);
    if (target.signing !== undefined && /^webhook-(?:id|timestamp|signature)$/.test(lower)) {
      report.error("bad_header", field, "This header is set by the signature.");
    }
    const value = scope.secret(text);
    const valueIssue = value === undefined ? undefined : fieldValueIssue(value.reveal());
    if (valueIssue !== undefined) report.error("bad_header", field, valueIssue);
  }
}

function checkBackoff(target: WebhookTarget, fieldPath: FieldPath, report: IssueReport): void {
  const baseMs = target.backoff_base_ms ?? DEFAULTS.backoffBaseMs;
  const capMs = target.backoff_cap_ms ?? DEFAULTS.backoffCapMs;
  if (capMs >= baseMs) return;
  report.error(
    "out_of_range",
    [...fieldPath, "backoff_cap_ms"],
    `backoff_cap_ms (${capMs}) must not be below backoff_base_ms (${baseMs}).`,
  );
}

function checkSigning(target: WebhookTarget, fieldPath: FieldPath, report: IssueReport, scope: CheckScope): void {
  if (target.signing === undefined) return;
  const secret = scope.secret(target.signing.secret);
  if (secret === undefined || signingKey(secret.reveal()) !== undefined) return;
  report.error(
    "bad_value",
    [...fieldPath, "signing", "secret"],
    "The secret must be base64 of 24 to 64 bytes, with or without the prefix whsec_.",
  );
}
