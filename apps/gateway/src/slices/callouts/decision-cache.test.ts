import assert from "node:assert/strict";
import { test } from "node:test";
import { DecisionCache } from "./callouts.compile.ts";

test("a decision is remembered up to its time, not at it", () => {
  const cache = new DecisionCache(100);
  cache.set("a", true, 1000);
  cache.set("b", false, 1000);
  assert.deepEqual([cache.get("a", 1099), cache.get("b", 1099)], [true, false]);
  assert.deepEqual([cache.get("a", 1100), cache.get("b", 1101)], [undefined, undefined]);
  assert.equal(cache.size, 0, "what is over is let go");
});

test("being used does not make a decision last longer; a new decision does", () => {
  const cache = new DecisionCache(100);
  cache.set("a", true, 0);
  assert.equal(cache.get("a", 99), true);
  assert.equal(cache.get("a", 150), undefined);
  cache.set("a", true, 0);
  cache.set("a", false, 90);
  assert.equal(cache.get("a", 150), false);
});

test("the longest unused decision gives way when the cache is full", () => {
  const cache = new DecisionCache(100, 2);
  cache.set("a", true, 0);
  cache.set("b", true, 0);
  cache.get("a", 1);
  cache.set("c", true, 2);
  assert.deepEqual([cache.get("a", 3), cache.get("b", 3), cache.get("c", 3)], [true, undefined, true]);
  assert.equal(cache.size, 2);
});

test("a time of 0 remembers nothing", () => {
  const cache = new DecisionCache(0);
  cache.set("a", true, 0);
  assert.equal(cache.get("a", 0), undefined);
});
