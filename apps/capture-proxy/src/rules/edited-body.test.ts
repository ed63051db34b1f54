import assert from "node:assert/strict";
import { test } from "node:test";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import fc from "fast-check";
import type { RawFields } from "@headworks/http1";
import type { Content } from "#exchange/exchange.ts";
import { EditedBody } from "./edited-body.ts";
import { decodeOctets, encodeOctets, readTextBody, withCharset, writeTextBody } from "./text-body.ts";

function bodyOf(bytes: Buffer, fields: RawFields, content: Content = { kind: "complete", bytes }): EditedBody {
  return new EditedBody(
    {
      noBodyReason: () => undefined,
      obstacle: () => undefined,
      isBodiless: () => false,
      fields: () => fields,
      content: () => Promise.resolve(content),
    },
    10_000,
  );
}

test("invalid UTF-8 survives a round trip as text", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (octets) => {
      const bytes = Buffer.from(octets);
      const text = decodeOctets(bytes);
      assert.deepEqual(encodeOctets(text), bytes);
    }),
  );
  for (const text of ["plain", "größe 😀", ""]) assert.equal(decodeOctets(Buffer.from(text)), text);
  assert.equal(decodeOctets(Buffer.of(0x61, 0xff, 0xc3, 0xbc)), "a\udcffü");
  // UTF-8 encodings of surrogates and overlong forms are invalid.
  for (const octets of [
    [0xed, 0xa0, 0x80],
    [0xc0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xe2, 0x82],
  ]) {
    assert.deepEqual(encodeOctets(decodeOctets(Buffer.from(octets))), Buffer.from(octets));
  }
});

test("bytes of any type are unchanged when the text is", () => {
  const types = fc.constantFrom(
    undefined,
    "text/html",
    "text/plain; charset=shift_jis",
    "application/json",
    "x/y",
    "text/plain; charset=utf-16le",
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), types, (octets, type) => {
      const bytes = Buffer.from(octets);
      const body = readTextBody(bytes, type);
      if (body !== undefined) assert.deepEqual(writeTextBody(body.text, body), { bytes });
    }),
    { numRuns: 1000 },
  );
});

test("images and audio are not text, SVG is", () => {
  assert.equal(readTextBody(Buffer.from("x"), "image/png"), undefined);
  assert.equal(readTextBody(Buffer.from("x"), "video/mp4"), undefined);
  assert.equal(readTextBody(Buffer.from("<svg/>"), "image/svg+xml")?.text, "<svg/>");
  assert.equal(readTextBody(Buffer.from("x"), undefined)?.text, "x");
});

test("a text that its charset cannot encode becomes UTF-8, also in the content type; a byte order mark stays", async () => {
  const fields = ["Content-Type", 'text/plain; charset="iso-8859-1"; x=1'];
  const body = bodyOf(Buffer.from("caf\xe9", "latin1"), fields);
  await body.load();
  assert.equal(body.text, "café");
  body.replaceText("café €→");
  body.replaceText(`${body.text} again`);
  const finished = await body.finish();
  assert.equal(finished.bytes.toString(), "café €→ again");
  assert.deepEqual(finished.fields, ["Content-Type", "text/plain; charset=utf-8; x=1"]);
  const marked = bodyOf(Buffer.from("\ufeffa"), []);
  await marked.load();
  assert.equal(marked.text, "a");
  marked.replaceText("b");
  assert.equal((await marked.finish()).bytes.toString(), "\ufeffb");
  assert.equal(withCharset("text/html", "utf-8"), "text/html; charset=utf-8");
});

test("a body that cannot be decoded reports why and is not changed", async () => {
  const gzip = gzipSync("text ".repeat(10_000));
  const cases: readonly (readonly [Buffer, string, RegExp])[] = [
    [gzip, "gzip", /decoded body is larger/],
    [gzipSync("x").subarray(0, 10), "gzip", /is truncated/],
    [Buffer.from("no gzip"), "gzip", /is not in its declared content coding/],
    [Buffer.from("x"), "compress", /compress cannot be decoded/],
    [Buffer.from("x"), Array<string>(20).fill("gzip").join(), /20 content codings, more than 5, cannot be decoded/],
  ];
  for (const [bytes, coding, reason] of cases) {
    const body = bodyOf(bytes, ["Content-Encoding", coding]);
    await body.load();
    assert.match(body.obstacle ?? "", reason);
    assert.deepEqual([body.text, body.bytes, body.isChanged], [undefined, undefined, false]);
    assert.equal(body.isForwarded, false);
  }
  const late = bodyOf(Buffer.alloc(0), [], { kind: "too-large" });
  await late.load();
  assert.match(late.obstacle ?? "", /larger than 10000 bytes/);
  assert.equal(late.isForwarded, true);
});

test("codings in several fields are decoded for an edit and applied again", async () => {
  const fields: RawFields = ["Content-Encoding", "gzip", "X", "1", "content-encoding", "identity, BR"];
  const body = bodyOf(brotliCompressSync(gzipSync("before")), fields);
  await body.load();
  assert.equal(body.text, "before");
  body.replaceText("after");
  const finished = await body.finish();
  assert.deepEqual(finished.fields, fields);
  assert.equal(gunzipSync(brotliDecompressSync(finished.bytes)).toString(), "after");
});

test("a replaced body is sent without coding, and digests of the old one are removed", async () => {
  const body = bodyOf(Buffer.from("old"), ["Content-Encoding", "br", "Repr-Digest", "sha-256=:x:", "ETag", '"1"']);
  body.replaceByText("new");
  const { bytes, fields, words } = await body.finish();
  assert.deepEqual([bytes.toString(), fields], ["new", ["ETag", '"1"']]);
  assert.equal(words.length, 2);
});
