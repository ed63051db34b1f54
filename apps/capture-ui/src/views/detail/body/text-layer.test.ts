import assert from "node:assert/strict";
import { test } from "node:test";
import { StringStates, TextLayer } from "./text-layer.ts";
import { searchBytes } from "./text-search.ts";

const encoder = new TextEncoder();

test("rows of a growing text are there as soon as it arrived", () => {
  const layer = new TextLayer(1000, false);
  layer.append(encoder.encode("one\ntw"));
  assert.equal(layer.rows, 2);
  layer.append(encoder.encode("o\nthree"));
  assert.deepEqual(
    layer.window(1, 9).map(({ text, line }) => [text, line]),
    [
      ["two", 2],
      ["three", 3],
    ],
  );
});

test("wrapping cuts long lines, and a row that begins inside a JSON string says so", () => {
  const layer = new TextLayer(1000, true);
  layer.append(encoder.encode('["abcdefghijklmnop"]'));
  layer.wrapAt(10);
  assert.deepEqual(
    layer.window(0, 9).map(({ text, inString }) => [text, inString]),
    [
      ['["abcdefgh', false],
      ['ijklmnop"]', true],
    ],
  );
  layer.wrapAt(null);
  assert.equal(layer.rows, 1);
});

test("matches are placed in rows and columns of characters", () => {
  const layer = new TextLayer(1000, false);
  layer.append(encoder.encode("é needle\nsecond needle"));
  const matches = layer.locate(searchBytes(layer.bytes, { text: "needle", regex: false, matchCase: true }));
  assert.deepEqual(matches, [
    { row: 0, startColumn: 2, endColumn: 8 },
    { row: 1, startColumn: 7, endColumn: 13 },
  ]);
});

test("a text over its limit is cut and says so; a whole string is given only while it is small", () => {
  const layer = new TextLayer(8, false);
  layer.append(encoder.encode("123456789"));
  assert.equal(layer.cut, true);
  assert.equal(layer.text(8), "12345678");
  assert.equal(layer.text(7), null);
});

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
