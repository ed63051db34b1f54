import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ISSUE_CODES, type IssueCode } from "@headworks/gateway-contract";
import { checkDocument, freshFindings, type DocumentCheck } from "#config/check-document.ts";
import { readDocument } from "#config/read-document.ts";
import { allChecks } from "./all-checks.ts";

const { checks: known, clock, stop } = allChecks();
after(stop);
const checks: readonly DocumentCheck[] = [
  ...known,
  (document) => {
    if (document.gateway.name === "breaks") throw new Error("a check with a mistake");
  },
];

const response = "action: {type: respond, status: 200}";
const route = (more: string, match = "path: {type: prefix, value: /}"): string =>
  `routes: [{name: r, match: {${match}}, ${response}${more}}]`;
const deprecation = (block: string): string => route(`, deprecation: {${block}}`);
const webhook = (more: string): string => `webhooks: [{url: "http://h/", events: [config_published]${more}}]`;

/** Not of a document alone: for other issues together, for what differs from the start (generations.test.ts) or is elsewhere (cli-documents.test.ts). */
type Elsewhere = "more_issues" | "restart_needed" | "not_checked";

/** Every code, and a document that has it: its pointer, and § in the text where its line and column are. */
const examples: Readonly<Record<Exclude<IssueCode, Elsewhere>, readonly [pointer: string, text: string]>> = {
  syntax: ["", "routes: [§}"],
  unknown_field: ["/route", "§route: []"],
  required: ["/policies/0/name", "policies: [§{}]"],
  type: ["/policies/0/name", "policies: [{name: §1}]"],
  out_of_range: ["/webhooks/0/timeout_ms", webhook(", timeout_ms: §60001")],
  bad_value: ["/version", "version: §2"],
  duplicate_name: ["/policies/1/name", "policies: [{name: a}, {name: §a}]"],
  duplicate_url: [
    "/webhooks/1/url",
    "webhooks:\n  - {url: 'http://h/', events: [config_published]}\n  - {url: §'http://h/', events: [breaker_opened]}",
  ],
  duplicate_setting: ["/name", "name: §a\ngateway: {name: a}"],
  duplicate_credential: [
    "/consumers/1/credentials/0/key",
    "consumers:\n  - {name: a, credentials: [{type: api_key, key: k}]}\n  - {name: b, credentials: [{type: api_key, key: §k}]}",
  ],
  address_collision: [
    "/listeners/1/port",
    "listeners:\n  - {name: a, address: '::', port: 80}\n  - {name: b, address: '::', port: §80}",
  ],
  unknown_reference: ["/global_policies/0", "global_policies: [§gold]"],
  secret_unresolved: ["/webhooks/0/headers/a", webhook(', headers: {a: §"${NOT_SET}"}')],
  secret_malformed: ["/webhooks/0/headers/a", webhook(', headers: {a: §"${NOT"}')],
  redacted_placeholder: ["/webhooks/0/headers/a", webhook(', headers: {a: §"${redacted:sha256:00000000}"}')],
  bad_url: ["/webhooks/0/url", "webhooks: [{url: §/relative, events: [config_published]}]"],
  bad_header: ["/webhooks/0/headers/a b", webhook(', headers: {"a b": §c}')],
  bad_file: [
    "/listeners/0/tls/cert_file",
    "listeners: [{name: a, address: '::', port: 0, protocol: https, tls: {cert_file: §/none, key_file: /none}}]",
  ],
  unknown_event_kind: ["/webhooks/0/events/0", "webhooks: [{url: 'http://h/', events: [§quota_near_limit]}]"],
  empty_events: ["/webhooks/0/events", "webhooks: [{url: 'http://h/', §events: []}]"],
  quota_empty: ["/consumers/0/quotas", "consumers: [{name: a, §quotas: {dry_run: true}}]"],
  quota_zero: ["/consumers/0/quotas/daily_requests", "consumers: [{name: a, quotas: {daily_requests: §0}}]"],
  deprecation_empty: ["/routes/0/deprecation", route(", §deprecation: {}")],
  date_not_imf_fixdate: ["/routes/0/deprecation/since", deprecation("since: §2026-01-01")],
  date_weekday_mismatch: ["/routes/0/deprecation/since", deprecation('since: §"Mon, 01 Jan 2026 00:00:00 GMT"')],
  sunset_past: ["/routes/0/deprecation/sunset", deprecation('sunset: §"Wed, 31 Dec 2025 23:59:59 GMT"')],
  sunset_before_since: [
    "/routes/0/deprecation/sunset",
    deprecation('since: "Sat, 02 Jan 2027 00:00:00 GMT", sunset: §"Fri, 01 Jan 2027 00:00:00 GMT"'),
  ],
  since_before_epoch: ["/routes/0/deprecation/since", deprecation('since: §"Wed, 31 Dec 1969 23:59:59 GMT"')],
  uri_without_since: [
    "/routes/0/deprecation/uri",
    deprecation('sunset: "Fri, 01 Jan 2027 00:00:00 GMT", uri: §"https://h/"'),
  ],
  bad_media_type: ["/routes/0/match/accept", route("", "path: {type: prefix, value: /}, accept: §'*/*'")],
  bad_cidr: ["/trusted_proxies/0", "trusted_proxies: [§nowhere]"],
  ssrf_deny_required: ["/ssrf_filter/deny", "§ssrf_filter: {allow: [10.0.0.1]}"],
  regex_invalid: ["/routes/0/match/path/value", route("", "path: {type: regex, value: §'('}")],
  route_shadowed: ["/routes/0/match/path/value", route("", "path: {type: exact, value: §/healthz}")],
  empty_routes: ["", "§name: a"],
  unused: ["/policies/0", "policies: [§{name: p}]"],
  compile_failed: ["", "§name: breaks"],
};

/** The marked text without its mark, and where that was, counted from 1. */
function unmarked(marked: string): { readonly text: string; readonly fieldPath: string } {
  const before = marked.slice(0, marked.indexOf("§")).split("\n");
  return { text: marked.replace("§", ""), fieldPath: `${before.length}:${(before.at(-1) ?? "").length + 1}` };
}

for (const code of ISSUE_CODES) {
  if (code === "more_issues" || code === "restart_needed" || code === "not_checked") continue;
  void test(`the code ${code} comes with its pointer, line and column, from the gateway's own checks`, () => {
    const [expected, marked] = examples[code];
    const { text, fieldPath } = unmarked(marked);
    const issues = checkDocument(readDocument(text), { checks, clock, environment: {} }, freshFindings({}));
    const found = issues.filter((issue) => issue.code === code);
    const places = found.map(({ path, line, column }) => `${path} ${line}:${column}`);
    const all = issues.map((issue) => `${issue.code} ${issue.path} ${issue.line}:${issue.column}`).join(", ");
    assert.ok(places.includes(`${expected} ${fieldPath}`), `${expected} ${fieldPath} is not among ${all}`);
    assert.equal(new Set(places).size, places.length, "each place once");
    for (const { message } of found) assert.match(message, /^\S.{10,}[^.\s]$/s);
    const others = issues.filter((issue) => issue.severity === "error" && issue.code !== code);
    assert.deepEqual(others, [], "nothing else is made up");
  });
}
