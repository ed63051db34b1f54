import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MAX_MATCHES, searchBytes } from "./text-search.ts";

const encoder = new TextEncoder();
const find = (text: string, needle: string, options: { regex?: boolean; matchCase?: boolean } = {}) => {
  const bytes = encoder.encode(text);
  const { matches, more } = searchBytes(bytes, { text: needle, regex: false, matchCase: false, ...options });
  return { found: matches.map(({ start, end }) => Buffer.from(bytes.subarray(start, end)).toString()), matches, more };
};

test("search ignores case unless case sensitivity is requested", () => {
  assert.deepEqual(find("Order order ORDER", "order").found, ["Order", "order", "ORDER"]);
  assert.deepEqual(find("Order order", "order", { matchCase: true }).found, ["order"]);
});

test("pattern characters are literal unless a pattern is requested", () => {
  assert.deepEqual(find("a.b axb $x [y] a-b/c", "a.b").found, ["a.b"]);
  assert.deepEqual(find("a.b axb", "a.b", { regex: true }).found, ["a.b", "axb"]);
  for (const odd of ["(", "[", "\\", "a-b", "/", "{1", "|", "^", "$"]) assert.doesNotThrow(() => find("x", odd), odd);
});

test("an invalid pattern is rejected with a reason", () => {
  assert.throws(() => find("x", "(", { regex: true }), SyntaxError);
});

test("empty matches are ignored", () => {
  assert.deepEqual(find("bab", "a*", { regex: true }).found, ["a"]);
  assert.deepEqual(find("bab", "").found, []);
});

test("offsets of matches are in bytes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (before) => {
      const { matches } = find(`${before}<needle>`, "<needle>");
      assert.equal(matches.at(-1)?.start, encoder.encode(before).length);
    }),
  );
});

test("each match in a long line is found once, also at window edges", () => {
  const text = "x".repeat(1_048_573) + "needle" + "y".repeat(1_500_000) + "needle";
  assert.deepEqual(find(text, "needle").found, ["needle", "needle"]);
  const every = `${"é".repeat(99)}needle`.repeat(12_000);
  assert.equal(find(every, "needle").matches.length, MAX_MATCHES);
  assert.equal(find(every, "needle").more, true);
});
