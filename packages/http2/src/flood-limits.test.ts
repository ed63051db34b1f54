import assert from "node:assert/strict";
import { test } from "node:test";
import { ResetAllowance } from "./flood-limits.ts";

test("500 streams may be ended at once and 100 more in each second, however long nothing was ended before", () => {
  const allowance = new ResetAllowance();
  const nowMs = performance.now();
  const taken = (count: number, atMs: number): number =>
    Array.from({ length: count }, () => allowance.take(atMs)).filter(Boolean).length;
  assert.equal(taken(500, nowMs + 3_600_000), 500);
  assert.equal(taken(1, nowMs + 3_600_000), 0);
  assert.equal(taken(300, nowMs + 3_602_015), 200);
});
