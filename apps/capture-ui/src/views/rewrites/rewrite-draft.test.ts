import assert from "node:assert/strict";
import { test } from "node:test";
import type { RewriteAction, RewriteRule } from "@headworks/capture-contract";
import {
  type ActionDraft,
  actionOf,
  ACTIONS,
  actionWords,
  draftOfAction,
  draftOfRule,
  newAction,
  newRewrite,
  rewriteFromEntry,
  ruleOf,
  withType,
} from "./rewrite-draft.ts";

const rule: RewriteRule = {
  id: "1",
  name: "Rule",
  condition: { type: "method", method: "GET" },
  direction: "both",
  rewrites: [{ type: "remove_header", name: "cookie" }],
  enabled: false,
  priority: -3,
  hit_count: 5,
  device_id: null,
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z",
};

test("a rule converted to a draft and back is unchanged", () => {
  const draft = draftOfRule(rule);
  assert.deepEqual(ruleOf(draft, draft.condition), {
    ok: true,
    rule: {
      name: "Rule",
      condition: rule.condition,
      direction: "both",
      rewrites: rule.rewrites,
      priority: -3,
    },
  });
});

test("missing values are reported, for steps by their key", () => {
  const draft = draftOfRule(rule);
  const step = newAction("set_status");
  const cases = [
    ruleOf({ ...draft, name: " " }, draft.condition),
    ruleOf(draft, null),
    ruleOf({ ...draft, actions: [] }, draft.condition),
    ruleOf({ ...draft, priority: "soon" }, draft.condition),
    ruleOf({ ...draft, actions: [step] }, draft.condition),
    ruleOf(newRewrite(), { type: "all" }),
  ];
  for (const result of cases) {
    assert.ok(!result.ok);
    assert.notEqual(result.message, "");
  }
  const last = cases[4];
  assert.ok(last !== undefined && !last.ok);
  assert.ok(last.problems.has(step.key));
});

test("a rule created from an entry is named after it", () => {
  const draft = rewriteFromEntry({ method: "GET", url: "https://a.example/x" });
  assert.equal(draft.name, "Rewrite GET a.example/x");
  assert.equal(draft.condition.type, "and");
});

const EACH: readonly RewriteAction[] = [
  { type: "url_rewrite", pattern: "^http:", replacement: "", flags: "i" },
  { type: "set_header", name: "X-A", value: "" },
  { type: "set_header", name: "X-A", value: "1", append: true },
  { type: "remove_header", name: "X-A" },
  { type: "header_rewrite", name: "X-A", pattern: "a", replacement: "b" },
  { type: "body_rewrite", pattern: "a", replacement: "b", flags: "ms" },
  { type: "query_param", name: "q", value: "1" },
  { type: "remove_query_param", name: "q" },
  { type: "map_to_file", path: "x/y", prefix: "/z" },
  { type: "map_to_url", url: "http://a/" },
  { type: "allow_cors" },
  { type: "allow_cors", max_age_secs: 60 },
  { type: "set_status", code: 503 },
  { type: "set_method", method: "PUT" },
  { type: "set_body", content: "", base64: true, content_type: "text/plain" },
  { type: "json_patch", patch: [{ op: "remove", path: "/a" }] },
  { type: "json_merge", patch: null },
];

test("every kind of action converted to a draft and back is unchanged", () => {
  for (const action of EACH) assert.deepEqual(actionOf(draftOfAction(action)), { ok: true, action });
  assert.deepEqual(new Set(EACH.map((action) => action.type)), new Set(Object.keys(ACTIONS)));
});

test("missing values, invalid numbers and invalid JSON are reported with the field's label", () => {
  const cases: readonly [ActionDraft, RegExp][] = [
    [newAction("set_header"), /^Name is missing/u],
    [newAction("set_status", { code: "5O3" }), /^Status: is not a number/u],
    [newAction("json_merge", { patch: "{" }), /not JSON/u],
    [newAction("url_rewrite", { replacement: "x" }), /^Find is missing/u],
  ];
  for (const [draft, message] of cases) {
    const result = actionOf(draft);
    assert.ok(!result.ok);
    assert.match(result.message, message);
  }
});

test("changing the kind keeps the values that still apply", () => {
  const draft = withType(newAction("set_header", { name: "a", value: "b" }), "remove_header");
  assert.deepEqual(draft.values, { name: "a" });
});

test("every action has a summary", () => {
  for (const action of EACH) assert.ok(actionWords(action).length > 3, action.type);
});
