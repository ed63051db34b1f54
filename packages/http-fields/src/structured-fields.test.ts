import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseDictionary, type StructuredValue } from "./structured-fields.ts";

const plain = ({ type, value }: StructuredValue): unknown => (type === "inner-list" ? value.map(plain) : value);

for (const [lines, expected] of [
  [[""], {}],
  [["  "], {}],
  [["a"], { a: true }],
  [["a=?0, b=?1 "], { a: false, b: true }],
  [["max-age=60;x=1;y,\tno-store"], { "max-age": 60, "no-store": true }],
  [["a=1", "b=-2, a=3"], { b: -2, a: 3 }],
  [["a=1.5"], { a: 1.5 }],
  [["a=999999999999999"], { a: 999_999_999_999_999 }],
  [['a="x\\"y\\\\ ,"'], { a: 'x"y\\ ,' }],
  [["a=text/html;q=0.5, *b=*"], { a: "text/html", "*b": "*" }],
  [["a=:aGk=:, d=@1700000000"], { a: "aGk=", d: 1_700_000_000 }],
  [['a=%"f%c3%bc%c3%bc"'], { a: "füü" }],
  [['a=(1 "b";x  c );y=2, e=()'], { a: [1, "b", "c"], e: [] }],
] as const) {
  test(`Structured Fields, dictionary (RFC 9651, 4.2.2): ${JSON.stringify(lines)}`, () => {
    const members = parseDictionary(lines);
    assert.ok(members);
    assert.deepEqual(Object.fromEntries(Array.from(members, ([key, value]) => [key, plain(value)])), expected);
  });
}

for (const text of [
  ",",
  "a,",
  "a,,b",
  "A=1",
  "a b",
  "a=",
  "a =1",
  "a= 1",
  "a=1;",
  "a=1;X",
  "a=1.",
  "a=1.1234",
  "a=1.5.2",
  "a=1234567890123456",
  "a=1234567890123.5",
  'a="open',
  'a="\\x"',
  'a="é"',
  "a=?2",
  "a=:*:",
  "a=(1 2",
  'a=("x""y")',
  "a=@1.5",
  'a=%"%ff"',
  'a=%"%C3"',
  "max-age=60, &&&&&",
]) {
  test(`Structured Fields, malformed: ${text}`, () => assert.equal(parseDictionary([text]), undefined));
}

test("Structured Fields: any text is read or malformed", () => {
  const piece = fc.constantFrom(
    "a",
    "=",
    ";",
    ",",
    " ",
    '"',
    "\\",
    "(",
    ")",
    "1",
    ".",
    "?",
    ":",
    "@",
    "%",
    "%c3",
    "\t",
    "é",
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(piece).map((pieces) => pieces.join("")),
      ),
      (text) => {
        parseDictionary([text]);
      },
    ),
    { numRuns: 2000 },
  );
});
