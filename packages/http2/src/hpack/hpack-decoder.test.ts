import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { HpackDecoder } from "./hpack-decoder.ts";
import { HpackError } from "./huffman.ts";

const LIMITS = { maxFields: 100, listBytes: 65_536 };

function block(hex: string): Buffer {
  return Buffer.from(hex.replaceAll(/\s/gu, ""), "hex");
}

function decoded(decoder: HpackDecoder, bytes: Buffer): string[] {
  const fields: string[] = [];
  assert.equal(decoder.decode(bytes, fields, LIMITS), true);
  return fields;
}

interface Example {
  readonly section: string;
  readonly tableBytes?: number;
  /** Blocks of one connection in turn: bytes, fields. */
  readonly blocks: readonly (readonly [string, readonly string[]])[];
}

const GET = [":method", "GET", ":scheme", "http", ":path", "/", ":authority", "www.example.com"];
const GET_FRESH = [...GET, "cache-control", "no-cache"];
const GET_CUSTOM = [
  ":method",
  "GET",
  ":scheme",
  "https",
  ":path",
  "/index.html",
  ":authority",
  "www.example.com",
  "custom-key",
  "custom-value",
];
const DATE = "Mon, 21 Oct 2013 20:13:21 GMT";
const LATER = "Mon, 21 Oct 2013 20:13:22 GMT";
const PLACE = "https://www.example.com";
const COOKIE = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
const FOUND = [":status", "302", "cache-control", "private", "date", DATE, "location", PLACE];
const MOVED = [":status", "307", "cache-control", "private", "date", DATE, "location", PLACE];
const DONE = [
  ":status",
  "200",
  "cache-control",
  "private",
  "date",
  LATER,
  "location",
  PLACE,
  "content-encoding",
  "gzip",
  "set-cookie",
  COOKIE,
];

const EXAMPLES: readonly Example[] = [
  {
    section: "C.2.1, a literal that is kept",
    blocks: [["400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", ["custom-key", "custom-header"]]],
  },
  { section: "C.2.2, a literal", blocks: [["040c 2f73 616d 706c 652f 7061 7468", [":path", "/sample/path"]]] },
  {
    section: "C.2.3, a literal that is never kept",
    blocks: [["1008 7061 7373 776f 7264 0673 6563 7265 74", ["password", "secret"]]],
  },
  { section: "C.2.4, an index", blocks: [["82", [":method", "GET"]]] },
  {
    section: "C.3, requests",
    blocks: [
      ["8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", GET],
      ["8286 84be 5808 6e6f 2d63 6163 6865", GET_FRESH],
      ["8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", GET_CUSTOM],
    ],
  },
  {
    section: "C.4, requests in Huffman's code",
    blocks: [
      ["8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", GET],
      ["8286 84be 5886 a8eb 1064 9cbf", GET_FRESH],
      ["8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", GET_CUSTOM],
    ],
  },
  {
    section: "C.5, answers that push entries out of a table of 256 bytes",
    tableBytes: 256,
    blocks: [
      [
        `4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120
         474d 54 6e17 6874 7470 733a 2f2f 7777 772e 6578 616d 706c 652e 636f 6d`,
        FOUND,
      ],
      ["4803 3330 37c1 c0bf", MOVED],
      [
        `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738
         666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33
         3630 303b 2076 6572 7369 6f6e 3d31`,
        DONE,
      ],
    ],
  },
  {
    section: "C.6, the same in Huffman's code",
    tableBytes: 256,
    blocks: [
      [
        `4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718
         63c7 8f0b 97c8 e9ae 82ae 43d3`,
        FOUND,
      ],
      ["4883 640e ffc1 c0bf", MOVED],
      [
        `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7
         b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07`,
        DONE,
      ],
    ],
  },
];

