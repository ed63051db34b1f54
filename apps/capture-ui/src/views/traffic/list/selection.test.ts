import assert from "node:assert/strict";
import { test } from "node:test";
import {
  NOTHING_SELECTED,
  afterClosing,
  releaseHold,
  selectForMenu,
  selectOne,
  selectRange,
  toggleOne,
  withoutIds,
} from "./selection.ts";

test("a click selects one row, Ctrl toggles, Shift keeps the anchor", () => {
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

test("deleted rows are no longer selected", () => {
  const left = withoutIds(selectRange(selectOne("a"), "c", ["a", "b", "c"]), ["c", "a"]);
  assert.deepEqual([...left.ids], ["b"]);
  assert.equal(left.active, null);
  assert.equal(left.anchor, null);
});

test("selecting holds the rows until the selection is cleared, an entry is closed, or new rows are requested", () => {
  const one = toggleOne(NOTHING_SELECTED, "a");
  const two = toggleOne(one, "b");
  assert.deepEqual([NOTHING_SELECTED.isHolding, one.isHolding, two.isHolding], [false, true, true]);
  assert.equal(selectRange(NOTHING_SELECTED, "c", ["c"]).isHolding, true);
  assert.equal(toggleOne(one, "a").isHolding, false);
  assert.equal(withoutIds(two, ["a"]).isHolding, true);
  assert.equal(withoutIds(two, ["a", "b"]).isHolding, false);
  assert.equal(afterClosing(one).isHolding, false);
  assert.equal(afterClosing(two).isHolding, true);
  assert.deepEqual(releaseHold(two), { ...two, isHolding: false });
});

test("a menu selects its row without holding rows afterwards, and keeps a selection that contains it", () => {
  const one = selectOne("a");
  assert.equal(selectForMenu(one, "a"), one);
  assert.deepEqual(selectForMenu(one, "b"), releaseHold(selectOne("b")));
});
