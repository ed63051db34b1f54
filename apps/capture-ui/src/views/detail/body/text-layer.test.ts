import assert from "node:assert/strict";
import { test } from "node:test";
import { StringStates, TextLayer } from "./text-layer.ts";
import { searchBytes } from "./text-search.ts";

const encoder = new TextEncoder();

test("rows of a growing text are available immediately", () => {
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

test("wrapping splits long lines, and marks rows that begin inside a JSON string", () => {
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

test("matches are converted to rows and columns of characters", () => {
  const layer = new TextLayer(1000, false);
  layer.append(encoder.encode("é needle\nsecond needle"));
  const matches = layer.locate(searchBytes(layer.bytes, { text: "needle", regex: false, matchCase: true }));
  assert.deepEqual(matches, [
    { row: 0, startColumn: 2, endColumn: 8 },
    { row: 1, startColumn: 7, endColumn: 13 },
  ]);
});

test("a text above its limit is truncated and marked; only a small text is returned as one string", () => {
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

test("for each byte it is known whether it is inside a string", () => {
  const text = String.raw`{"a\"b":1}`;
  const { bytes, states } = statesOf(text, 3);
  const inside = Array.from(text)
    .map((_, offset) => (states.insideAt(bytes, offset) ? "x" : "."))
    .join("");
  assert.equal(inside, "..xxxxx...");
});

test("a string is recognized megabytes after its beginning", () => {
  const { bytes, states } = statesOf(`["${"y".repeat(1_000_000)}",1]`, 70_001);
  assert.equal(states.insideAt(bytes, 900_000), true);
  assert.equal(states.insideAt(bytes, 1_000_005), false);
});

test("a line break ends a string, so that an invalid line does not affect the rest", () => {
  const { bytes, states } = statesOf('"open\nnext');
  assert.equal(states.insideAt(bytes, 4), true);
  assert.equal(states.insideAt(bytes, 7), false);
});
