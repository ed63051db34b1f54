import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import fc from "fast-check";
import { socketPair } from "./internal-client.ts";

test("all bytes arrive in order in both directions, however they are split", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 20 }), async (pieces) => {
      const [one, other] = socketPair();
      const received: Buffer[] = [];
      other.on("data", (piece: Buffer) => received.push(piece));
      for (const piece of pieces) one.write(piece);
      one.end();
      await once(other, "end");
      assert.equal(Buffer.concat(received).compare(Buffer.concat(pieces)), 0);
      other.end("back");
      one.resume();
      await Promise.all([once(one, "close"), once(other, "close")]);
    }),
    { numRuns: 30 },
  );
});

test("nothing arrives within the call that wrote it", () => {
  const [one, other] = socketPair();
  let arrived = 0;
  other.on("data", () => {
    arrived += 1;
  });
  one.write("x");
  assert.equal(arrived, 0);
  one.destroy();
});

test("a paused reader applies backpressure to its writer until it resumes", async () => {
  const [one, other] = socketPair();
  const piece = Buffer.alloc(16_384);
  let written = 0;
  while (one.write(piece)) written += 1;
  assert.ok(written < 20);
  await new Promise(setImmediate);
  assert.equal(one.writableNeedDrain, true);
  other.resume();
  await once(one, "drain");
  assert.equal(one.writableNeedDrain, false);
  one.destroy();
});

test("a graceful end lets the peer read the rest; a destroyed end does not", async () => {
  const [one, other] = socketPair();
  one.write("last words");
  one.destroySoon();
  await once(one, "close");
  let text = "";
  for await (const piece of other) text += String(piece);
  assert.equal(text, "last words");

  const [breaking, broken] = socketPair();
  breaking.write("last words");
  breaking.end();
  let hasEnded = false;
  broken.on("end", () => {
    hasEnded = true;
  });
  breaking.resetAndDestroy();
  await once(broken, "close");
  assert.equal(hasEnded, false);
});

test("destroying one end destroys the other, and so does writing without a peer", async () => {
  const [one, other] = socketPair();
  one.destroy();
  await once(other, "close");
  assert.equal(other.destroyed, true);

  const [gone, writer] = socketPair();
  gone.end();
  gone.resume();
  await once(gone, "finish");
  gone.destroy();
  writer.write("lost");
  await once(writer, "close");
});
