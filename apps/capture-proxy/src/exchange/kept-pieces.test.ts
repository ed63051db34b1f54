import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { KeptPieces } from "./body.ts";

const SHEET_BYTES = 65_536;

/** A slice of shared memory. */
function cut(sizeBytes: number, value: number): Buffer {
  const start = (SHEET_BYTES - sizeBytes) >> 1;
  return Buffer.alloc(SHEET_BYTES, value).subarray(start, start + sizeBytes);
}

test("the pieces that are kept are those that came, in order and byte for byte", () => {
  const sizes = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 20_000 }));
  fc.assert(
    fc.property(fc.array(sizes, { maxLength: 60 }), (each) => {
      const kept = new KeptPieces();
      const given = each.map((sizeBytes, index) => cut(sizeBytes, index));
      for (const [index, piece] of given.entries()) {
        kept.add(piece);
        assert.ok(Buffer.concat([...kept.list]).equals(Buffer.concat(given.slice(0, index + 1))));
      }
      assert.ok(Buffer.concat([...kept.take()]).equals(Buffer.concat(given)));
      assert.deepEqual(kept.list, []);
    }),
  );
});

test("a body that comes in one piece is not copied", () => {
  const kept = new KeptPieces();
  const piece = cut(100, 1);
  kept.add(piece);
  assert.deepEqual([kept.list.length, kept.list[0]?.buffer], [1, piece.buffer]);
});

for (const sizeBytes of [1, 100, 3000, 8191, 8192, 16_000]) {
  test(`pieces of ${sizeBytes} bytes hold on to little else`, () => {
    const kept = new KeptPieces();
    let addedBytes = 0;
    for (let at = 0; at < 10_000 && addedBytes < 200_000; at += 1) {
      kept.add(cut(sizeBytes, at));
      addedBytes += sizeBytes;
    }
    const memories = new Set(kept.list.map(({ buffer }) => buffer));
    let heldBytes = 0;
    for (const { byteLength } of memories) heldBytes += byteLength;
    assert.ok(heldBytes <= 8 * addedBytes + SHEET_BYTES, `${heldBytes} bytes for ${addedBytes}`);
  });
}
