import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import fc from "fast-check";
import { createCompressor } from "./compression.slice.ts";

const decoders = { gzip: gunzipSync, br: brotliDecompressSync, zstd: zstdDecompressSync } as const;

for (const coding of ["gzip", "br", "zstd"] as const) {
  test(`${coding}: however a body is cut, and at every level, it comes back whole`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ maxLength: 3000 }), { maxLength: 8 }),
        fc.option(fc.integer({ min: 0, max: 22 }), { nil: undefined }),
        async (pieces, level) => {
          const compressor = createCompressor(coding, level);
          const out: Buffer[] = [];
          compressor.on("data", (piece: Buffer) => out.push(piece));
          for (const piece of pieces) compressor.write(Buffer.from(piece));
          compressor.end();
          await once(compressor, "end");
          assert.deepEqual(decoders[coding](Buffer.concat(out)), Buffer.concat(pieces));
        },
      ),
      { numRuns: 30 },
    );
  });
}
