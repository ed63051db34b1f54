import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { foldVary, formatLink } from "./index.ts";

const CASES: readonly (readonly [string, string[], string, string[]])[] = [
  ["no Vary yet: one is added", ["A", "1"], "Accept", ["A", "1", "Vary", "Accept"]],
  [
    "a member is added to the line that is there",
    ["Vary", "Origin", "A", "1"],
    "Accept",
    ["Vary", "Origin, Accept", "A", "1"],
  ],
  [
    "several lines become one where the first stood",
    ["A", "1", "Vary", "Origin", "B", "2", "vary", "Accept-Encoding"],
    "Accept",
    ["A", "1", "Vary", "Origin, Accept-Encoding, Accept", "B", "2"],
  ],
  ["what is named already is not named twice, in any letter case", ["Vary", "accept"], "Accept", ["Vary", "accept"]],
  [
    "repeated members are named once",
    ["Vary", "Origin", "Vary", "origin,Origin"],
    "Accept",
    ["Vary", "Origin, Accept"],
  ],
  [
    "another name that contains it is another name",
    ["Vary", "Accept-Encoding"],
    "Accept",
    ["Vary", "Accept-Encoding, Accept"],
  ],
  ["empty members are left out", ["Vary", " , Origin,, "], "Accept", ["Vary", "Origin, Accept"]],
  ["an empty line is filled", ["Vary", ""], "Accept", ["Vary", "Accept"]],
  ["an asterisk says everything", ["Vary", "Origin", "Vary", "*"], "Accept", ["Vary", "*"]],
];
for (const [name, fields, added, expected] of CASES) {
  test(`Vary: ${name}`, () => {
    foldVary(fields, added);
    assert.deepEqual(fields, expected);
  });
}

test("Vary: names added in any order appear once each, in one line", () => {
  const names = fc.constantFrom("Accept", "ORIGIN", "Accept-Encoding", "x", "");
  const lines = fc.array(
    fc.tuple(
      fc.constantFrom("Vary", "vary", "Other"),
      fc.array(names).map((list) => list.join(",")),
    ),
  );
  fc.assert(
    fc.property(lines, fc.array(fc.constantFrom("accept", "Origin", "x"), { minLength: 1 }), (pairs, added) => {
      const fields = pairs.flat();
      const wanted = new Set(
        pairs
          .filter(([name]) => name !== "Other")
          .flatMap(([, value]) => value.toLowerCase().split(","))
          .filter((name) => name !== ""),
      );
      for (const name of added) {
        foldVary(fields, name);
        wanted.add(name.toLowerCase());
      }
      const values = fields.filter((_, at) => at % 2 === 1 && fields[at - 1]?.toLowerCase() === "vary");
      assert.equal(values.length, 1);
      assert.deepEqual((values[0] ?? "").toLowerCase().split(", ").toSorted(), [...wanted].toSorted());
      assert.equal(
        fields.filter((name, at) => at % 2 === 0 && name === "Other").length,
        pairs.filter(([name]) => name === "Other").length,
      );
    }),
  );
});

test("a Link names its relation in quotes", () => {
  assert.equal(formatLink("https://a.test/b?c=d", "deprecation"), '<https://a.test/b?c=d>; rel="deprecation"');
});