for (const { section, tableBytes, blocks } of EXAMPLES) {
  test(`an example of RFC 7541 is decoded: ${section}`, () => {
    const decoder = new HpackDecoder(tableBytes);
    for (const [hex, fields] of blocks) assert.deepEqual(decoded(decoder, block(hex)), fields);
  });

  test(`an example of RFC 7541, cut anywhere, is refused or a whole begin: ${section}`, () => {
    for (const [at, [hex, fields]] of blocks.entries()) {
      const whole = block(hex);
      for (let size = 0; size < whole.length; size++) {
        const decoder = new HpackDecoder(tableBytes);
        for (const [before] of blocks.slice(0, at)) decoded(decoder, block(before));
        const read: string[] = [];
        try {
          decoder.decode(whole.subarray(0, size), read, LIMITS);
        } catch (error) {
          assert.ok(error instanceof HpackError);
        }
        assert.ok(read.length < fields.length);
        assert.deepEqual(read, fields.slice(0, read.length));
      }
    }
  });
}

/** what, bytes, the error */
const REFUSED: readonly (readonly [string, string, RegExp])[] = [
  ["the index 0", "80", /index 0/u],
  ["an index behind the static table while the other one is empty", "be", /beyond the tables/u],
  ["an index behind the only entry", "40 0161 0162 bf", /beyond the tables/u],
  ["an index far behind", "ff ff ff 7f", /beyond the tables/u],
  ["the name of an index behind the tables, kept", "7f 00 0161", /beyond the tables/u],
  ["the name of an index behind the tables", "0f 2f 0161", /beyond the tables/u],
  ["the name of an index behind the tables, never kept", "1f 2f 0161", /beyond the tables/u],
  ["an evicted index", "40 0161 0162 20 be", /not at the start/u],
  ["a table size behind a field", "82 20", /not at the start/u],
  ["a third table size", "20 20 20", /not at the start/u],
  ["a table size above the limit", "3f e2 1f", /exceeds the allowed maximum/u],
  ["a table size far above the limit", "3f ff ff ff 7f", /exceeds the allowed maximum/u],
  ["a second table size above the limit", "20 3f e2 1f", /exceeds the allowed maximum/u],
  ["a table size without its number", "3f", /within a number/u],
  ["a table size within its number", "3f e1", /within a number/u],
  ["an index without its number", "ff", /within a number/u],
  ["an index within its number", "ff 80 80", /within a number/u],
  ["a number of five bytes behind its prefix", "ff 80 80 80 80 00", /too large/u],
  ["a number of very many bytes", `ff ${"ff".repeat(40)}`, /too large/u],
  ["a number that wraps 32 bits", "ff 82 ff ff ff 0f", /too large/u],
  ["a number that wraps 64 bits", "ff 82 ff ff ff ff ff ff ff ff 01", /too large/u],
  ["a literal alone", "00", /within a field/u],
  ["a kept literal alone", "40", /within a field/u],
  ["a literal with an index alone", "04", /within a field/u],
  ["a name without its value", "00 0161", /within a field/u],
  ["a name that is not whole", "00 02 61", /within a text/u],
  ["a value that is not whole", "04 05 61616161", /within a text/u],
  ["a value without any of it", "04 01", /within a text/u],
  ["a value of the largest size", "04 7f ff ff ff 7f 61", /within a text/u],
  ["a size of a text within its number", "04 7f", /within a number/u],
  ["a Huffman name that is not whole", "00 82 1f", /within a text/u],
  ["a Huffman value with the end of text", "04 84 ff ff ff ff", /Huffman/u],
  ["a Huffman value with a byte of padding", "04 82 1f ff", /Huffman/u],
  ["a Huffman value that is only padding", "04 81 ff", /Huffman/u],
  ["a Huffman value with padding of zeros", "04 81 18", /Huffman/u],
  ["a Huffman name with padding of zeros", "40 81 18 0161", /Huffman/u],
];

