import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { stretches } from "./highlight.ts";

test("the runs of any text join to the text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.nat(20), fc.nat(20), (text, start, length) => {
      const plain = stretches(text);
      assert.equal(plain.map((part) => part.text).join(""), text);
      const marked = stretches(text, { start, end: start + length });
      assert.equal(marked.map((part) => part.text).join(""), text);
    }),
  );
});

test("exactly the range of the error is marked", () => {
  const parts = stretches("host:a status:x dur:1s", { start: 7, end: 15 });
  const wrong = parts.filter((part) => part.wrong).map((part) => part.text);
  assert.equal(wrong.join(""), "status:x");
});
