import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { PastGenerations } from "./past-generations.ts";
import { toYaml } from "./write-document.ts";

const facts = {
  contentHash: 1,
  routeCount: 0,
  publishedMs: 0,
  source: "admin",
  actor: undefined,
} as const;

void test("the last hundred are remembered, newest first", () => {
  const past = new PastGenerations();
  for (let generation = 1; generation <= 105; generation++) past.add({ ...facts, generation }, "{}");
  assert.equal(past.newestFirst.length, 100);
  assert.deepEqual([past.newestFirst[0]?.generation, past.newestFirst.at(-1)?.generation], [105, 6]);
});

void test("texts together stay below a bound, and the newest is always there", () => {
  const past = new PastGenerations(10);
  for (const [generation, text] of [
    [1, "12345"],
    [2, "12345"],
    [3, "123456"],
    [4, "12345678901234"],
  ] as const) {
    past.add({ ...facts, generation }, text);
    const numbers = past.newestFirst.map((entry) => entry.generation);
    assert.deepEqual(numbers, { 1: [1], 2: [2, 1], 3: [3], 4: [4] }[generation]);
  }
});

void test("a past generation is shown redacted, and printing an entry prints no secret", () => {
  const past = new PastGenerations();
  const text = "consumers: [{name: c, credentials: [{type: api_key, key: hunter2}]}]\nname: g";
  past.add({ ...facts, generation: 1 }, text);
  const [entry] = past.newestFirst;
  const shown = toYaml(entry?.redacted ?? {});
  assert.match(shown, /^gateway:\n {2}name: g\nconsumers:\n/);
  assert.match(shown, /key: "?\$\{redacted:sha256:[0-9a-f]{8}\}/);
  assert.ok(!shown.includes("hunter2"));
  assert.match(entry?.text ?? "", /hunter2/);
  assert.ok(!JSON.stringify(past.newestFirst).includes("hunter2"));
  assert.ok(!inspect(past, { depth: 9 }).includes("hunter2"));
});
