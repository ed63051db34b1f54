import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "node:test";
import { anyCharacter } from "@headworks/testkit";
import { BATCH_BYTES, BatchMemory, BatchReader } from "./entry-record.ts";

const entries = fc.array(
  fc.record({ text: fc.string({ unit: anyCharacter }), bodies: fc.array(fc.uint8Array(), { maxLength: 4 }) }),
  { maxLength: 50 },
);

const sizeOf = (bodies: readonly Uint8Array[]): number => bodies.reduce((sum, body) => sum + body.length, 0);

test("a batch returns the texts and bodies that were added, also in reused memory", () => {
  let memory = new ArrayBuffer(BATCH_BYTES);
  fc.assert(
    fc.property(entries, (added) => {
      const batch = new BatchMemory(memory);
      for (const { text, bodies } of added) {
        assert.ok(batch.hasRoomFor(text, sizeOf(bodies)));
        batch.add(text, bodies);
      }
      assert.equal(batch.entries, added.length);
      memory = structuredClone(batch.memory, { transfer: [batch.memory] });
      const reader = new BatchReader(memory);
      for (const { text, bodies } of added) {
        assert.equal(reader.text(), text);
        assert.deepEqual(
          bodies.map((body) => reader.body(body.length)),
          bodies,
        );
      }
    }),
  );
});

for (const [name, letter] of [
  ["one byte", "a"],
  ["three bytes", "\u20ac"],
] as const) {
  test(`memory that reports room holds a text of ${name}`, () => {
    const batch = new BatchMemory(new ArrayBuffer(BATCH_BYTES));
    const text = letter.repeat(1000);
    let added = 0;
    for (; batch.hasRoomFor(text, 500); added += 1) batch.add(text, [Buffer.alloc(500, added)]);
    const reader = new BatchReader(batch.memory);
    for (let at = 0; at < added; at += 1) {
      assert.equal(reader.text(), text);
      assert.deepEqual(Buffer.from(reader.body(500)), Buffer.alloc(500, at));
    }
  });
}

test("an entry larger than a batch gets its own memory", () => {
  const body = Buffer.alloc(2 * BATCH_BYTES, 7);
  assert.equal(new BatchMemory(new ArrayBuffer(BATCH_BYTES)).hasRoomFor("text", body.length), false);
  const batch = BatchMemory.for("text", body.length);
  assert.ok(batch.hasRoomFor("text", body.length));
  batch.add("text", [body]);
  const reader = new BatchReader(batch.memory);
  assert.equal(reader.text(), "text");
  assert.deepEqual(Buffer.from(reader.body(body.length)), body);
});

test("a batch is full at 256 entries of any size", () => {
  const batch = new BatchMemory(new ArrayBuffer(BATCH_BYTES));
  for (let added = 0; added < 255; added += 1) batch.add("", []);
  assert.equal(batch.isFull, false);
  batch.add("", []);
  assert.equal(batch.isFull, true);
});
