import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  compareNumbers,
  isSameJson,
  isShallowJson,
  numberKey,
  type Numeric,
  parseNumber,
  readJson,
  writeJson,
  WrittenNumber,
} from "./index.ts";

test("numbers are written as they were read", () => {
  const numbers = [
    "17478252242305210114 -17478252242305210114 9007199254740993 12345678901234567890.5 1.0 1.10 1e400 -1E+400 1e2 1E5 0e1",
    "-0 -0.0 0.0000001 0.1000000000000000055511151231257827 5e-324 1234567890.12345678 0 -1 0.1 1.5 123456789012345",
    "0.30000000000000004 1e21",
  ].flatMap((line) => line.split(" "));
  for (const number of numbers) {
    for (const text of [
      number,
      `[${number}]`,
      `{"a":${number}}`,
      `[1,${number},2]`,
      `{"a":{"b":[${number},"x"]},"c":0}`,
    ]) {
      assert.equal(JSON.stringify(readJson(text)), text);
    }
    assert.equal(JSON.stringify(readJson(`[ ${number}\n]`)), `[${number}]`, number);
  }
});

test("a number keeps its text only where a double would change it", () => {
  assert.deepEqual(readJson('[1, 0.5, "1.0", 1.0]'), [1, 0.5, "1.0", new WrittenNumber("1.0")]);
  const number = new WrittenNumber("1.10");
  assert.equal(`${String(number)} ${Number(number)}`, "1.10 1.1");
});

test("the last of several members with one name counts, whatever the name", () => {
  const value = readJson('{"a":1.0,"a":2.0,"__proto__":3.0,"toString":4.0}');
  assert.equal(JSON.stringify(value), '{"a":2.0,"__proto__":3.0,"toString":4.0}');
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
});

test("a byte order mark before the value is skipped, one only", () => {
  assert.deepEqual(readJson('\ufeff{"a":1}'), { a: 1 });
  assert.equal(JSON.stringify(readJson("\ufeff1.0")), "1.0");
  assert.throws(() => readJson("\ufeff\ufeff{}"), SyntaxError);
});

test("depth is bounded by memory, not by the stack", () => {
  const deep = `${"[".repeat(300_000)}1.0${"]".repeat(300_000)}`;
  let value: unknown = readJson(deep);
  while (Array.isArray(value)) [value] = value as unknown[];
  assert.equal(String(value), "1.0");
});

test("text that is not JSON is refused as JSON.parse refuses it", () => {
  const texts = [
    '1.0. [1.0 [1.0,] [1.0_2] {"a"_1.0} {"a":1.0,} {1.0:1} [01.0] [1.] [.50] [-] [+1.0] ["\\x",1.0] ["a,1.0] ["\\u12",1.0]',
    '[1.0]] [1.0]x [1.0,tru] - [1.0} {"a":1.0] {,1.0} ["\n",1.0]',
  ].flatMap((line) => line.split(" ").map((text) => text.replace("_", " ")));
  for (const text of texts) {
    assert.throws(() => readJson(text), SyntaxError, text);
  }
});

const character = fc.constantFrom(
  ...Array.from('{}[],:"\\ \n01.e-+9'),
  "true",
  "null",
  '"a":',
  "1.0",
  "\\u00e9",
  "é",
  "-0",
);

test("any text is read as JSON.parse reads it, but for what a double loses", () => {
  fc.assert(
    fc.property(fc.array(character, { maxLength: 12 }), (pieces) => {
      const text = pieces.join("");
      let expected: unknown;
      try {
        expected = JSON.parse(text);
      } catch {
        assert.throws(() => readJson(text), SyntaxError);
        return;
      }
      assert.deepEqual(JSON.parse(JSON.stringify(readJson(text))), expected);
    }),
    { numRuns: 2000 },
  );
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), fc.constantFrom("1.0", "12345678901234567890", "-0"), (json, number) => {
      const text = `[${number}, ${json}]`;
      assert.equal(JSON.stringify(readJson(text)), `[${number},${JSON.stringify(JSON.parse(json))}]`);
    }),
  );
});

test("a text is written with the indent and the last line of the text it was read from", () => {
  assert.equal(writeJson(readJson('{"a":1.10}'), '{\n  "a":1.10\n}\n'), '{\n  "a": 1.10\n}\n');
  assert.equal(writeJson([2n ** 64n], "[1]"), "[18446744073709551616]");
});

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
