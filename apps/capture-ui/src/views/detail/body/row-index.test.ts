import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RowIndex } from "./text-layer.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function rowsOf(text: string, width: number, pieces = 1) {
  const bytes = encoder.encode(text);
  const index = new RowIndex(width);
  const size = Math.max(1, Math.ceil(bytes.length / pieces));
  for (let at = 0; at < bytes.length; at += size) index.push(bytes.subarray(at, at + size));
  return index.ranges(0, index.length, bytes).map((row) => ({
    text: decoder.decode(bytes.subarray(row.start, row.end)),
    line: row.line,
    continued: row.continued,
  }));
}

test("each line is a numbered row, with any kind of line break", () => {
  assert.deepEqual(rowsOf("a\r\nb\n\nc", 80), [
    { text: "a", line: 1, continued: false },
    { text: "b", line: 2, continued: false },
    { text: "", line: 3, continued: false },
    { text: "c", line: 4, continued: false },
  ]);
});

test("a long line takes several rows with one line number", () => {
  assert.deepEqual(rowsOf("abcdefghijkl", 8), [
    { text: "abcdefgh", line: 1, continued: false },
    { text: "ijkl", line: 1, continued: true },
  ]);
});

test("a row never ends inside a character", () => {
  const rows = rowsOf("😀".repeat(50), 10, 7);
  assert.ok(rows.length > 10);
  for (const row of rows) assert.ok(!row.text.includes("\ufffd"), row.text);
  assert.equal(rows.map((row) => row.text).join(""), "😀".repeat(50));
});

test("bytes that are not text are split into rows of limited width", () => {
  const bytes = new Uint8Array(10_000).fill(0x80);
  const index = new RowIndex(100);
  index.push(bytes);
  for (const row of index.ranges(0, index.length, bytes)) assert.ok(row.end - row.start <= 104);
});

test("an empty text is one empty row", () => {
  assert.deepEqual(rowsOf("", 80), [{ text: "", line: 1, continued: false }]);
});

test("the rows of a text in any chunks join to the text", () => {
  fc.assert(
    fc.property(
      fc.string({ unit: "grapheme" }),
      fc.integer({ min: 8, max: 20 }),
      fc.integer({ min: 1, max: 9 }),
      (text, width, pieces) => {
        const rows = rowsOf(text, width, pieces);
        let joined = "";
        for (const [position, row] of rows.entries()) joined += (position > 0 && !row.continued ? "\n" : "") + row.text;
        assert.equal(
          joined,
          text.replace(/\r+\n/gu, (found) => "\r".repeat(found.length - 2) + "\n").replace(/\r$/u, ""),
        );
        assert.deepEqual(rows, rowsOf(text, width));
      },
    ),
  );
});

test("the row of a byte and the beginning of its line are found", () => {
  const bytes = encoder.encode(`first\n${"x".repeat(30)}\nlast`);
  const index = new RowIndex(10);
  index.push(bytes);
  const row = index.rowOf(30);
  assert.equal(index.ranges(row, row + 1, bytes)[0]?.line, 2);
  assert.equal(index.lineStart(row), 6);
});
