import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { DECODABLE, type DecodableCoding, ResponseDecoder } from "./stream-watch.ts";

const encoders: readonly [coding: DecodableCoding, encode: (bytes: Buffer) => Buffer][] = [
  ["gzip", gzipSync],
  ["x-gzip", gzipSync],
  ["deflate", deflateSync],
  ["deflate", deflateRawSync],
  ["br", brotliCompressSync],
  ["zstd", zstdCompressSync],
];

async function decoded(coding: DecodableCoding, pieces: readonly Buffer[]) {
  const parts: Buffer[] = [];
  const decoder = new ResponseDecoder(coding, (bytes) => parts.push(Buffer.from(bytes)));
  for (const piece of pieces) await decoder.write(piece);
  const stop = await decoder.end();
  return { bytes: Buffer.concat(parts), stop };
}

for (const [index, [coding, encode]] of encoders.entries()) {
  test(`${coding} (${index}): encoded data decodes at any chunking`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.integer({ min: 1, max: 50 }), async (bytes, size) => {
        const coded = encode(Buffer.from(bytes));
        const pieces = Array.from({ length: Math.ceil(coded.length / size) }, (_, at) =>
          coded.subarray(at * size, at * size + size),
        );
        assert.deepEqual(await decoded(coding, pieces), { bytes: Buffer.from(bytes), stop: undefined });
      }),
      { numRuns: 10 },
    );
  });

  test(`${coding} (${index}): a truncated end is reported after all data before it`, async () => {
    const text = Buffer.from(Array.from({ length: 5000 }, (_, line) => `line ${line * 7919}`).join("\n"));
    const coded = encode(text);
    const { bytes, stop } = await decoded(coding, [coded.subarray(0, coded.length - 3)]);
    assert.ok(stop === "truncated" || stop === undefined);
    assert.ok(text.subarray(0, bytes.length).equals(bytes));
    assert.ok(stop === "truncated" || bytes.equals(text));
  });

  test(`${coding} (${index}): a decompression bomb is delivered in small parts and stopped early`, async () => {
    const bomb = encode(Buffer.alloc(40_000_000));
    let handedOut = 0;
    let largest = 0;
    const decoder = new ResponseDecoder(coding, (bytes) => {
      handedOut += bytes.length;
      largest = Math.max(largest, bytes.length);
    });
    for (let at = 0; at < bomb.length; at += 65_536) await decoder.write(bomb.subarray(at, at + 65_536));
    assert.equal(await decoder.end(), "grows too much");
    assert.ok(handedOut <= 33_554_432);
    assert.ok(largest <= 262_144);
  });
}

test("random bytes never throw", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...DECODABLE),
      fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 }),
      async (coding, pieces) => {
        const { stop } = await decoded(
          coding,
          pieces.map((piece) => Buffer.from(piece)),
        );
        assert.notEqual(stop, "grows too much");
      },
    ),
    { numRuns: 40 },
  );
});

test("a decoder without input ends", async () => {
  assert.deepEqual(await decoded("gzip", []), { bytes: Buffer.alloc(0), stop: undefined });
});
