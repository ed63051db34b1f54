import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";
import { test } from "node:test";
import fc from "fast-check";
import { isSameJson, isShallowJson } from "./json-equality.ts";

test("JSON values are the same as the platform says, in any order of members", () => {
  const value = fc.jsonValue({ maxDepth: 3 }).map((made): unknown => JSON.parse(JSON.stringify(made)));
  fc.assert(
    fc.property(value, value, (left, right) => {
      assert.equal(isSameJson(left, right), isDeepStrictEqual(left, right));
      assert.ok(isSameJson(left, JSON.parse(JSON.stringify(left))));
    }),
  );
  assert.ok(isSameJson({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }));
  assert.ok(!isSameJson([], {}));
  assert.ok(!isSameJson(JSON.parse('{"__proto__":1}'), {}));
  assert.ok(!isSameJson({ toString: 1 }, { valueOf: 1 }));
});

test("values that nest without end neither end the stack nor equal anything", () => {
  let left: unknown = 1;
  let right: unknown = 1;
  for (let depth = 0; depth < 100_000; depth += 1) {
    left = [left];
    right = [right];
  }
  assert.equal(isSameJson(left, right), false);
  assert.equal(isShallowJson(left), false);
  assert.equal(isShallowJson([[{ a: [1] }]]), true);
});
