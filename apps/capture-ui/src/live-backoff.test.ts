import assert from "node:assert/strict";
import { test } from "node:test";
import { backoffMs } from "./live.ts";

test("waits double up to fifteen seconds and never exceed it", () => {
  const longest = [1, 2, 3, 4, 5, 6, 7, 1000].map((attempt) => backoffMs(attempt, 1));
  assert.deepEqual(longest, [500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
});

test("while the page is visible, no wait is longer than two seconds", () => {
  const longest = [1, 2, 3, 4, 1000].map((attempt) => backoffMs(attempt, 1, true));
  assert.deepEqual(longest, [500, 1000, 2000, 2000, 2000]);
});

test("chance takes off a quarter at most, so that windows spread", () => {
  assert.equal(backoffMs(4, 0), 3000);
  assert.ok(backoffMs(4, 0.5) > 3000 && backoffMs(4, 0.5) < 4000);
});
