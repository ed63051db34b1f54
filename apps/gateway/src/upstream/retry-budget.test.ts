import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RetryBudget } from "./upstream-registry.ts";

function rig(percent: number) {
  let nowMs = 5000;
  const budget = new RetryBudget(percent, () => nowMs);
  const spendAll = (): number => {
    let spent = 0;
    while (spent < 10_000 && budget.spend()) spent += 1;
    return spent;
  };
  const request = (count: number): void => {
    for (let at = 0; at < count; at++) budget.countRequest();
  };
  return { budget, spendAll, request, wait: (ms: number) => (nowMs += ms) };
}

test("retries: the budget is a percentage of the requests of the last ten seconds, and at least three", () => {
  for (const [percent, requests, retries] of [
    [10, 0, 3],
    [10, 30, 3],
    [10, 100, 10],
    [20, 100, 20],
    [100, 50, 50],
    [0.5, 1000, 5],
  ] as const) {
    const { spendAll, request } = rig(percent);
    request(requests);
    assert.equal(spendAll(), retries, `${percent} % of ${requests}`);
    assert.equal(spendAll(), 0);
  }
});

test("retries: spent retries and counted requests expire after ten seconds, even without traffic", () => {
  const { spendAll, request, wait } = rig(10);
  request(100);
  wait(5000);
  assert.equal(spendAll(), 10);
  wait(4999);
  request(100);
  assert.equal(spendAll(), 10, "two hundred requests, ten retries spent");
  wait(1);
  assert.equal(spendAll(), 0, "the first hundred left the window");
  wait(1_000_000);
  assert.equal(spendAll(), 3);
});

test("retries: another percentage applies at once", () => {
  const { budget, spendAll, request } = rig(10);
  request(100);
  assert.equal(spendAll(), 10);
  budget.adopt(50);
  assert.equal(spendAll(), 40);
});

test("retries in any order: never more than the share of any ten seconds, minimum included", () => {
  const step = fc.oneof(
    fc.constant("request" as const),
    fc.constant("spend" as const),
    fc.integer({ min: 1, max: 4000 }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300, size: "max" }), (steps) => {
      const { budget, wait } = rig(50);
      let nowMs = 5000;
      const requests: number[] = [];
      const retries: number[] = [];
      const recent = (times: readonly number[], ms: number): number => times.filter((time) => time > nowMs - ms).length;
      for (const each of steps) {
        if (each === "request") {
          budget.countRequest();
          requests.push(nowMs);
        } else if (each === "spend") {
          if (!budget.spend()) continue;
          retries.push(nowMs);
          // The window moves in steps of a second.
          assert.ok(recent(retries, 9000) <= Math.max(3, recent(requests, 10_000) * 0.5));
        } else {
          wait(each);
          nowMs += each;
        }
      }
    }),
  );
});
