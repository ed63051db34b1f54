import assert from "node:assert/strict";
import { test } from "node:test";
import type { WsRule } from "@headworks/capture-contract";
import {
  actionsFor,
  changedRule,
  draftOfMessage,
  draftOfWsRule,
  NEW_RULE,
  ruleOf,
  ruleSentence,
} from "./ws-rule-draft.ts";

test("an empty form is a named rule that pauses everything", () => {
  assert.deepEqual(ruleOf(NEW_RULE), { name: "Pause messages", match: {}, action: { type: "pause" } });
});

test("filled fields become the condition", () => {
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

test("a rule has a summary", () => {
  assert.equal(ruleSentence({ match: {}, action: { type: "drop" } }), "every message: drop");
  assert.equal(
    ruleSentence({ match: { direction: "receive", text: "a+" }, action: { type: "replace", replacement: "b" } }),
    'received, text a+: replace with "b"',
  );
  assert.equal(ruleSentence({ match: { url: "/x" }, action: { type: "delay", delay_ms: 5 } }), "URL /x: delay by 5 ms");
});

const stream = { host: "a.test", url: "wss://a.test/chat?token=1" };
const said = (text: string | null, type = "text") => ({
  direction: "send" as const,
  type: type as "text",
  text,
  size: new TextEncoder().encode(text ?? "").length,
  is_final: true,
});

test("a rule created from a message matches its URL, direction and text", () => {
  const draft = draftOfMessage(stream, said('{"price": "5 $"}\nend'), "drop");
  assert.deepEqual(ruleOf(draft), {
    name: "Drop sent messages of a.test",
    match: {
      host: "a.test",
      url: "^wss://a\\.test/chat",
      direction: "send",
      text: '^\\{"price": "5 \\$"\\}\\nend$',
    },
    action: { type: "drop" },
  });
  assert.match('{"price": "5 $"}\nend', new RegExp(draft.text, "u"));
});

test("a replacement starts as the replaced text, with dollar signs escaped", () => {
  assert.equal(draftOfMessage(stream, said("5 $&"), "replace").replacement, "5 $$&");
  assert.equal(draftOfMessage(stream, said("5 $&"), "pause").replacement, "");
});

test("for long or truncated text the rule matches the beginning", () => {
  assert.equal(draftOfMessage(stream, said("é".repeat(300)), "pause").text, `^${"é".repeat(200)}`);
  assert.equal(draftOfMessage(stream, { ...said("cut"), size: 70_000 }, "pause").text, "^cut");
  assert.equal(draftOfMessage(stream, { ...said("part"), is_final: false }, "pause").text, "^part");
  assert.equal(draftOfMessage({ ...stream, url: `ws://a/${"x".repeat(2000)}` }, said(""), "pause").url, "");
});

test("binary messages have no text to match or replace, and control frames have no rules", () => {
  assert.equal(draftOfMessage(stream, said(null, "binary"), "drop").text, "");
  const kinds = { kind: "websocket", type: "text", text: "a" } as const;
  assert.deepEqual(actionsFor(kinds), ["pause", "replace", "drop", "delay"]);
  assert.deepEqual(actionsFor({ ...kinds, type: "binary", text: null }), ["pause", "drop", "delay"]);
  assert.deepEqual(actionsFor({ ...kinds, type: "ping" }), []);
  assert.deepEqual(actionsFor({ ...kinds, kind: "sse", type: "event" }), []);
});

test("editing a rule keeps properties that the form does not show", () => {
  const rule: WsRule = {
    id: "1",
    name: "Prices",
    enabled: false,
    match: { host: "a.test", direction: "send", message_type: "text" },
    action: { type: "replace", find: "\\d+", replacement: "0" },
    hit_count: 3,
    created_at: "2026-01-01T00:00:00.000Z",
    updated_at: "2026-01-01T00:00:00.000Z",
  };
  const { name, enabled, match, action } = rule;
  assert.deepEqual(changedRule(rule, draftOfWsRule(rule)), { name, enabled, match, action });
  assert.deepEqual(changedRule(rule, { ...draftOfWsRule(rule), host: "", action: "delay", delayMs: "20" }), {
    name,
    enabled,
    match: { direction: "send", message_type: "text" },
    action: { type: "delay", delay_ms: 20 },
  });
});
