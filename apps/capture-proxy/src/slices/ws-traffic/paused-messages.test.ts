import assert from "node:assert/strict";
import { test } from "node:test";
import type { MessageVerdict } from "#exchange/messages.ts";
import { PausedMessages } from "./ws-traffic.interceptor.ts";

const RULE = { id: "rule", name: "Look" };
const message = (text: string) => ({ direction: "send", opcode: 1, payload: Buffer.from(text) }) as const;
const connection = (id: string) => ({ id, url: `ws://host/${id}` });

test("at most 100 messages are paused; beyond that the oldest continues unmodified", async () => {
  let changes = 0;
  const paused = new PausedMessages(() => (changes += 1));
  const verdicts: MessageVerdict[] = [];
  const first = paused.add(connection("a"), RULE, message("0"), 0).then((verdict) => verdicts.push(verdict));
  for (let index = 1; index <= 100; index += 1) void paused.add(connection("b"), RULE, message(String(index)), index);
  await first;
  assert.deepEqual(verdicts, [{ kind: "pass" }]);
  assert.equal(paused.size, 100);
  assert.equal(paused.list()[0]?.payload.text, "1");
  assert.equal(changes, 102);
});

test("a message is decided once, and closing the connection drops its paused messages", async () => {
  const paused = new PausedMessages(() => undefined);
  const waiting = paused.add(connection("a"), RULE, message("x"), 0);
  const other = paused.add(connection("b"), RULE, message("y"), 0);
  const id = paused.list()[0]?.id ?? "";
  assert.equal(paused.opcodeOf(id), 1);
  assert.equal(paused.resume(id, { kind: "replace", payload: Buffer.from("z") }), true);
  assert.equal(paused.resume(id, { kind: "drop" }), false);
  assert.deepEqual(await waiting, { kind: "replace", payload: Buffer.from("z") });
  paused.forget("b");
  assert.deepEqual(await other, { kind: "drop" });
  assert.equal(paused.size, 0);
});
