import assert from "node:assert/strict";
import { test } from "node:test";
import type { NewWsRule } from "@headworks/capture-contract";
import type { TappedMessage } from "#exchange/messages.ts";
import { sampleExchange } from "#storage/read/sample-exchange.ts";
import type { FrameRecord, StreamStore } from "#storage/streams/stream-store.ts";
import { newWsRule } from "./ws-rule.ts";
import {
  type CompiledWsRule,
  compileWsRules,
  type MessagesParts,
  PausedMessages,
  WsTrafficInterceptor,
} from "./ws-traffic.interceptor.ts";

const CONTROL = { inject: () => true, close: () => true };

function interceptorWith(rules: readonly CompiledWsRule[]) {
  const opened: string[] = [];
  const frames: FrameRecord[] = [];
  const streams: Pick<StreamStore, "open"> = {
    open: ({ id }) => {
      opened.push(id);
      return { frame: (frame) => frames.push(frame), change: () => undefined, end: () => undefined };
    },
  };
  const parts: MessagesParts = {
    rules: () => rules,
    paused: new PausedMessages(() => undefined),
    onHit: () => undefined,
    after: () => () => undefined,
    nowMs: () => 0,
  };
  return { interceptor: new WsTrafficInterceptor(streams as StreamStore, parts), opened, frames };
}

test("messages of an unrecorded connection are not tapped, unless there are rules", () => {
  const hidden = { ...sampleExchange(), isRecorded: false };
  const without = interceptorWith([]);
  assert.equal(without.interceptor.onMessages(hidden, CONTROL), undefined);
  assert.deepEqual(without.opened, []);
  const ruled = interceptorWith(compileWsRules([newWsRule("id", { action: { type: "drop" } }, 0)]));
  const handler = ruled.interceptor.onMessages(hidden, CONTROL);
  assert.equal(handler?.gates("send"), true);
  assert.deepEqual(handler?.decide({ direction: "send", opcode: 1, payload: Buffer.from("x") }), { kind: "drop" });
  assert.equal(ruled.interceptor.control(hidden.id), undefined, "hidden connections cannot be controlled");
});

test("an open connection can be controlled until it closes", () => {
  const { interceptor } = interceptorWith([]);
  const exchange = sampleExchange();
  const handler = interceptor.onMessages(exchange, CONTROL);
  assert.equal(interceptor.control(exchange.id), CONTROL);
  assert.equal(handler?.gates("receive"), false);
  handler?.closed(undefined);
  assert.equal(interceptor.control(exchange.id), undefined);
});

const only = (body: NewWsRule) => {
  const [rule] = compileWsRules([newWsRule("id", body, 0)]);
  assert.ok(rule);
  return rule;
};
const message = (opcode: number, text: string, direction: TappedMessage["direction"] = "send"): TappedMessage => ({
  direction,
  opcode,
  payload: Buffer.from(text),
});

test("a rule matches connections by host and URL", () => {
  const table: readonly [NewWsRule["match"], string, string, boolean][] = [
    [undefined, "a.test", "ws://a.test/", true],
    [{ host: "a.test" }, "a.test", "ws://a.test/", true],
    [{ host: "*.test" }, "a.test", "ws://a.test/", true],
    [{ host: "b.test" }, "a.test", "ws://a.test/", false],
    [{ url: "/chat\\?room=\\d+$" }, "a.test", "ws://a.test/chat?room=12", true],
    [{ url: "/chat$" }, "a.test", "ws://a.test/chat?room=12", false],
    [{ host: "a.test", url: "^wss:" }, "a.test", "ws://a.test/", false],
    [{ host: "пример.рф" }, "xn--e1afmkfd.xn--p1ai", "ws://xn--e1afmkfd.xn--p1ai/", true],
    [{ url: "пример.рф/чат$" }, "a.test", "ws://xn--e1afmkfd.xn--p1ai/%D1%87%d0%b0%D1%82", true],
    [{ url: "/чат$" }, "a.test", "ws://a.test/chat", false],
  ];
  for (const [match, host, url, expected] of table) {
    const rule = only({ ...(match && { match }), action: { type: "drop" } });
    assert.equal(rule.concerns({ host, url }), expected, `${JSON.stringify(match)} ${url}`);
  }
});

test("a rule matches messages by direction, type and text", () => {
  const table: readonly [NewWsRule["match"], TappedMessage, boolean][] = [
    [{}, message(2, "x"), true],
    [{ direction: "receive" }, message(1, "x"), false],
    [{ message_type: "ping" }, message(9, ""), true],
    [{ message_type: "ping" }, message(10, ""), false],
    [{ message_type: "close" }, message(8, ""), true],
    [{ text: "^h.llo" }, message(1, "hello"), true],
    [{ text: "^h.llo" }, message(1, "oh hello"), false],
    [{ text: "hello" }, message(2, "hello"), false],
  ];
  for (const [match, subject, expected] of table) {
    const rule = only({ ...(match && { match }), action: { type: "drop" } });
    const text = subject.opcode === 1 ? subject.payload.toString() : undefined;
    assert.equal(rule.matches(subject, text), expected, JSON.stringify(match));
  }
});

test("a replacement substitutes matches, with groups; without a pattern the whole text", () => {
  const table: readonly [NewWsRule, string, string | undefined][] = [
    [
      { action: { type: "replace", find: "(\\d+) apples", replacement: "$1 pears" } },
      "3 apples, 4 apples",
      "3 pears, 4 pears",
    ],
    [{ match: { text: "a" }, action: { type: "replace", replacement: "b" } }, "banana", "bbnbnb"],
    [{ match: { text: "a" }, action: { type: "replace", find: "n", replacement: "" } }, "banana", "baaa"],
    [{ action: { type: "replace", replacement: "$1 as it is" } }, "anything", "$1 as it is"],
    [{ action: { type: "replace", find: "x", replacement: "y" } }, "banana", undefined],
  ];
  for (const [body, text, expected] of table) {
    const { action } = only(body);
    assert.equal(action.kind === "replace" ? action.replace(text) : action.kind, expected);
  }
});

test("disabled rules are not compiled", () => {
  assert.deepEqual(compileWsRules([newWsRule("id", { enabled: false, action: { type: "drop" } }, 0)]), []);
});
