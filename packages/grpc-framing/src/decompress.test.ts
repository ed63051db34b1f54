import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { snappyBlock, snappyStream } from "../test/snappy-writer.ts";
import { decompress, decompressSync } from "./index.ts";

const LIMIT_BYTES = 1 << 16;
const PACKERS = [
  ["gzip", "gzip", gzipSync],
  ["deflate with its header", "deflate", deflateSync],
  ["deflate without", "deflate", deflateRawSync],
  ["identity", "identity", (bytes: Uint8Array) => Buffer.from(bytes)],
  ["snappy's blocks", "snappy", snappyBlock],
  ["snappy's chunks", "snappy", snappyStream],
] as const;

for (const [name, encoding, pack] of PACKERS) {
  test(`what was packed with ${name} comes back`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 500 }), async (bytes) => {
        const packed = Buffer.from(pack(bytes));
        const expected = { bytes: Buffer.from(bytes), stop: undefined };
        assert.deepEqual(decompressSync(packed, encoding, LIMIT_BYTES), expected);
        assert.deepEqual(await decompress(packed, encoding, LIMIT_BYTES), expected);
      }),
      { numRuns: 30 },
    );
  });

  test(`a bomb of ${name} gives its beginning`, async () => {
    const packed = Buffer.from(pack(Buffer.alloc(3_000_000, "a")));
    assert.equal(decompressSync(packed, encoding, 100), undefined);
    assert.deepEqual(await decompress(packed, encoding, 100), { bytes: Buffer.alloc(100, "a"), stop: "limit" });
  });
}

test("bytes that are not what they claim to be stay as they are", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ minLength: 1 }),
      fc.constantFrom("gzip", "deflate", "snappy"),
      async (noise, encoding) => {
        const bytes = Buffer.from(noise);
        for (const outcome of [
          decompressSync(bytes, encoding, LIMIT_BYTES),
          await decompress(bytes, encoding, LIMIT_BYTES),
        ]) {
          if (outcome?.stop === "damaged") assert.deepEqual(outcome.bytes, bytes);
        }
      },
    ),
  );
  const truncated = gzipSync("hello, hello, hello").subarray(0, 20);
  assert.deepEqual(decompressSync(truncated, "gzip", LIMIT_BYTES), { bytes: truncated, stop: "damaged" });
  assert.deepEqual(await decompress(truncated, "gzip", LIMIT_BYTES), { bytes: truncated, stop: "damaged" });
});

test("an unknown encoding is named so", () => {
  const bytes = Buffer.from("zstd, perhaps");
  assert.deepEqual(decompressSync(bytes, "zstd", LIMIT_BYTES), { bytes, stop: "unsupported" });
});
