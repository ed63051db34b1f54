import assert from "node:assert/strict";
import { test } from "node:test";
import type { RewriteRule } from "@headworks/capture-contract";
import { newAction } from "./action-draft.ts";
import { draftOfRule, newRewrite, rewriteFromEntry, ruleOf } from "./rewrite-draft.ts";

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

test("a rule goes through its draft unchanged", () => {
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

test("what is missing is said, steps by their keys", () => {
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

test("a rule from an entry is called after it", () => {
  const draft = rewriteFromEntry({ method: "GET", url: "https://a.example/x" });
  assert.equal(draft.name, "Rewrite GET a.example/x");
  assert.equal(draft.condition.type, "and");
});
