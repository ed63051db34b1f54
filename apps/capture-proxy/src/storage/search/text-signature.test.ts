import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { rowsOfNeedle, SIGNATURE_ROWS, SignatureColumns } from "./text-signature.ts";

/** Random characters fill columns as fast as possible. */
function noise(length: number, seed: number): string {
  let state = seed >>> 0;
  let text = "";
  while (text.length < length) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    text += String.fromCharCode(32 + ((state >>> 16) % 600));
  }
  return text;
}

function found(columns: SignatureColumns, needle: string): Set<number> {
  const places = new Set<number>();
  columns.find(rowsOfNeedle(needle) ?? [], ({ first, last }) => {
    for (let place = first; place <= last; place += 1) places.add(columns.entries[place]?.seq ?? -1);
  });
  return places;
}

test("every part of every text is found, wherever its columns end", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ length: fc.constantFrom(0, 2, 3, 40, 900, 20_000, 70_000), seed: fc.nat() }), {
        minLength: 1,
        maxLength: 30,
      }),
      fc.array(fc.record({ of: fc.nat(), at: fc.nat(), length: fc.integer({ min: 3, max: 90 }) }), { minLength: 50 }),
      (sizes, needles) => {
        const texts = sizes.map(({ length, seed }) => noise(length, seed));
        const columns = new SignatureColumns();
        for (const [seq, text] of texts.entries()) columns.add({ seq, mark: 0 }, [text.slice(0, 100), text]);
        for (const { of, at, length } of needles) {
          const seq = of % texts.length;
          const text = texts[seq] ?? "";
          const from = at % (text.length + 1);
          const needle = text.slice(from, from + length);
          if (needle.length >= 3) assert.ok(found(columns, needle).has(seq), `${needle} of ${seq}`);
        }
      },
    ),
    { numRuns: 40 },
  );
});

test("a needle is found at every position of a text that fills many columns", () => {
  const columns = new SignatureColumns();
  const text = noise(60_000, 11);
  columns.add({ seq: 3, mark: 0 }, [text]);
  for (let at = 0; at + 35 <= text.length; at += 1) {
    assert.ok(found(columns, text.slice(at, at + 35)).has(3), `at ${at}`);
  }
});

test("an absent text has few false positives", () => {
  const columns = new SignatureColumns();
  for (let seq = 0; seq < 200; seq += 1) columns.add({ seq, mark: 0 }, [noise(8000, seq)]);
  let wrong = 0;
  for (let trial = 0; trial < 100; trial += 1) wrong += found(columns, noise(12, 1_000_003 * (trial + 1))).size;
  assert.ok(wrong < 200, `${wrong} of 20000`);
});

test("many small entries share a column, and a large one has several", () => {
  const small = new SignatureColumns();
  for (let seq = 0; seq < 160; seq += 1) small.add({ seq, mark: 0 }, ["the same little text"]);
  assert.equal(small.count, 10);
  const large = new SignatureColumns();
  large.add({ seq: 1, mark: 0 }, [noise(100_000, 5)]);
  assert.ok(large.count > 5);
  assert.deepEqual(new Set(large.spans.map(({ first, last }) => `${first} ${last}`)), new Set(["0 0"]));
});

test("the matrix of rows equals the columns", () => {
  const columns = new SignatureColumns();
  for (let seq = 0; seq < 30; seq += 1) columns.add({ seq, mark: 0 }, [noise(9000, seq)]);
  const { bits, strideBytes } = columns.matrix();
  assert.equal(bits.length, SIGNATURE_ROWS * strideBytes);
  for (let row = 0; row < SIGNATURE_ROWS; row += 1) {
    const spans = new Set<unknown>();
    columns.find([row], (span) => spans.add(span));
    for (const [column, span] of columns.spans.entries()) {
      const bit = ((bits[row * strideBytes + (column >> 3)] ?? 0) >> (column & 7)) & 1;
      assert.equal(bit === 1, spans.has(span), `row ${row}, column ${column}`);
    }
  }
});

test("a text of fewer than three characters has no rows", () => {
  for (const text of ["", "a", "ab"]) assert.equal(rowsOfNeedle(text), undefined);
  assert.equal(rowsOfNeedle("abc")?.length, 1);
  assert.equal(rowsOfNeedle("abcd")?.length, 3);
});
