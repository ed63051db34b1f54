import assert from "node:assert/strict";
import { test } from "node:test";
import { StringStates } from "./string-states.ts";

const statesOf = (text: string, piece = text.length) => {
  const bytes = new TextEncoder().encode(text);
  const states = new StringStates();
  for (let at = 0; at < bytes.length; at += piece) states.push(bytes.subarray(at, at + piece));
  return { bytes, states };
};

test("each byte knows whether it continues a string", () => {
  const text = String.raw`{"a\"b":1}`;
  const { bytes, states } = statesOf(text, 3);
  const inside = Array.from(text)
    .map((_, offset) => (states.insideAt(bytes, offset) ? "x" : "."))
    .join("");
  assert.equal(inside, "..xxxxx...");
});

test("a string of megabytes is known far from its beginning", () => {
  const { bytes, states } = statesOf(`["${"y".repeat(1_000_000)}",1]`, 70_001);
  assert.equal(states.insideAt(bytes, 900_000), true);
  assert.equal(states.insideAt(bytes, 1_000_005), false);
});

test("a line break ends a string, so that one bad line does not colour the rest", () => {
  const { bytes, states } = statesOf('"open\nnext');
  assert.equal(states.insideAt(bytes, 4), true);
  assert.equal(states.insideAt(bytes, 7), false);
});
