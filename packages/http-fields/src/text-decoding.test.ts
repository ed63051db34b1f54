import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { decodeText } from "./index.ts";
import { dependsOnReading, utf8Octets, utf8Reading, wireText } from "./text-decoding.ts";

const bytes = (...parts: (string | number[])[]): Uint8Array =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));

const padding = " ".repeat(2000);

const cases: [
  name: string,
  body: Uint8Array,
  contentType: string | undefined,
  text: string,
  charset: string,
  source: string,
][] = [
  ["nothing said", bytes("grüße"), undefined, "grüße", "utf-8", "assumed"],
  ["no UTF-8", bytes("gr", [0xfc, 0x80]), "text/plain", "grü€", "windows-1252", "assumed"],
  ["a header", bytes([0xa4]), "text/plain; charset=ISO-8859-15", "€", "iso-8859-15", "header"],
  ["Japanese", bytes([0x93, 0xfa, 0x96, 0x7b]), "text/html; charset=Shift_JIS", "日本", "shift_jis", "header"],
  ["an unknown charset", bytes("ü"), "text/plain; charset=none", "ü", "utf-8", "assumed"],
  ["a mark against the header", bytes([0xef, 0xbb, 0xbf], "ü"), "text/plain; charset=latin1", "ü", "utf-8", "bom"],
  ["UTF-16 little-endian", bytes([0xff, 0xfe, 0x61, 0]), undefined, "a", "utf-16le", "bom"],
  ["UTF-16 big-endian", bytes([0xfe, 0xff, 0, 0x61]), undefined, "a", "utf-16be", "bom"],
  [
    "a meta element",
    bytes("<meta charset='koi8-r'>", [0xc1]),
    "text/html",
    "<meta charset='koi8-r'>а",
    "koi8-r",
    "document",
  ],
  [
    "meta of the older kind",
    bytes('<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">', [0xc1]),
    "text/html",
    '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">а',
    "koi8-r",
    "document",
  ],
  [
    "meta that cannot be true",
    bytes("<meta charset=utf-16>ü"),
    "text/html",
    "<meta charset=utf-16>ü",
    "utf-8",
    "document",
  ],
  ["meta in plain text", bytes("<meta charset=koi8-r>ü"), "text/plain", "<meta charset=koi8-r>ü", "utf-8", "assumed"],
  [
    "meta too far down",
    bytes(padding, "<meta charset=koi8-r>ü"),
    "text/html",
    `${padding}<meta charset=koi8-r>ü`,
    "utf-8",
    "assumed",
  ],
  [
    "an XML declaration",
    bytes('<?xml version="1.0" encoding="windows-1251"?>', [0xe0]),
    "application/xml",
    '<?xml version="1.0" encoding="windows-1251"?>а',
    "windows-1251",
    "document",
  ],
  [
    "a style sheet",
    bytes('@charset "windows-1251";', [0xe0]),
    "text/css",
    '@charset "windows-1251";а',
    "windows-1251",
    "document",
  ],
  ["a character cut off at the end", bytes("ab", [0xe2, 0x82]), undefined, "ab", "utf-8", "assumed"],
  ["an empty body", bytes(), undefined, "", "utf-8", "assumed"],
];

for (const [name, body, contentType, text, charset, source] of cases) {
  test(`text with ${name} is decoded`, () => {
    assert.deepEqual(decodeText(body, contentType), { text, charset, source, isDamaged: false });
  });
}

test("octets that do not fit the declared charset are replaced and reported", () => {
  const decoded = decodeText(bytes("a", [0xff], "b"), "text/plain; charset=utf-8");
  assert.deepEqual(decoded, { text: "a\u{fffd}b", charset: "utf-8", source: "header", isDamaged: true });
});

test("any bytes under any type become text", () => {
  const types = fc.constantFrom(
    "text/html",
    "text/xml",
    "text/css",
    "text/plain; charset=utf-16",
    "x",
    "application/json",
  );
  fc.assert(
    fc.property(fc.uint8Array(), types, (body, contentType) => {
      assert.equal(typeof decodeText(body, contentType).text, "string");
    }),
  );
});

test("text is sent in Latin-1 if possible, otherwise in UTF-8", () => {
  for (const [text, octets] of [
    ["plain\ttext", "plain\ttext"],
    ["café", "caf\xe9"],
    ["café €", Buffer.from("café €").toString("latin1")],
    ["日", "\xe6\x97\xa5"],
    ["\ud800", "\xef\xbf\xbd"],
    ["", ""],
  ] as const) {
    assert.equal(wireText(text), octets);
  }
});

test("text sent as UTF-8 is read unchanged", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const octets = utf8Octets(text);
      assert.equal(octets, Buffer.from(text).toString("latin1"));
      assert.equal(utf8Reading(octets) ?? octets, text);
    }),
  );
});

test("octets that are plain, no UTF-8 or no octets have no other reading", () => {
  for (const octets of ["", "plain", "caf\xe9", "\xc3", "日", "\xed\xa0\x80"]) {
    assert.equal(utf8Reading(octets), undefined);
  }
});

test("only what may stand for characters beyond ASCII depends on the reading", () => {
  assert.deepEqual(
    [dependsOnReading("a"), dependsOnReading("é"), dependsOnReading("\\u00e9"), dependsOnReading("\\u00e9", true)],
    [false, true, false, true],
  );
});
