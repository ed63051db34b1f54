import assert from "node:assert/strict";
import { test } from "node:test";
import { BufferBudget } from "./buffer-budget.ts";

test("a budget gives what it has, and nothing of a wish that is larger", () => {
  const budget = new BufferBudget(100);
  assert.equal(budget.take(60), true);
  assert.equal(budget.take(41), false);
  assert.equal(budget.usedBytes, 60);
  assert.equal(budget.take(40), true);
  budget.giveBack(60);
  assert.equal(budget.usedBytes, 40);
});

test("a smaller bound leaves what waits alone and takes nothing more until there is room", () => {
  const budget = new BufferBudget(100);
  assert.equal(budget.take(80), true);
  budget.adopt(50);
  assert.equal(budget.take(1), false);
  budget.giveBack(80);
  assert.equal(budget.take(50), true);
});
