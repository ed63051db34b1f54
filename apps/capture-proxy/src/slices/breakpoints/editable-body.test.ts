import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { decodeContentSync, encodeContent, encodeText } from "@headworks/http-fields/content-coding";
import type { RawFields } from "@headworks/http1";
import fc from "fast-check";
import { editableBody, encodeBody, encodeEditedText } from "./editable-body.ts";

const LIMIT = 1_000_000;

const TEXTS: readonly (readonly [string, string | undefined, Buffer, string, string])[] = [
  ["UTF-8 without a type", undefined, Buffer.from("grüße"), "grüße", "utf-8"],
  ["JSON", "application/json", Buffer.from('{"a":"ü"}'), '{"a":"ü"}', "utf-8"],
  ["a declared old charset", "text/plain; charset=iso-8859-1", Buffer.from("grüße", "latin1"), "grüße", "windows-1252"],
  ["text that is no UTF-8", "text/plain", Buffer.from("grüße", "latin1"), "grüße", "windows-1252"],
  [
    "Japanese",
    "text/html; charset=shift_jis",
    encodeText("日本語", "shift_jis") ?? Buffer.alloc(0),
    "日本語",
    "shift_jis",
  ],
  [
    "a byte order mark",
    "text/plain",
    Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from("hi", "utf16le")]),
    "hi",
    "utf-16le",
  ],
];
for (const [what, type, bytes, text, charset] of TEXTS) {
  test(`${what} is shown as text and comes back as the same bytes`, async () => {
    const fields = type === undefined ? [] : ["Content-Type", type];
    const body = await editableBody(bytes, fields, LIMIT);
    assert.equal(body.text?.value, text);
    assert.equal(body.text.charset, charset);
    assert.deepEqual(encodeEditedText(text, fields, body.text), bytes);
  });
}

const BINARIES: readonly (readonly [string, string | undefined, Buffer])[] = [
  ["octets of no type", undefined, Buffer.of(0x89, 0x50, 0xff, 0xfe)],
  ["an image", "image/png", Buffer.of(0x89, 0x50, 0x4e, 0x47, 0xff)],
  ["octets that break their declared charset", "text/plain; charset=utf-8", Buffer.of(0x61, 0xff, 0x62)],
  ["a text that is cut inside a character", "text/plain; charset=utf-8", Buffer.from("aü").subarray(0, 2)],
  ["text with a NUL", "text/plain", Buffer.from("a\0b")],
];
for (const [what, type, bytes] of BINARIES) {
  test(`${what} is no text, so nothing is lost on the way back`, async () => {
    const body = await editableBody(bytes, type === undefined ? [] : ["Content-Type", type], LIMIT);
    assert.equal(body.text, undefined);
    assert.deepEqual(Buffer.from(body.bytes), bytes);
  });
}

test("content codings are taken away, and a coding that cannot be is left on", async () => {
  const plain = Buffer.from("hello");
  const fields = (coding: string) => ["Content-Type", "text/plain", "Content-Encoding", coding];
  assert.equal((await editableBody(gzipSync(plain), fields("gzip"), LIMIT)).text?.value, "hello");
  const twice = [...fields("gzip"), "content-encoding", "br"];
  assert.equal((await editableBody(brotliCompressSync(gzipSync(plain)), twice, LIMIT)).text?.value, "hello");
  for (const [bytes, coding] of [
    [plain, "gzip"],
    [gzipSync(plain).subarray(0, 15), "gzip"],
    [plain, "dcb"],
    [plain, Array<string>(20).fill("gzip").join()],
  ] as const) {
    const body = await editableBody(bytes, fields(coding), LIMIT);
    assert.equal(body.form, "coded", coding);
    assert.deepEqual(Buffer.from(body.bytes), bytes);
  }
});

test("a small body that unfolds beyond the limit stays coded", async () => {
  const bomb = gzipSync(Buffer.alloc(3_000_000));
  const body = await editableBody(bomb, ["Content-Encoding", "gzip"], LIMIT);
  assert.equal(body.form, "coded");
  assert.equal(body.bytes.length, bomb.length);
});

test("a text that its charset cannot say becomes UTF-8, and the type says so", () => {
  for (const [type, expected] of [
    ["text/html; charset=iso-8859-1", "text/html; charset=utf-8"],
    ['text/html; charset="latin1"; x=y', "text/html; charset=utf-8; x=y"],
  ] as const) {
    const fields: RawFields = ["Content-Type", type];
    assert.deepEqual(encodeEditedText("日本", fields, undefined), Buffer.from("日本"));
    assert.deepEqual(fields, ["Content-Type", expected]);
  }
});

test("a byte order mark that the type contradicts stays, unless the editor named another charset", async () => {
  const declared: RawFields = ["Content-Type", "text/css; charset=big5"];
  const { text } = await editableBody(Buffer.of(0xfe, 0xff, 0x00, 0x61), declared, LIMIT);
  assert.equal(text?.value, "a");
  assert.deepEqual(encodeEditedText("b", declared, text), Buffer.of(0xfe, 0xff, 0x00, 0x62));
  assert.deepEqual(encodeEditedText("é", ["Content-Type", "text/css; charset=utf-8"], text), Buffer.from("é"));
});

test("a character that its charset would write in other bytes makes no text of a body", async () => {
  const type: RawFields = ["Content-Type", "text/html; charset=shift_jis"];
  assert.equal((await editableBody(Buffer.of(0xee, 0xef), type, LIMIT)).text?.value, "ⅰ");
  assert.equal((await editableBody(Buffer.of(0xfa, 0x40), type, LIMIT)).text, undefined);
});

test("an edited body is coded as its fields say, or plain and without the field where that cannot be done", async () => {
  const plain = Buffer.from("edited");
  const gzip: RawFields = ["Content-Encoding", "gzip, br"];
  const { bytes } = decodeContentSync(await encodeBody(plain, gzip), "gzip, br");
  assert.deepEqual(Buffer.from(bytes), plain);
  const odd: RawFields = ["content-encoding", "dcb", "X", "1"];
  assert.deepEqual(await encodeBody(plain, odd), plain);
  assert.deepEqual(odd, ["X", "1"]);
});

test("whatever the bytes, type and coding: what is shown as text is the same bytes again", async () => {
  const types = [
    "text/plain",
    "text/html; charset=shift_jis",
    "text/plain; charset=utf-16le",
    "text/css; charset=big5",
  ];
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc.string({ unit: "grapheme", maxLength: 30 }).map((text) => new TextEncoder().encode(text)),
    fc
      .array(fc.constantFrom(0xff, 0xfe, 0xef, 0xbb, 0xbf, 0x41, 0x00, 0x81), { maxLength: 12 })
      .map((octets) => Uint8Array.from(octets)),
  );
  await fc.assert(
    fc.asyncProperty(
      bytes,
      fc.constantFrom(undefined, "application/octet-stream", "application/json", "text/plain; charset=odd", ...types),
      fc.constantFrom("identity", "gzip", "br, zstd"),
      async (plain, type, coding) => {
        const fields: RawFields = ["Content-Encoding", coding, ...(type === undefined ? [] : ["Content-Type", type])];
        const coded = await encodeContent(plain, coding);
        assert.ok(coded);
        const body = await editableBody(coded, fields, LIMIT);
        assert.equal(body.form, "decoded");
        assert.deepEqual(Buffer.from(body.bytes), Buffer.from(plain));
        if (body.text === undefined) return;
        assert.deepEqual(encodeEditedText(body.text.value, [...fields], body.text), Buffer.from(plain));
      },
    ),
    { numRuns: 300 },
  );
});
