import assert from "node:assert/strict";
import { test } from "node:test";
import { BodyCapture, INLINE_BODY_BYTES } from "./body.ts";
import type { BodySpool } from "./body.ts";

function spool(
  options: { refuseOpen?: boolean; writes?: number } = {},
): BodySpool & { pieces: Buffer[]; discarded: boolean; ended: boolean } {
  let writes = options.writes ?? Number.POSITIVE_INFINITY;
  const state = {
    pieces: [] as Buffer[],
    discarded: false,
    ended: false,
    open: () =>
      options.refuseOpen
        ? undefined
        : {
            id: 1,
            write(piece: Buffer) {
              state.pieces.push(piece);
              return (writes -= 1) > 0;
            },
            end: () => void (state.ended = true),
            discard: () => void (state.discarded = true),
          },
  };
  return state;
}

const half = Buffer.alloc(INLINE_BODY_BYTES / 2 + 1, 1);

test("a small body stays in memory, whole", () => {
  const body = new BodyCapture(100, spool());
  body.add(Buffer.from("ab"));
  body.add(Buffer.from("cd"));
  assert.equal(Buffer.concat([...body.pieces]).toString(), "abcd");
  assert.equal(body.state, "complete");
});

test("no byte is none, and a body without a spool is counted but not stored", () => {
  assert.equal(new BodyCapture(10, spool()).state, "none");
  const counted = new BodyCapture(10, undefined);
  counted.add(Buffer.alloc(5));
  assert.deepEqual([counted.state, counted.sizeBytes, counted.storedBytes], ["not_stored", 5, 0]);
});

test("what exceeds the limit is counted and marked as truncated", () => {
  const body = new BodyCapture(3, spool());
  body.add(Buffer.from("abcd"));
  body.add(Buffer.from("ef"));
  assert.deepEqual([body.state, body.sizeBytes, body.storedBytes], ["truncated", 6, 3]);
  assert.equal(Buffer.concat([...body.pieces]).toString(), "abc");
});

test("a large body moves to the spool and keeps its order", () => {
  const target = spool();
  const body = new BodyCapture(10_000_000, target);
  for (let count = 0; count < 3; count += 1) body.add(half);
  body.end();
  assert.equal(body.pieces.length, 0);
  assert.equal(target.pieces.length, 3);
  assert.ok(target.ended);
  assert.equal(body.state, "complete");
});

for (const [name, options] of [
  ["cannot take another body", { refuseOpen: true }],
  ["falls behind", { writes: 2 }],
] as const) {
  test(`when the spool ${name}, the body is given up and only counted`, () => {
    const target = spool(options);
    const body = new BodyCapture(10_000_000, target);
    for (let count = 0; count < 5; count += 1) body.add(half);
    assert.deepEqual([body.state, body.storedBytes, body.sizeBytes], ["not_stored", 0, 5 * half.length]);
    assert.equal(body.spooled, undefined);
  });
}
