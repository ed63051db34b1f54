import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LiteralSearch } from "./matcher.ts";

test("every literal that occurs is found once, also inside and across others", () => {
  const text = fc.stringMatching(/^[abc]{0,30}$/);
  const literal = fc.stringMatching(/^[abc]{1,4}$/);
  fc.assert(
    fc.property(fc.array(literal, { maxLength: 10 }), text, (literals, haystack) => {
      const found: number[] = [];
      const search = new LiteralSearch(literals.map((each, index) => [each, index] as const));
      search.search(haystack, (number) => found.push(number));
      const expected = [...literals.keys()].filter((index) => haystack.includes(literals[index] ?? ""));
      assert.deepEqual(
        found.toSorted((a, b) => a - b),
        expected,
      );
    }),
    { numRuns: 2000 },
  );
});
