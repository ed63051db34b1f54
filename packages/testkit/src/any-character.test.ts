import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";

test("any character is one of Unicode, of any length in UTF-8, and never half of a pair", () => {
  const lengths = new Set<number>();
  fc.assert(
    fc.property(anyCharacter, (character) => {
      assert.ok(character.isWellFormed());
      assert.equal(String.fromCodePoint(character.codePointAt(0) ?? 0), character);
      lengths.add(Buffer.byteLength(character));
    }),
    { numRuns: 1000, seed: 1 },
  );
  assert.deepEqual(lengths, new Set([1, 2, 3, 4]));
});

test("texts of any characters have names of every object among them, and are made smaller where they fail", () => {
  const failed = fc.check(
    fc.property(fc.string({ unit: anyCharacter }), (text) => !text.includes("__proto__")),
    { numRuns: 10_000, seed: 1 },
  );
  assert.deepEqual(failed.counterexample, ["__proto__"]);
});
