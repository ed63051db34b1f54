import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { fakeRow } from "../../../../test/fake-rows.ts";
import { RowStore } from "./row-sequence.ts";

function filled(count: number): RowStore {
  const store = new RowStore(1000);
  for (let ordinal = count; ordinal > 0; ordinal -= 1) store.put(ordinal, fakeRow(ordinal));
  return store;
}

test("a row put at another ordinal leaves its old one", () => {
  const store = filled(3);
  store.put(10, fakeRow(2));
  assert.equal(store.get(2), undefined);
  assert.equal(store.ordinalOf("id-2"), 10);
  assert.equal(store.size, 3);
});

test("a row put at a used ordinal replaces the row there", () => {
  const store = filled(2);
  store.put(2, fakeRow(7));
  assert.equal(store.ordinalOf("id-2"), undefined);
  assert.equal(store.size, 2);
});

test("updates apply to known rows only", () => {
  const store = filled(2);
  assert.equal(store.update(fakeRow(2, { status_code: 500 })), true);
  assert.equal(store.get(2)?.status_code, 500);
  assert.equal(store.update(fakeRow(9)), false);
  assert.equal(store.size, 2);
});

test("rows below removed ones move up, rows above stay", () => {
  const store = filled(6);
  assert.deepEqual(store.remove(["id-5", "id-2", "unknown"]), [5, 2]);
  const left = [6, 5, 4, 3, 2, 1].map((ordinal) => store.get(ordinal)?.id);
  assert.deepEqual(left, ["id-6", "id-4", "id-3", "id-1", undefined, undefined]);
});

test("removing any rows keeps the order and both directions of the index", () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.integer({ min: 1, max: 40 }), { maxLength: 40 }), (gone) => {
      const store = filled(40);
      store.remove(gone.map((seq) => `id-${seq}`));
      const expected = Array.from({ length: 40 }, (_, index) => 40 - index).filter((seq) => !gone.includes(seq));
      assert.deepEqual(
        expected.map((_, index) => store.get(40 - index)?.seq),
        expected,
      );
      for (const [index, seq] of expected.entries()) assert.equal(store.ordinalOf(`id-${seq}`), 40 - index);
    }),
  );
});

test("rows above the capacity are dropped farthest from the current position", () => {
  const store = new RowStore(300);
  for (let ordinal = 1; ordinal <= 1000; ordinal += 1) store.put(ordinal, fakeRow(ordinal));
  store.trim(900);
  assert.ok(store.size <= 300);
  assert.equal(store.get(900)?.seq, 900);
  assert.equal(store.get(1), undefined);
  assert.equal(store.ordinalOf("id-1"), undefined);
});