for (const [what, hex, message] of REFUSED) {
  test(`a block is refused: ${what}`, () => {
    const refused = (error: unknown): boolean => error instanceof HpackError && message.test(error.message);
    assert.throws(() => new HpackDecoder().decode(block(hex), [], LIMITS), refused);
    // Errors do not hide behind the limits.
    assert.throws(() => new HpackDecoder().decode(block(hex), [], { maxFields: 0, listBytes: 0 }), refused);
  });
}

/** what, bytes, fields */
const TAKEN: readonly (readonly [string, string, readonly string[]])[] = [
  ["nothing", "", []],
  ["a table size alone", "20", []],
  ["two table sizes", "20 3f e1 1f", []],
  ["an empty value", "04 00", [":path", ""]],
  ["an empty Huffman value", "04 80", [":path", ""]],
  ["a number with bytes of zero behind it", "ff 80 80 80 00", ["x", "y"]],
  ["bytes that are not ASCII", "00 0178 03 e4f6ff", ["x", "\xe4\xf6\xff"]],
  ["a literal that is kept, by its index", "40 0161 0162 be", ["a", "b", "a", "b"]],
  ["the name of a literal that is kept", "40 0161 0162 7e 0163 bebf", ["a", "b", "a", "c", "a", "c", "a", "b"]],
  [
    "a literal without indexing leaves the table as it is",
    "40 0161 0162 00 0163 0164 be",
    ["a", "b", "c", "d", "a", "b"],
  ],
  ["a never indexed one as well", "40 0161 0162 10 0163 0164 be", ["a", "b", "c", "d", "a", "b"]],
];

for (const [what, hex, fields] of TAKEN) {
  test(`a block is decoded: ${what}`, () => {
    const decoder = new HpackDecoder();
    // The entry with the index 127.
    if (hex.startsWith("ff")) decoded(decoder, block(`40 0178 0179 ${"40 0178 0161".repeat(65)}`));
    assert.deepEqual(decoded(decoder, block(hex)), fields);
  });
}

test("a smaller table evicts at once, and an entry larger than the table empties it", () => {
  const two = "40 0161 0162 40 0163 0164";
  const cases: readonly (readonly [string, string, readonly string[] | undefined])[] = [
    [two, "bf", ["a", "b"]],
    [two, "3f 25 bf", ["a", "b"]],
    [two, "3f 24 bf", undefined],
    [two, "3f 24 be", ["c", "d"]],
    [two, "3f 03 be", ["c", "d"]],
    [two, "3f 02 be", undefined],
    [two, "20 3f e1 1f be", undefined],
    [`3f 25 ${two}`, "40 0165 0166 be bf", ["e", "f", "e", "f", "c", "d"]],
    [`3f 25 ${two}`, `40 0165 23 ${"66".repeat(35)} be`, ["e", "f".repeat(35), "e", "f".repeat(35)]],
    [`3f 25 ${two}`, `40 0165 24 ${"66".repeat(36)}`, ["e", "f".repeat(36)]],
    [`3f 25 ${two} 40 0165 24 ${"66".repeat(36)}`, "be", undefined],
    // The name comes from an entry that goes to make room for its own.
    [`3f 25 ${two}`, `7f00 23 ${"66".repeat(35)} be`, ["a", "f".repeat(35), "a", "f".repeat(35)]],
  ];
  for (const [before, hex, fields] of cases) {
    const decoder = new HpackDecoder();
    decoded(decoder, block(before));
    if (fields !== undefined) assert.deepEqual(decoded(decoder, block(hex)), fields, hex);
    else assert.throws(() => decoded(decoder, block(hex)), HpackError, hex);
  }
});

test("the encoder begins with 4096 bytes whatever larger table is allowed, and may ask for it", () => {
  const value = "76".repeat(967);
  const entries = `40 0161 7fc806 ${value}`.repeat(5);
  const decoder = new HpackDecoder(1 << 20);
  decoded(decoder, block(entries));
  assert.deepEqual(decoded(decoder, block("c1")).length, 2);
  assert.throws(() => decoded(decoder, block("c2")), HpackError);
  const large = new HpackDecoder(1 << 20);
  decoded(large, block(`3f e1ff3f ${entries}`));
  assert.deepEqual(decoded(large, block("c2")), ["a", "v".repeat(967)]);
});

