import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { brotliCompressSync, constants, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import {
  createContentDecoder,
  decodeBeginningSync,
  decodeContent,
  decodeContentSync,
  parseContentEncoding,
  remainingCodings,
} from "./content-coding.ts";
import { maxCodings } from "./decode-content.ts";

const encoders: Readonly<Record<string, (bytes: Uint8Array) => Buffer>> = {
  gzip: (bytes) => gzipSync(bytes),
  "x-gzip": (bytes) => gzipSync(bytes),
  deflate: (bytes) => deflateSync(bytes),
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
  zstd: (bytes) => zstdCompressSync(bytes),
};
const names = Object.keys(encoders);
const encode = (bytes: Uint8Array, coding: string): Uint8Array => encoders[coding]?.(bytes) ?? bytes;
/** Long enough for several blocks of every coding. */
const mixed = Buffer.concat(
  Array.from({ length: 8 }, () => Buffer.concat([Buffer.from("text that repeats ".repeat(3000)), randomBytes(20_000)])),
);

test("codings are listed in the order they were applied, without identity", () => {
  assert.deepEqual(parseContentEncoding("GZip, identity,,  br"), ["gzip", "br"]);
  assert.deepEqual(parseContentEncoding(["deflate", "gzip"]), ["deflate", "gzip"]);
  assert.deepEqual(parseContentEncoding(undefined), []);
});

for (const coding of names) {
  test(`${coding} is decoded at once and in pieces`, async () => {
    const encoded = encode(mixed, coding);
    const expected = { stop: undefined, remaining: [] };
    const atOnce = decodeContentSync(encoded, coding);
    assert.deepEqual({ stop: atOnce.stop, remaining: atOnce.remaining }, expected);
    assert.ok(mixed.equals(atOnce.bytes));
    const whole = await decodeContent(encoded, coding);
    assert.ok(mixed.equals(whole.bytes));
    const pieces: Uint8Array[] = [];
    const decoder = createContentDecoder(coding, (bytes) => pieces.push(bytes));
    for (let start = 0; start < encoded.length; start += 997) await decoder.write(encoded.subarray(start, start + 997));
    assert.deepEqual(await decoder.end(), expected);
    assert.ok(mixed.equals(Buffer.concat(pieces)));
  });

  test(`${coding} that is truncated yields its beginning and reports it`, async () => {
    const encoded = encode(mixed, coding);
    for (const fraction of [0.3, 0.7, 0.99]) {
      const cut = encoded.subarray(0, Math.floor(encoded.length * fraction));
      const whole = await decodeContent(cut, coding);
      const atOnce = decodeContentSync(cut, coding);
      for (const { bytes, stop } of [whole, atOnce]) {
        assert.equal(stop, "truncated");
        assert.ok(mixed.subarray(0, bytes.length).equals(bytes), "a true beginning");
      }
      assert.ok(whole.bytes.length > mixed.length * (fraction - 0.3), `${whole.bytes.length} bytes of ${fraction}`);
      assert.equal(atOnce.bytes.length, whole.bytes.length);
    }
  });

  test(`${coding} never yields more than the limit`, async () => {
    const bomb = encode(Buffer.alloc(4_000_000), coding);
    const whole = await decodeContent(bomb, coding, { maxBytes: 100_000 });
    assert.equal(whole.stop, "limit");
    assert.equal(whole.bytes.length, 100_000);
    const atOnce = decodeContentSync(bomb, coding, { maxBytes: 100_000 });
    assert.equal(atOnce.stop, "limit");
    assert.equal(atOnce.bytes.length, 0);
    const exact = await decodeContent(encode(mixed, coding), coding, { maxBytes: mixed.length });
    assert.equal(exact.stop, undefined);
    assert.equal(decodeContentSync(encode(mixed, coding), coding, { maxBytes: mixed.length }).stop, undefined);
  });

  test(`the beginning of ${coding} is all up to the limit and exactly the limit beyond it`, () => {
    const far = Buffer.concat([mixed, Buffer.alloc(20_000_000)]);
    for (const body of [mixed, far]) {
      const encoded = encode(body, coding);
      assert.ok(body.subarray(0, 100_000).equals(decodeBeginningSync(encoded, coding, 100_000)));
    }
    const encoded = encode(mixed, coding);
    for (const most of [mixed.length, mixed.length + 1]) {
      assert.ok(mixed.equals(decodeBeginningSync(encoded, coding, most)));
    }
    const twice = encode(encode(far, coding), coding);
    assert.ok(mixed.subarray(0, 100_000).equals(decodeBeginningSync(twice, [coding, coding], 100_000)));
    const cut = encoded.subarray(0, Math.floor(encoded.length / 2));
    assert.deepEqual(decodeBeginningSync(cut, coding, mixed.length), decodeContentSync(cut, coding).bytes);
  });

  test(`a body that is not ${coding} is reported as damaged and returned unchanged`, async () => {
    for (const body of [
      Buffer.from("<html>not compressed, but long enough to tell</html>"),
      Buffer.from('{"id":1,"name":"Grüße"}'),
      Buffer.from("{}"),
      Buffer.alloc(100, 0xff),
      Buffer.from(`[${"1,".repeat(1_000_000)}1]`),
    ]) {
      const expected = { stop: "damaged", remaining: [coding === "x-gzip" ? "gzip" : coding] };
      for (const { bytes, ...outcome } of [await decodeContent(body, coding), decodeContentSync(body, coding)]) {
        assert.deepEqual(outcome, expected);
        assert.ok(body.equals(bytes), `${bytes.length} bytes`);
      }
      assert.ok(body.subarray(0, 50).equals(decodeBeginningSync(body, coding, 50)));
    }
    const inner = Buffer.from("plain text inside of a good coding");
    const { bytes, ...outcome } = await decodeContent(encode(inner, coding), ["gzip", coding]);
    assert.deepEqual([bytes.toString(), outcome], [inner.toString(), { stop: "damaged", remaining: ["gzip"] }]);
  });

  for (const [what, damage] of [
    ["a line end behind it", (encoded: Buffer) => Buffer.concat([encoded, Buffer.from("\r\n")])],
    [
      "garbage behind it",
      (encoded: Buffer) => Buffer.concat([encoded, Buffer.from("\0\x01garbage \xff\xfe", "latin1")]),
    ],
  ] as const) {
    test(`${coding} with ${what} yields what can be decoded`, async () => {
      const body = Buffer.from(`{"found": ${JSON.stringify("needle ".repeat(100))}}`);
      const damaged = damage(Buffer.from(encode(body, coding)));
      const sync = decodeContentSync(damaged, coding);
      const later = await decodeContent(damaged, coding);
      for (const { bytes, stop, remaining } of [sync, later]) {
        assert.ok(stop === undefined || stop === "damaged", stop);
        assert.deepEqual(remaining, []);
        // A checksum in the last block makes that block undecodable, too.
        assert.match(Buffer.from(bytes).toString(), /^\{"found": "(?:needle ){50,}/);
      }
      assert.match(Buffer.from(decodeBeginningSync(damaged, coding, 200)).toString(), /^\{"found": "(?:needle )+/);
    });
  }

  test(`an empty body needs no ${coding}`, async () => {
    const expected = { bytes: new Uint8Array(0), stop: undefined, remaining: [] };
    assert.deepEqual(decodeContentSync(new Uint8Array(0), coding), expected);
    const { bytes, ...outcome } = await decodeContent(new Uint8Array(0), coding);
    assert.equal(bytes.length, 0);
    assert.deepEqual(outcome, { stop: undefined, remaining: [] });
  });
}

test("damage in the middle keeps what came before it", async () => {
  const encoded = Buffer.from(gzipSync(mixed));
  const middle = Math.floor(encoded.length / 2);
  encoded.fill(0xff, middle, middle + 500);
  const { bytes, stop } = await decodeContent(encoded, "gzip");
  assert.equal(stop, "damaged");
  const intactBytes = Math.floor(mixed.length * 0.35);
  assert.ok(bytes.length > intactBytes);
  assert.ok(mixed.subarray(0, intactBytes).equals(bytes.subarray(0, intactBytes)));
});

test("a wrong checksum is damage", async () => {
  const encoded = Buffer.from(gzipSync(mixed));
  encoded.writeUInt32LE(1, encoded.length - 8);
  const { bytes, stop } = await decodeContent(encoded, "gzip");
  assert.equal(stop, "damaged");
  assert.ok(mixed.equals(bytes), `${bytes.length} of ${mixed.length} bytes`);
});

test("raw deflate is accepted as deflate, whatever its first block", async () => {
  for (const level of [0, 1, 6, 9]) {
    for (const body of [mixed, Buffer.from("a"), Buffer.alloc(70_000)]) {
      const encoded = deflateRawSync(body, { level });
      assert.ok(body.equals(decodeContentSync(encoded, "deflate").bytes));
      assert.ok(body.equals((await decodeContent(encoded, "deflate")).bytes));
    }
  }
});

test("several gzip members are one body, and trailing bytes are ignored", async () => {
  const encoded = Buffer.concat([gzipSync("one "), gzipSync("two"), Buffer.from("\0\0garbage")]);
  assert.equal(Buffer.from(decodeContentSync(encoded, "gzip").bytes).toString(), "one two");
  assert.equal(Buffer.from((await decodeContent(encoded, "gzip")).bytes).toString(), "one two");
});

test("an unknown coding ends the decoding and is named", async () => {
  const encoded = gzipSync("inner");
  for (const result of [decodeContentSync(encoded, "foo, gzip"), await decodeContent(encoded, "foo, gzip")]) {
    assert.deepEqual(
      { ...result, bytes: Buffer.from(result.bytes).toString() },
      { bytes: "inner", stop: "unsupported", remaining: ["foo"] },
    );
  }
});

/** Content-Encoding lines, the codings that are decoded, and those that remain. */
const FIELD_LINES: readonly (readonly [
  values: readonly string[],
  applied: readonly string[],
  stays: readonly string[],
])[] = [
  [[], [], []],
  [["gzip"], ["gzip"], []],
  [["gzip", "br"], ["gzip", "br"], []],
  [["br", "gzip"], ["br", "gzip"], []],
  [["deflate, gzip", "zstd"], ["deflate", "gzip", "zstd"], []],
  [["identity"], [], []],
  [["identity", "gzip", "identity"], ["gzip"], []],
  [["GZIP", "Br"], ["gzip", "br"], []],
  [["x-gzip", "X-GZip"], ["gzip", "gzip"], []],
  [[" gzip ,, br , "], ["gzip", "br"], []],
  [["foo", "gzip"], ["gzip"], ["foo"]],
  [["gzip", "foo", "br"], ["br"], ["gzip", "foo"]],
  [["gzip", "foo"], [], ["gzip", "foo"]],
  [["__proto__"], [], ["__proto__"]],
  [Array<string>(maxCodings).fill("gzip"), Array<string>(maxCodings).fill("gzip"), []],
  [Array<string>(maxCodings + 1).fill("gzip"), [], Array<string>(maxCodings + 1).fill("gzip")],
  [Array<string>(20).fill("br, gzip"), [], Array<string[]>(20).fill(["br", "gzip"]).flat()],
];
for (const [values, applied, stays] of FIELD_LINES) {
  test(`Content-Encoding in the lines ${JSON.stringify(values).slice(0, 60)} is decoded from its end`, async () => {
    const body = Buffer.from("content ".repeat(100));
    const coded = applied.reduce(encode, body);
    const expected = { stop: stays.length > 0 ? "unsupported" : undefined, remaining: stays };
    const { bytes: atOnce, ...outcome } = decodeContentSync(coded, values);
    assert.deepEqual([outcome, Buffer.from(atOnce)], [expected, body]);
    const { bytes: whole, ...asWell } = await decodeContent(coded, values);
    assert.deepEqual([asWell, Buffer.from(whole)], [expected, body]);
  });
}

test("remaining codings are named, or counted beyond the limit", () => {
  assert.equal(remainingCodings(["gzip", "foo"]), "the content coding gzip, foo");
  assert.equal(remainingCodings(Array<string>(20).fill("gzip")), `20 content codings, more than ${maxCodings},`);
});

test("the limit holds at every step of a chain", async () => {
  const inner = gzipSync(Buffer.alloc(4_000_000));
  const bomb = gzipSync(gzipSync(inner));
  const { bytes, stop } = await decodeContent(bomb, "gzip, gzip, gzip", { maxBytes: 5000 });
  assert.equal(stop, "limit");
  assert.ok(bytes.length <= 5000);
  const { stop: nothingAllowed } = await decodeContent(bomb, "gzip", { maxBytes: 0 });
  assert.equal(nothingAllowed, "limit");
});

test("any chain of codings is decoded to the body, however it is split", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 5000 }),
      fc.array(fc.constantFrom(...names), { maxLength: 4 }),
      fc.integer({ min: 1, max: 500 }),
      async (body, chain, pieceBytes) => {
        const encoded = chain.reduce(encode, body);
        const contentEncoding = chain.join(", ");
        assert.deepEqual(Buffer.from(decodeContentSync(encoded, contentEncoding).bytes), Buffer.from(body));
        const pieces: Uint8Array[] = [];
        const decoder = createContentDecoder(contentEncoding, (bytes) => pieces.push(bytes));
        for (let start = 0; start < encoded.length; start += pieceBytes) {
          await decoder.write(encoded.subarray(start, start + pieceBytes));
        }
        assert.deepEqual(await decoder.end(), { stop: undefined, remaining: [] });
        assert.deepEqual(Buffer.concat(pieces), Buffer.from(body));
      },
    ),
    { numRuns: 60 },
  );
});

test("hostile bytes never throw and never go past the limit", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 300 }),
      fc.constantFrom(...names, "gzip, br", "zstd, deflate"),
      fc.boolean(),
      async (noise, coding, hasTrueStart) => {
        const last = coding.split(", ").at(-1) ?? "";
        const body = hasTrueStart
          ? Buffer.concat([encode(mixed.subarray(0, 500), last).subarray(0, 60), noise])
          : noise;
        const atOnce = decodeContentSync(body, coding, { maxBytes: 400 });
        const whole = await decodeContent(body, coding, { maxBytes: 400 });
        assert.ok(atOnce.bytes.length <= 400 && whole.bytes.length <= 400);
        const beginning = decodeBeginningSync(body, coding, 400);
        assert.ok(beginning.length <= 400);
        if (atOnce.stop === undefined || atOnce.stop === "truncated") assert.deepEqual(beginning, atOnce.bytes);
      },
    ),
    { numRuns: 300 },
  );
});
