import assert from "node:assert/strict";
import { test } from "node:test";
import { heapGrowthBytes } from "@headworks/testkit";
import { HpackDecoder } from "./hpack-decoder.ts";
import { HpackEncoder } from "./hpack-encoder.ts";

const LIMITS = { maxFields: 10_000, listBytes: 1_000_000 };

function hex(encoder: HpackEncoder, section: readonly string[]): string {
  return encoder.encode(section).toString("hex");
}

function decoded(decoder: HpackDecoder, block: Buffer): string[] {
  const fields: string[] = [];
  assert.equal(decoder.decode(block, fields, LIMITS), true);
  return fields;
}

test("the requests of RFC 7541, C.4, are encoded as there", () => {
  const encoder = new HpackEncoder();
  const get = [":method", "GET", ":scheme", "http", ":path", "/", ":authority", "www.example.com"];
  assert.equal(hex(encoder, get), "828684418cf1e3c2e5f23a6ba0ab90f4ff");
  assert.equal(hex(encoder, [...get, "cache-control", "no-cache"]), "828684be5886a8eb10649cbf");
  const custom = [":method", "GET", ":scheme", "https", ":path", "/index.html", ":authority", "www.example.com"];
  const block = hex(encoder, [...custom, "custom-key", "custom-value"]);
  assert.equal(block, "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf");
});

test("the responses of RFC 7541, C.6, are encoded as there, as far as their fields are kept here", () => {
  const encoder = new HpackEncoder();
  encoder.limitTable(256);
  const response = (status: string): string[] => {
    return [":status", status, "cache-control", "private", "date", "Mon, 21 Oct 2013 20:13:21 GMT"];
  };
  const first = "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff";
  assert.equal(hex(encoder, response("302")), `3fe101${first}`);
  // As in C.5: Huffman's code would be as long.
  assert.equal(hex(encoder, response("307")), "4803333037c0bf");
});

/** field, the begin of its block, whether the next block has its index */
const KEEPING: readonly (readonly [string, string, string, boolean])[] = [
  [":method", "GET", "82", false],
  [":method", "PATCH", "42", true],
  [":scheme", "https", "87", false],
  [":path", "/", "84", false],
  [":path", "/a", "04", false],
  [":authority", "a.test", "41", true],
  [":status", "404", "8d", false],
  [":status", "201", "48", true],
  ["accept-encoding", "gzip, deflate", "90", false],
  ["accept-encoding", "br", "50", true],
  ["authorization", "Basic YTpi", "1f08", false],
  ["proxy-authorization", "Basic YTpi", "1f22", false],
  ["cookie", "a=1234567890abcdefg", "1f11", false],
  ["cookie", "a=1234567890abcdefgh", "60", true],
  ["set-cookie", "a=1234567890abcdefghij", "0f28", false],
  ["content-length", "123", "0f0d", false],
  ["etag", '"a"', "0f13", false],
  ["if-modified-since", "a", "0f19", false],
  ["if-none-match", "a", "0f1a", false],
  ["last-modified", "a", "0f1d", false],
  ["location", "/a", "0f1f", false],
  ["age", "1", "0f06", false],
  ["content-range", "bytes 0-1/2", "0f0f", false],
  ["traceparent", "00-1", "00", false],
  ["x-request-id", "1", "00", false],
  ["date", "Mon, 21 Oct 2013 20:13:21 GMT", "61", true],
  ["x-own", "a", "40", true],
  ["x-own", "", "40", true],
  ["x-own", "v".repeat(3072 - 5 - 32), "40", true],
  ["x-own", "v".repeat(3073 - 5 - 32), "00", false],
];

for (const [name, value, begin, isKept] of KEEPING) {
  test(`a field is kept as far as that is of use: ${name}: ${value.slice(0, 40)}`, () => {
    const encoder = new HpackEncoder();
    const first = hex(encoder, [name, value]);
    assert.equal(first.slice(0, begin.length), begin);
    assert.equal(hex(encoder, [name, value]), isKept ? "be" : first);
  });
}

test("a text is written in Huffman's code only if it is shorter in it", () => {
  const encoder = new HpackEncoder();
  assert.equal(hex(encoder, [":path", "aaa"]), "048218c7");
  assert.equal(hex(encoder, [":path", "a"]), "040161");
  assert.equal(hex(encoder, [":path", "\xe4\xff"]), "0402e4ff");
  assert.equal(hex(encoder, ["traceparent", "&&"]).slice(-6), "022626");
});

