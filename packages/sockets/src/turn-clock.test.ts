import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { turnMs } from "./turn-clock.ts";
import { scheduleFlush } from "./scheduled-flush.ts";

test("the clock of turns stands still within one, however long it takes, and is right at the beginning of the next", async () => {
  await turn();
  const before = performance.now();
  const first = turnMs();
  assert.ok(first >= before && first <= performance.now());
  while (performance.now() < first + 5);
  assert.equal(turnMs(), first);
  await Promise.resolve();
  assert.equal(turnMs(), first);
  await turn();
  const next = performance.now();
  assert.ok(turnMs() >= next, "a moment that is over");
});

test("the clock of turns is right however many wait for the end of the turn when it is asked", async () => {
  for (let others = 0; others < 40; others += 1) {
    await turn();
    for (let at = 0; at < others; at += 1) scheduleFlush({ isWaiting: false, flush: () => undefined });
    const before = performance.now();
    const first = turnMs();
    assert.ok(first >= before && first <= performance.now(), `${first} with ${others} others`);
    await turn();
    const next = performance.now();
    assert.ok(turnMs() >= next, `a moment that is over, with ${others} others`);
  }
});