test("the ring keeps its entries in order over many turns", () => {
  const decoder = new HpackDecoder();
  const text = (count: number): string => String(count).padStart(4, "0");
  for (let count = 0; count < 1000; count++) {
    decoded(decoder, Buffer.from(`\x40\x01n\x04${text(count)}`, "latin1"));
    // The newest has the index 62, and 110 entries of 37 bytes fit.
    for (const back of [0, 1, 50, 64, 109, 110]) {
      const index = Buffer.from(back < 65 ? [0xbe + back] : [0xff, back - 65]);
      if (back > count || back === 110) assert.throws(() => decoded(decoder, index), HpackError);
      else assert.deepEqual(decoded(decoder, index), ["n", text(count - back)]);
    }
  }
});

test("a section is cut at the limits, and the table kept all the same", () => {
  const cases: readonly (readonly [number, number, number])[] = [
    [3, 102, 3],
    [2, 102, 2],
    [3, 101, 2],
    [3, 68, 2],
    [3, 67, 1],
    [0, 102, 0],
    [3, 33, 0],
    [1, 34, 1],
  ];
  for (const [maxFields, listBytes, taken] of cases) {
    const decoder = new HpackDecoder();
    const fields = ["before"];
    const isWhole = decoder.decode(block("40 0161 0162 40 0163 0164 40 0165 0166"), fields, { maxFields, listBytes });
    assert.equal(isWhole, taken === 3);
    assert.deepEqual(fields, ["before", "a", "b", "c", "d", "e", "f"].slice(0, 1 + 2 * taken));
    assert.deepEqual(decoded(decoder, block("c0 bf be")), ["a", "b", "c", "d", "e", "f"]);
  }
});

test("nothing is taken behind a field that was too large, however small it is", () => {
  const fields: string[] = [];
  const limits = { maxFields: 10, listBytes: 100 };
  assert.equal(new HpackDecoder().decode(block(`82 04 40 ${"61".repeat(64)} 82`), fields, limits), false);
  assert.deepEqual(fields, [":method", "GET"]);
});

test("bombs take no more than the limits", () => {
  const value = Buffer.alloc(4000, "v");
  const decoder = new HpackDecoder();
  decoded(decoder, Buffer.concat([block("40 0161 7fa11e"), value]));
  const fields: string[] = [];
  assert.equal(decoder.decode(Buffer.alloc(1_000_000, 0xbe), fields, LIMITS), false);
  assert.equal(fields.length, 2 * 16);
  const huffman: string[] = [];
  // Five bits of zero are "0": 1.6 times as many characters as bytes.
  const zeros = Buffer.concat([block("04 ff e1cf0f"), Buffer.alloc(256_095), block("07")]);
  assert.equal(decoder.decode(zeros, huffman, LIMITS), false);
  assert.equal(huffman.length, 0);
});

test("random bytes are decoded within the limits or refused", () => {
  const limits = { maxFields: 5, listBytes: 400 };
  const blocks = fc.array(fc.uint8Array({ maxLength: 60 }), { maxLength: 6 });
  fc.assert(
    fc.property(blocks, fc.constantFrom(0, 64, 4096), (inputs, tableBytes) => {
      const decoder = new HpackDecoder(tableBytes);
      for (const input of inputs) {
        const fields: string[] = [];
        try {
          decoder.decode(Buffer.from(input), fields, limits);
        } catch (error) {
          if (!(error instanceof HpackError)) throw error;
          return;
        } finally {
          let sizeBytes = 16 * fields.length;
          for (const text of fields) sizeBytes += text.length;
          assert.ok(fields.length <= 10 && fields.length % 2 === 0 && sizeBytes <= 400);
        }
      }
    }),
    { numRuns: 2000 },
  );
});