test("numbers of every size are written: a prefix alone, and with one, two and three bytes", () => {
  for (const edge of [127, 127 + 128, 127 + 128 ** 2]) {
    for (const size of [edge - 1, edge, edge + 1]) {
      const section = [":path", "&".repeat(size)];
      assert.deepEqual(decoded(new HpackDecoder(), new HpackEncoder().encode(section)), section);
    }
  }
});

test("the name of a kept field is written as its index, the newest one", () => {
  const encoder = new HpackEncoder();
  hex(encoder, ["x-own", "a", "x-own", "b", "x-other", "c"]);
  assert.equal(hex(encoder, ["x-own", "d"]), "7f000164");
  // Four more push out all that are older, and a name goes with its last entry.
  hex(encoder, ["n0", "0".repeat(990), "n1", "1".repeat(990), "n2", "2".repeat(990), "n3", "3".repeat(990)]);
  assert.match(hex(encoder, ["x-own", "d"]), /^40/u);
  assert.match(hex(encoder, ["n0", "d"]), /^40/u);
});

test("an entry that is pushed out by its own insertion is named by its index", () => {
  const encoder = new HpackEncoder();
  const decoder = new HpackDecoder();
  const section = (digit: string): string[] => ["x-own", digit.repeat(3000)];
  for (const digit of ["1", "2", "3", "2"]) {
    assert.deepEqual(decoded(decoder, encoder.encode(section(digit))), section(digit));
  }
});

test("a change of the table's size is announced once, with the smallest in between", () => {
  /** limits in turn, the begin of the next block */
  const cases: readonly (readonly [readonly number[], string])[] = [
    [[], ""],
    [[4096], ""],
    [[65_536], ""],
    [[65_536, 4096], ""],
    [[100], "3f45"],
    [[0], "20"],
    [[0, 4096], "203fe11f"],
    [[0, 100_000], "203fe11f"],
    [[100, 200], "3f453fa901"],
    [[200, 100], "3f45"],
    [[200, 0, 100, 50], "203f13"],
    [[30, 0, 30], "203e"],
  ];
  for (const [limits, begin] of cases) {
    const encoder = new HpackEncoder();
    const decoder = new HpackDecoder();
    decoded(decoder, encoder.encode(["x-own", "a"]));
    for (const limit of limits) encoder.limitTable(limit);
    const isKept = Math.min(4096, ...limits) >= 38;
    const block = encoder.encode(["x-own", "a"]);
    assert.match(block.toString("hex"), new RegExp(`^${begin}${isKept ? "be$" : "[04]0"}`, "u"), limits.join());
    assert.deepEqual(decoded(decoder, block), ["x-own", "a"]);
    assert.deepEqual(decoded(decoder, encoder.encode([":method", "GET"])), [":method", "GET"]);
    assert.equal(hex(encoder, [":method", "GET"]), "82");
  }
});

test("nothing is kept in a table of no bytes", () => {
  const encoder = new HpackEncoder();
  encoder.limitTable(0);
  assert.equal(hex(encoder, ["x-own", "a"]), "20" + hex(encoder, ["x-own", "a"]));
});

test("sections of any size are encoded, and blocks of all encoders share their memory unless they are large", () => {
  const sizes = [10, 5000, 9000, 20_000, 40_000, 70_000, 300_000];
  for (const size of [...sizes, ...sizes.toReversed()]) {
    for (const letter of ["e", "&", "\xff"]) {
      const section = [":method", "GET", ":path", letter.repeat(size), "x-own", letter.repeat(30)];
      assert.deepEqual(decoded(new HpackDecoder(), new HpackEncoder().encode(section)), section);
    }
  }
  const many = Array.from({ length: 8000 }, (_, at) => (at % 2 === 0 ? `x-${at % 1000}` : `${at}`));
  const block = new HpackEncoder().encode(many);
  assert.deepEqual(decoded(new HpackDecoder(), block), many);
  const shared = new HpackEncoder().encode(["x-own", "a"]).buffer;
  assert.ok(shared.byteLength <= 65_536);
  assert.equal(new HpackEncoder().encode(["x-own", "b"]).buffer, shared);
});

test("what an encoder keeps of fields holds on to nothing else of the heads they came from", async () => {
  const head = "x".repeat(50_000);
  const encoder = new HpackEncoder();
  const grownBytes = await heapGrowthBytes(() => {
    for (let at = 100; at < 200; at += 1) {
      encoder.encode([
        `${head}x-a-name-of-its-own-${at}`.slice(50_000),
        `${head}a value of its own ${at}`.slice(50_000),
      ]);
    }
  });
  assert.ok(grownBytes < 100_000, `${grownBytes} bytes`);
});
