import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { BodyCapture, type BodySpool, type BodyWatcher, INLINE_BODY_BYTES, KeptPieces } from "./body.ts";

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

test("a small body stays in memory completely", () => {
  const body = new BodyCapture(100, spool());
  body.add(Buffer.from("ab"));
  body.add(Buffer.from("cd"));
  assert.equal(Buffer.concat([...body.pieces]).toString(), "abcd");
  assert.equal(body.state, "complete");
});

test("an empty body has state none, and a body without a spool is counted but not stored", () => {
  assert.equal(new BodyCapture(10, spool()).state, "none");
  const counted = new BodyCapture(10, undefined);
  counted.add(Buffer.alloc(5));
  assert.deepEqual([counted.state, counted.sizeBytes, counted.storedBytes], ["not_stored", 5, 0]);
});

test("bytes beyond the limit are counted, and the body is marked as truncated", () => {
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
  test(`if the spool ${name}, the body is dropped and only counted`, () => {
    const target = spool(options);
    const body = new BodyCapture(10_000_000, target);
    for (let count = 0; count < 5; count += 1) body.add(half);
    assert.deepEqual([body.state, body.storedBytes, body.sizeBytes], ["not_stored", 0, 5 * half.length]);
    assert.equal(body.spooled, undefined);
  });
}

/** Records the calls in order. */
function watcher(): BodyWatcher & { readonly seen: string[] } {
  const seen: string[] = [];
  return {
    seen,
    piece: (bytes) => void seen.push(bytes.toString()),
    end: () => void seen.push("end"),
    replaced: () => void seen.push("replaced"),
    failed: (error) => void seen.push(String(error)),
  };
}

test("watchers receive every piece at once and one end, whether the body is stored, truncated or only counted", () => {
  for (const body of [new BodyCapture(100, spool()), new BodyCapture(3, spool()), new BodyCapture(100, undefined)]) {
    const [first, second] = [watcher(), watcher()];
    body.watch(first);
    body.add(Buffer.from("ab"));
    body.watch(second);
    body.add(Buffer.from("cd"));
    body.end();
    body.end();
    assert.deepEqual(first.seen, ["ab", "cd", "end"]);
    assert.deepEqual(second.seen, ["cd", "end"]);
  }
});

test("a body dropped by the store is watched to its end", () => {
  const body = new BodyCapture(10_000_000, spool({ refuseOpen: true }));
  const seen: number[] = [];
  body.watch({ piece: (bytes) => void seen.push(bytes.length), end: () => void seen.push(0) });
  for (let count = 0; count < 3; count += 1) body.add(half);
  body.end();
  assert.equal(body.state, "not_stored");
  assert.deepEqual(seen, [half.length, half.length, half.length, 0]);
});

test("a watcher that throws is notified once and removed; the body and the other watchers continue", () => {
  const body = new BodyCapture(100, spool());
  const faults: unknown[] = [];
  const other = watcher();
  body.watch({
    piece: () => {
      throw new Error("piece");
    },
    end: () => faults.push("end"),
    failed: (error) => {
      faults.push(error);
      throw new Error("again");
    },
  });
  body.watch(other);
  body.add(Buffer.from("ab"));
  body.add(Buffer.from("cd"));
  body.end();
  assert.deepEqual(faults.map(String), ["Error: piece"]);
  assert.deepEqual(other.seen, ["ab", "cd", "end"]);
  assert.equal(Buffer.concat([...body.pieces]).toString(), "abcd");
});

test("watchers of a replaced body continue with the new one, or end if they do not support it", () => {
  const old = new BodyCapture(100, spool());
  const knowing = watcher();
  const seen: string[] = [];
  const simple = { piece: (bytes: Buffer) => void seen.push(bytes.toString()), end: () => void seen.push("end") };
  old.watch(knowing);
  old.watch(simple);
  old.add(Buffer.from("old"));
  const next = new BodyCapture(100, spool());
  old.replaceBy(next);
  old.end();
  next.add(Buffer.from("new"));
  next.end();
  assert.deepEqual(knowing.seen, ["old", "replaced", "new", "end"]);
  assert.deepEqual(seen, ["old", "end"]);
});

const SHEET_BYTES = 65_536;

/** A slice of shared memory. */
function cut(sizeBytes: number, value: number): Buffer {
  const start = (SHEET_BYTES - sizeBytes) >> 1;
  return Buffer.alloc(SHEET_BYTES, value).subarray(start, start + sizeBytes);
}

test("all pieces are kept, in order and byte for byte", () => {
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

test("a body in one piece is not copied", () => {
  const kept = new KeptPieces();
  const piece = cut(100, 1);
  kept.add(piece);
  assert.deepEqual([kept.list.length, kept.list[0]?.buffer], [1, piece.buffer]);
});

for (const sizeBytes of [1, 100, 3000, 8191, 8192, 16_000]) {
  test(`pieces of ${sizeBytes} bytes pin little additional memory`, () => {
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
