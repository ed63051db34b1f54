import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import { createHitCounter } from "./hit-counter.ts";

function setUp() {
  const stored = new Map<string, number>();
  const clock = new FakeClock();
  const failures: unknown[] = [];
  const state = { batches: 0, isBroken: false };
  const hits = createHitCounter({
    addHits: (batch) => {
      if (state.isBroken) throw new Error("disk full");
      state.batches += 1;
      for (const [id, count] of batch) stored.set(id, (stored.get(id) ?? 0) + count);
    },
    every: (intervalMs, callback) => clock.every(intervalMs, callback),
    onFailure: (error) => failures.push(error),
  });
  return { stored, clock, failures, state, hits };
}

test("hits are written in batches, and the rest at the end", async () => {
  const { stored, clock, state, hits } = setUp();
  const controller = new AbortController();
  hits.start(controller.signal);
  for (let count = 0; count < 1000; count += 1) hits.hit(count % 4 === 0 ? "b" : "a");
  assert.deepEqual([stored.size, hits.pending("a")], [0, 750]);
  await clock.advance(20_000);
  assert.deepEqual(
    [...stored],
    [
      ["b", 250],
      ["a", 750],
    ],
  );
  assert.deepEqual([state.batches, hits.pending("a")], [1, 0]);
  hits.hit("a");
  controller.abort();
  assert.equal(stored.get("a"), 751);
});

test("counts survive failed writes, and counts of deleted rules are dropped", async () => {
  const { stored, clock, state, failures, hits } = setUp();
  hits.start(new AbortController().signal);
  state.isBroken = true;
  hits.hit("a");
  hits.hit("b");
  await clock.advance(2000);
  hits.hit("a");
  hits.forget("b");
  assert.equal(failures.length, 1);
  assert.equal(hits.pending("a"), 2);
  state.isBroken = false;
  await clock.advance(2000);
  assert.deepEqual([...stored], [["a", 2]]);
  hits.hit("a");
  hits.forgetAll();
  assert.equal(hits.pending("a"), 0);
});
