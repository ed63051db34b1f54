import assert from "node:assert/strict";
import { test } from "node:test";
import { sampleExchange } from "#storage/read/sample-exchange.ts";
import type { FrameRecord, StreamStore } from "#storage/streams/stream-store.ts";
import { type MessagesParts, WsTrafficInterceptor } from "./ws-traffic.interceptor.ts";
import { PausedMessages } from "./paused-messages.ts";
import { newWsRule } from "./ws-rule.ts";
import { type CompiledWsRule, compileWsRules } from "./ws-traffic.compile.ts";

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
  assert.equal(ruled.interceptor.control(hidden.id), undefined, "nobody can reach what nobody sees");
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
