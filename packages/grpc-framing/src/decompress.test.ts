import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import { deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import { chunk, copy, crc32c, literal, snappyBlock, snappyStream } from "../test/snappy-writer.ts";
import { SnappyDecoder, type SnappyEnd } from "./decompress.ts";
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

const IDENTIFIER = Buffer.concat([Buffer.from([0xff, 6, 0, 0]), Buffer.from("sNaPpY")]);

function undone(
  input: Buffer,
  limitBytes = 1 << 20,
  workBytes = Infinity,
): { end: SnappyEnd | undefined; text: string } {
  const decoder = new SnappyDecoder(input, limitBytes);
  let end = decoder.step(workBytes);
  while (end === undefined) end = decoder.step(workBytes);
  return { end, text: end === "damaged" ? "" : decoder.bytes.toString("latin1") };
}

const bytes = (...octets: readonly (number | readonly number[])[]): Buffer => Buffer.from(octets.flat());

const abc = literal(Buffer.from("abc"));

test("the checksum is CRC-32C", () => {
  assert.equal(crc32c(Buffer.from("123456789")), 0xe306_9283);
});

const BLOCKS: readonly (readonly [name: string, input: Buffer, end: SnappyEnd, text: string])[] = [
  ["nothing", bytes(0), "whole", ""],
  ["a literal", bytes(3, abc), "whole", "abc"],
  // From the description of the format on: a copy that makes what it copies.
  ["a pattern that repeats itself", bytes(10, abc, copy(7, 3)), "whole", "abcabcabca"],
  ["a run of one byte", bytes(65, literal(Buffer.from("x")), copy(64, 1)), "whole", "x".repeat(65)],
  ["a copy with an offset of four bytes", bytes(5, abc, 3 | (1 << 2), 3, 0, 0, 0), "whole", "abcab"],
  ["a literal with a length of four bytes", bytes(3, 63 << 2, 2, 0, 0, 0, [97, 98, 99]), "whole", "abc"],
  ["no length", bytes(), "damaged", ""],
  ["a length without an end", bytes(0x80, 0x80, 0x80, 0x80, 0x80, 0x80), "damaged", ""],
  ["a length over 32 bits", bytes(0xff, 0xff, 0xff, 0xff, 0x7f, abc), "damaged", ""],
  ["less than is claimed", bytes(4, abc), "damaged", ""],
  ["more than is claimed", bytes(2, abc), "damaged", ""],
  ["something behind the end", bytes(3, abc, abc), "damaged", ""],
  ["a copy from before the beginning", bytes(8, abc, copy(5, 4)), "damaged", ""],
  ["a copy of itself", bytes(8, abc, copy(5, 0)), "damaged", ""],
  ["a copy that is cut off", bytes(8, abc, 2 | (4 << 2), 3), "damaged", ""],
  ["a literal that is cut off", bytes(8, 7 << 2, 97), "damaged", ""],
  ["a literal whose length is cut off", bytes(70, 61 << 2, 69), "damaged", ""],
];

for (const [name, input, end, text] of BLOCKS) {
  test(`a block with ${name} is ${end}`, () => {
    assert.deepEqual(undone(input), { end, text });
    assert.deepEqual(undone(input, 1 << 20, 1), { end, text });
  });
}

const content = Buffer.from("hello, hello, hello");

const good = chunk(0, content, snappyBlock(content));

const flipped = Buffer.from(good);

flipped.writeUInt8(flipped.readUInt8(5) ^ 1, 5);

const large = Buffer.alloc(65_537, "x");

const STREAMS: readonly (readonly [name: string, input: Buffer, end: SnappyEnd, text: string])[] = [
  ["no chunk", IDENTIFIER, "whole", ""],
  ["one chunk", Buffer.concat([IDENTIFIER, good]), "whole", String(content)],
  ["a chunk that is not compressed", Buffer.concat([IDENTIFIER, chunk(1, content, content)]), "whole", String(content)],
  ["another stream behind it", Buffer.concat([IDENTIFIER, good, IDENTIFIER, good]), "whole", String(content).repeat(2)],
  ["a chunk to be skipped", Buffer.concat([IDENTIFIER, bytes(0x80, 1, 0, 0, 7), good]), "whole", String(content)],
  ["a chunk that must be known", Buffer.concat([IDENTIFIER, bytes(0x02, 1, 0, 0, 7), good]), "damaged", ""],
  ["a wrong checksum", Buffer.concat([IDENTIFIER, flipped]), "damaged", ""],
  ["a chunk that is cut off", Buffer.concat([IDENTIFIER, good.subarray(0, -1)]), "damaged", ""],
  ["a head that is cut off", Buffer.concat([IDENTIFIER, good.subarray(0, 3)]), "damaged", ""],
  ["no room for a checksum", Buffer.concat([IDENTIFIER, bytes(0, 3, 0, 0, 1, 2, 3)]), "damaged", ""],
  ["a second identifier that is none", Buffer.concat([IDENTIFIER, bytes(0xff, 1, 0, 0, 7)]), "damaged", ""],
  ["more than 64 KiB in a chunk", Buffer.concat([IDENTIFIER, chunk(1, large, large)]), "damaged", ""],
  ["more than 64 KiB in a block", Buffer.concat([IDENTIFIER, chunk(0, large, snappyBlock(large))]), "damaged", ""],
];

for (const [name, input, end, text] of STREAMS) {
  test(`a stream with ${name} is ${end}`, () => {
    assert.deepEqual(undone(input), { end, text });
    assert.deepEqual(undone(input, 1 << 20, 1), { end, text });
  });
}

const texts = fc
  .array(fc.tuple(fc.string({ minLength: 1, maxLength: 6 }), fc.integer({ min: 1, max: 400 })), { maxLength: 12 })
  .map((parts) => Buffer.from(parts.map(([text, count]) => text.repeat(count)).join("")));

test("what was packed comes back in steps of any size, and its beginning within any limit", () => {
  fc.assert(
    fc.property(
      texts,
      fc.constantFrom(snappyBlock, snappyStream),
      fc.integer({ min: 1, max: 5000 }),
      fc.nat({ max: 5000 }),
      (text, pack, workBytes, limitBytes) => {
        const packed = pack(text);
        assert.deepEqual(undone(packed, 1 << 20, workBytes), { end: "whole", text: text.toString("latin1") });
        const expected = limitBytes < text.length ? "limit" : "whole";
        const cut = undone(packed, limitBytes, workBytes);
        assert.deepEqual(cut, { end: expected, text: text.subarray(0, limitBytes).toString("latin1") });
      },
    ),
    { numRuns: 60 },
  );
});

test("any bytes are read without a throw, and give no more than the limit", () => {
  const starts = fc.constantFrom(Buffer.alloc(0), IDENTIFIER, Buffer.concat([IDENTIFIER, good]), bytes(100, abc));
  fc.assert(
    fc.property(starts, fc.uint8Array({ maxLength: 200 }), (start, noise) => {
      assert.ok(undone(Buffer.concat([start, noise]), 50).text.length <= 50);
    }),
  );
});

test("a short message that claims 4 GiB reserves nothing", () => {
  const before = process.memoryUsage().arrayBuffers;
  const inputs = Array.from({ length: 100 }, () => bytes(0xff, 0xff, 0xff, 0xff, 0x0f, abc));
  for (const input of inputs) assert.equal(undone(input, 1 << 30).end, "damaged");
  assert.ok(process.memoryUsage().arrayBuffers - before < 10_000_000);
});

test("chunks that give nothing end a step, too", () => {
  const decoder = new SnappyDecoder(Buffer.concat([IDENTIFIER, Buffer.from("fe000000".repeat(10_000), "hex")]), 100);
  assert.equal(decoder.step(1000), undefined);
  assert.equal(decoder.step(Infinity), "whole");
});
