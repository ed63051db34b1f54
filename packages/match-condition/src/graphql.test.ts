import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { operationType } from "./graphql.ts";

test("the kind of the operation is found behind what may stand in front of it", () => {
  const cases: readonly (readonly [document: string, name: string | undefined, expected: string | undefined])[] = [
    ["{ a }", undefined, "query"],
    ["query { a }", undefined, "query"],
    ['\ufeff ,\n mutation M($a: [Int!] = [1]) @d(x: "}") { a }', undefined, "mutation"],
    ["# query\nsubscription { a }", undefined, "subscription"],
    ['fragment F on T { a(b: "{") } mutation { ...F }', undefined, "mutation"],
    ['fragment F on T { a(b: """}} \\""" query """) } subscription S { ...F }', undefined, "subscription"],
    ["query A { a } mutation B { b }", "B", "mutation"],
    ["query A { a } mutation B { b }", "A", "query"],
    ["query A { a } mutation B { b }", undefined, "query"],
    ["mutation A { a } query B { b }", "C", "mutation"],
    ["query A { mutation }", "mutation", "query"],
    ['query($q: String = "mutation { a }") { a }', undefined, "query"],
    ["", undefined, undefined],
    ["mutation", undefined, undefined],
    ["type T { a: Int }", undefined, undefined],
    ["}}} mutation { a }", undefined, "mutation"],
    ["constructor { a }", undefined, undefined],
  ];
  for (const [document, name, expected] of cases) assert.equal(operationType(document, name), expected, document);
});

test("any text is read to its end, in linear time", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('"', '"""', "\\", "{", "}", "#", "\n", "query", " ", "é"), { maxLength: 40 }),
      (pieces) => {
        operationType(pieces.join(""), undefined);
      },
    ),
  );
  for (const piece of ['"', '""', '"""', '\\"""', "\\", "#", "{", "a ", "a#\n"]) {
    assert.doesNotThrow(() => operationType(piece.repeat(200_000), "x"), piece);
  }
});
