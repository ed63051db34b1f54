import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CODE_BITS, CODES, END_OF_TEXT, HpackError, huffmanSizeBytes, readHuffman, writeHuffman } from "./huffman.ts";

function written(text: string): Buffer {
  const into = Buffer.alloc(text.length * 4 + 4);
  return into.subarray(0, writeHuffman(text, into, 0));
}

function read(bits: string): string {
  const bytes = Buffer.from((bits.replaceAll(" ", "").match(/.{1,8}/gu) ?? []).map((byte) => Number.parseInt(byte, 2)));
  return readHuffman(bytes, 0, bytes.length);
}

/** symbol, its bits as RFC 7541 has them in appendix B: the first and the last of most lengths */
const SPOT_CHECKS: readonly (readonly [number, string])[] = [
  [48, "00000"],
  [116, "01001"],
  [32, "010100"],
  [117, "101101"],
  [58, "1011100"],
  [122, "1111011"],
  [38, "11111000"],
  [90, "11111101"],
  [33, "1111111000"],
  [63, "1111111100"],
  [39, "11111111010"],
  [124, "11111111100"],
  [35, "111111111010"],
  [0, "1111111111000"],
  [126, "1111111111101"],
  [125, "11111111111101"],
  [123, "111111111111110"],
  [92, "1111111111111110000"],
  [208, "1111111111111110010"],
  [226, "11111111111111101101"],
  [1, "11111111111111111011000"],
  [9, "111111111111111111101010"],
  [235, "1111111111111111111101111"],
  [255, "11111111111111111111101110"],
  [254, "111111111111111111111110000"],
  [2, "1111111111111111111111100010"],
  [249, "1111111111111111111111111110"],
  [10, "111111111111111111111111111100"],
  [22, "111111111111111111111111111110"],
  [END_OF_TEXT, "111111111111111111111111111111"],
];

test("the codes that follow from their lengths are those of the RFC", () => {
  for (const [symbol, bits] of SPOT_CHECKS) {
    assert.equal((CODES[symbol] ?? 0).toString(2).padStart(CODE_BITS[symbol] ?? 0, "0"), bits, `${symbol}`);
  }
});

/** text, its bytes in the examples of RFC 7541, C.4 and C.6 */
const EXAMPLES: readonly (readonly [string, string])[] = [
  ["", ""],
  ["www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"],
  ["no-cache", "a8eb10649cbf"],
  ["custom-value", "25a849e95bb8e8b4bf"],
  ["302", "6402"],
  ["Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"],
  ["https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"],
];

for (const [text, hex] of EXAMPLES) {
  test(`a text of the RFC's examples is written and read: ${text}`, () => {
    const bytes = Buffer.from(hex, "hex");
    assert.deepEqual(written(text), bytes);
    assert.equal(huffmanSizeBytes(text), bytes.length);
    assert.equal(readHuffman(bytes, 0, bytes.length), text);
  });
}

test("any bytes come back, wherever they lie and however long they are", () => {
  const latin1 = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString("latin1"));
  fc.assert(
    fc.property(latin1, fc.nat({ max: 9 }), (text, start) => {
      const sizeBytes = huffmanSizeBytes(text);
      const bytes = Buffer.alloc(start + sizeBytes + 2, 0xaa);
      const end = writeHuffman(text, bytes, start);
      assert.equal(end, start + sizeBytes);
      assert.equal(bytes.subarray(end).toString("hex"), "aaaa");
      assert.equal(readHuffman(bytes, start, end), text);
    }),
    { numRuns: 500 },
  );
});

test("every pair of bytes comes back, in front of and behind others", () => {
  for (let pair = 0; pair < 65_536; pair++) {
    const text = String.fromCharCode(pair >> 8, pair & 0xff);
    for (const around of [text, `a${text}\\`, `\n${text}0`]) {
      const bytes = written(around);
      if (readHuffman(bytes, 0, bytes.length) !== around) assert.fail(`${pair}`);
    }
  }
});

test("texts beyond the memory that is kept come back", () => {
  for (const size of [8190, 8191, 8192, 8193, 200_000]) {
    const text = "0\\a\n".repeat(size / 4) + "0".repeat(size % 4);
    const bytes = written(text);
    assert.equal(readHuffman(bytes, 0, bytes.length), text);
    const short = written("e".repeat(size));
    assert.equal(readHuffman(short, 0, short.length), "e".repeat(size));
  }
});

const A = "00011";
const END = "1".repeat(30);

/** what, bits */
const REFUSED: readonly (readonly [string, string])[] = [
  ["the end of text alone", `${END} 11`],
  ["the end of text behind a byte", `${A} ${END} 11111`],
  ["the end of text within a text", `${A} ${END} ${A}`],
  ["the end of text behind many", `${A.repeat(9)} ${END} 11111`],
  ["eight bits of padding", "11111111"],
  ["eight bits of padding behind bytes", `${A.repeat(8)} 11111111`],
  ["15 bits of padding", `0${"1".repeat(15)}`],
  ["three bytes of padding", "1".repeat(24)],
  ["29 bits of the end of text", `${A.repeat(7)} ${"1".repeat(29)}`],
  ["padding with zeros", `${A} 000`],
  ["padding with a zero at its begin", `${A} 011`],
  ["padding with a zero at its end", `${A} 110`],
  ["padding that is a short code's begin", "1111100 1 1111100 1 1111111 0"],
  ["a code of eight bits without its last one", `${A.repeat(5)} 1111100`],
  ["a code of 13 bits without its last three", `${A.repeat(6)} 1111111111`],
  ["a code of 30 bits without its last one", `${A.repeat(7)} ${"1".repeat(28)}0`],
  ["a code of 28 bits without its last four", "111111111111111111111110"],
];

for (const [what, bits] of REFUSED) {
  test(`a text in Huffman's code is refused: ${what}`, () => {
    assert.throws(() => read(bits), HpackError);
  });
}

test("padding of up to seven ones is none of the text", () => {
  assert.equal(read("00011 111"), "a");
  assert.equal(read("010100 11"), " ");
  assert.equal(read("00000 00000 00000 00011 1111"), "000a");
  assert.equal(read("11111000"), "&");
  assert.equal(read("00000 00000 00000 00000 11111000 1111"), "0000&");
  assert.equal(read("00011 010100 010100 1111111"), "a  ");
});
