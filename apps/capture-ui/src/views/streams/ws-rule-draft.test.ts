import assert from "node:assert/strict";
import { test } from "node:test";
import { NEW_RULE, ruleOf, ruleSentence } from "./ws-rule-draft.ts";

test("an empty form is a rule that pauses everything, and has a name", () => {
  assert.deepEqual(ruleOf(NEW_RULE), { name: "Pause messages", match: {}, action: { type: "pause" } });
});

test("what is filled in is what is asked", () => {
  const draft = { ...NEW_RULE, name: " mine ", host: " a.test ", url: "/chat", direction: "send" as const, text: "x" };
  assert.deepEqual(ruleOf({ ...draft, action: "replace", replacement: "y" }), {
    name: "mine",
    match: { host: "a.test", url: "/chat", direction: "send", text: "x" },
    action: { type: "replace", replacement: "y" },
  });
  assert.deepEqual(ruleOf({ ...draft, name: "", action: "delay", delayMs: "250" }).action, {
    type: "delay",
    delay_ms: 250,
  });
  assert.equal(ruleOf({ ...draft, name: "", action: "drop" }).name, "Drop sent messages of a.test");
});

test("a rule is a sentence", () => {
  assert.equal(ruleSentence({ match: {}, action: { type: "drop" } }), "every message: drop");
  assert.equal(
    ruleSentence({ match: { direction: "receive", text: "a+" }, action: { type: "replace", replacement: "b" } }),
    'received, text a+: replace with "b"',
  );
  assert.equal(ruleSentence({ match: { url: "/x" }, action: { type: "delay", delay_ms: 5 } }), "URL /x: delay by 5 ms");
});
