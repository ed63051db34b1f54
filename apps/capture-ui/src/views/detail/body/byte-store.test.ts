import assert from "node:assert/strict";
import { test } from "node:test";
import { ByteStore, NumberList } from "./byte-store.ts";

test("bytes are read in the order in which they were appended, also after growth", () => {
  const store = new ByteStore(1_000_000);
  const chunk = Uint8Array.from({ length: 50_000 }, (_, index) => index % 251);
  store.append(chunk);
  store.append(chunk);
  store.append(chunk);
  assert.equal(store.length, 150_000);
  assert.deepEqual([...store.view(50_000, 50_010)], [...chunk.subarray(0, 10)]);
  assert.equal(store.full, false);
});

test("a store at its limit keeps the beginning and reports dropped bytes", () => {
  const store = new ByteStore(4);
  store.append(Uint8Array.of(1, 2, 3));
  store.append(Uint8Array.of(4, 5, 6));
  assert.deepEqual([...store.view()], [1, 2, 3, 4]);
  assert.equal(store.full, true);
  store.append(new Uint8Array(0));
  assert.equal(store.length, 4);
});

test("a view is limited to the stored bytes", () => {
  const store = new ByteStore(10);
  store.append(Uint8Array.of(1, 2));
  assert.deepEqual([...store.view(1, 99)], [2]);
  assert.deepEqual([...store.view(5, 9)], []);
});

test("the floor of a value is found at, between and outside the numbers", () => {
  const list = new NumberList();
  for (let index = 0; index < 3000; index++) list.push(index * 10);
  for (const [value, expected] of [
    [0, 0],
    [9, 0],
    [10, 1],
    [29_990, 2999],
    [99_999, 2999],
  ] as const) {
    assert.equal(list.floorIndex(value), expected, `floor of ${value}`);
  }
  assert.equal(new NumberList().floorIndex(3), -1);
});
