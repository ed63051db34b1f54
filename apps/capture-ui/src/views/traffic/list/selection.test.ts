import assert from "node:assert/strict";
import { test } from "node:test";
import { NOTHING_SELECTED, selectOne, selectRange, toggleOne, withoutIds } from "./selection.ts";

test("a click chooses one, Ctrl adds and takes away, Shift keeps the anchor", () => {
  const one = selectOne("a");
  const two = toggleOne(one, "c");
  assert.deepEqual([...two.ids], ["a", "c"]);
  assert.deepEqual([...toggleOne(two, "a").ids], ["c"]);
  const range = selectRange(one, "d", ["a", "b", "c", "d"]);
  assert.equal(range.anchor, "a");
  assert.equal(range.active, "d");
  assert.deepEqual([...selectRange(range, "b", ["a", "b"]).ids], ["a", "b"]);
  assert.equal(selectRange(NOTHING_SELECTED, "x", ["x"]).anchor, "x");
});

test("what was deleted is no longer chosen", () => {
  const left = withoutIds(selectRange(selectOne("a"), "c", ["a", "b", "c"]), ["c", "a"]);
  assert.deepEqual([...left.ids], ["b"]);
  assert.equal(left.active, null);
  assert.equal(left.anchor, null);
});
