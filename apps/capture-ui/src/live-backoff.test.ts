import assert from "node:assert/strict";
import { test } from "node:test";
import { backoffMs } from "./live.ts";

test("delays double up to fifteen seconds", () => {
  const longest = [1, 2, 3, 4, 5, 6, 7, 1000].map((attempt) => backoffMs(attempt, 1));
  assert.deepEqual(longest, [500, 1000, 2000, 4000, 8000, 15_000, 15_000, 15_000]);
});

test("while the page is visible, delays are at most two seconds", () => {
  const longest = [1, 2, 3, 4, 1000].map((attempt) => backoffMs(attempt, 1, true));
  assert.deepEqual(longest, [500, 1000, 2000, 2000, 2000]);
});

test("jitter shortens a delay by at most a quarter", () => {
  assert.equal(backoffMs(4, 0), 3000);
  assert.ok(backoffMs(4, 0.5) > 3000 && backoffMs(4, 0.5) < 4000);
});
