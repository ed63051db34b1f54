import assert from "node:assert/strict";
import { test } from "node:test";
import { TextLayer } from "./text-layer.ts";
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
