import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { asLiteral, literalPattern } from "./literal-pattern.ts";

test("text becomes a pattern that stands for it, and is read back", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.constantFrom("is", "begins", "contains"), (text, comparison) => {
      const pattern = literalPattern(comparison, text);
      assert.deepEqual(asLiteral(pattern), { comparison, text });
      assert.ok(new RegExp(pattern, "u").test(text));
    }),
  );
});

test("a real pattern is none that stands for text", () => {
  for (const pattern of ["a.*b", "^/v\\d+$", "(a|b)", "*.example.com", "^$", "^", "a$", "[x]", "tail\\"]) {
    assert.equal(asLiteral(pattern), null, pattern);
  }
});

test("what looks like an end after a backslash is text", () => {
  assert.deepEqual(asLiteral("^price\\$"), { comparison: "begins", text: "price$" });
  assert.deepEqual(asLiteral("^a\\\\$"), { comparison: "is", text: "a\\" });
});
