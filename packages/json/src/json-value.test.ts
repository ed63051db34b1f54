import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compareNumbers, isSameJson, isShallowJson, numberKey, parseNumber, readJson, type Numeric } from "./index.ts";

const number = (text: string): Numeric => {
  const value = parseNumber(text);
  assert.ok(value !== undefined, text);
  return value;
};

test("numbers compare by their exact value, however they are written", () => {
  const order = [
    ["-1e400"],
    ["-17478252242305210115"],
    ["-17478252242305210114", "-1.7478252242305210114e19"],
    ["-1", "-1.0", "-10e-1"],
    ["-1e-400"],
    ["0", "-0", "0.0", "0e999999999999999999999"],
    ["1e-400"],
    ["0.1", "1e-1", "0.10"],
    ["0.1000000000000000055511151231257827"],
    ["1", "1.0", "1e0", "10E-1"],
    ["9007199254740992", "9007199254740992.0"],
    ["9007199254740993"],
    ["1e400", "10e399"],
    ["1e1000000000000000000000"],
  ].map((same) => same.map(number));
  for (const [at, same] of order.entries()) {
    for (const one of same) {
      for (const [otherAt, others] of order.entries()) {
        for (const other of others) {
          const words = `${String(one)} and ${String(other)}`;
          assert.equal(Math.sign(compareNumbers(one, other)), Math.sign(at - otherAt), words);
          assert.equal(numberKey(one) === numberKey(other), at === otherAt, words);
          assert.equal(isSameJson([one], [other]), at === otherAt, words);
        }
      }
    }
  }
  assert.ok(isSameJson(10n ** 20n, number("1e20")));
});

test("long runs of zeros take time in proportion to their length", () => {
  const zeros = `1${"0".repeat(200_000)}1`;
  assert.ok(isSameJson(number(`${zeros}.0`), number(`${zeros}e0`)));
});

test("a value is itself, and no other when one leaf of it changes", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const text = JSON.stringify(value);
      assert.ok(isSameJson(readJson(text), JSON.parse(text)));
      assert.ok(!isSameJson({ a: value }, { a: [value] }));
    }),
  );
  assert.ok(isSameJson(readJson('{"a":1.0,"b":[{}]}'), readJson('{"b":[{}],"a":1}')));
  assert.ok(!isSameJson(readJson('{"a":1.0}'), readJson('{"a":"1.0"}')));
  assert.ok(!isSameJson(readJson('{"a":1.0}'), readJson('{"a":{"text":"1.0"}}')));
  assert.ok(!isSameJson([[[1]]], [[[1]]], 2));
});

test("only a JSON number is a number", () => {
  for (const text of ["", "01", "1.", ".5", "+1", "0x10", "NaN", "Infinity", " 1", "1 ", "1n"]) {
    assert.equal(parseNumber(text), undefined, text);
  }
});

test("measuring a deeply nested value does not overflow the stack", () => {
  let value: unknown = 1;
  for (let depth = 0; depth < 100_000; depth += 1) value = [value];
  assert.equal(isShallowJson(value, 64), false);
  assert.equal(isShallowJson([[{ a: [1] }]], 4), true);
  assert.equal(isShallowJson([[{ a: [1] }]], 3), false);
});
