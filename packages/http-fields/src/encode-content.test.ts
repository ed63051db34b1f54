import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import fc from "fast-check";
import { decodeContent, decodeText, encodeContent, encodeInPieces, encodeText } from "./content-coding.ts";

const CODINGS = ["gzip", "deflate", "br", "zstd", "x-gzip", "gzip, br", "br, gzip, zstd", "identity", ""];
for (const coding of CODINGS) {
  test(`content encoded as ${JSON.stringify(coding)} is decoded to the same content, small or large`, async () => {
    for (const plain of [Buffer.alloc(0), Buffer.from("text"), Buffer.from("long text ".repeat(20_000))]) {
      const coded = await encodeContent(plain, coding);
      assert.ok(coded);
      const { bytes, stop } = await decodeContent(coded, coding);
      assert.equal(stop, undefined);
      assert.deepEqual(Buffer.from(bytes), plain);
    }
  });
}

test("an unsupported coding is refused", async () => {
  for (const coding of ["compress", "gzip, dcb", "dcb, gzip", Array.from({ length: 6 }, () => "gzip").join()]) {
    assert.equal(await encodeContent(Buffer.from("x"), coding), undefined, coding);
    assert.equal(encodeInPieces([Buffer.from("x")], coding), undefined, coding);
  }
});

test("content encoded in pieces is decoded to the same content, however it was split", async () => {
  const plain = Buffer.from("text of some length, again and again. ".repeat(5000));
  for (const coding of CODINGS) {
    for (const pieceBytes of [777, 65_536, plain.length]) {
      const pieces = Array.from({ length: Math.ceil(plain.length / pieceBytes) }, (_, index) =>
        plain.subarray(index * pieceBytes, (index + 1) * pieceBytes),
      );
      const coded = Buffer.concat(await Array.fromAsync(encodeInPieces(pieces, coding) ?? []));
      const { bytes, stop } = await decodeContent(coded, coding);
      assert.deepEqual([stop, plain.equals(bytes)], [undefined, true], coding);
    }
  }
});

test("an error of the pieces is an error of the result", async () => {
  const broken = function* (): Generator<Uint8Array> {
    yield Buffer.from("a");
    throw new Error("broke off");
  };
  for (const coding of ["gzip, br", ""]) {
    await assert.rejects(Array.fromAsync(encodeInPieces(broken(), coding) ?? []), { message: "broke off" }, coding);
  }
});

const TEXTS: readonly (readonly [string, string])[] = [
  ["utf-8", "grüße 😀"],
  ["utf-16le", "grüße 😀"],
  ["utf-16be", "grüße 😀"],
  ["windows-1252", "grüße €"],
  ["iso-8859-2", "příliš žluťoučký"],
  ["koi8-r", "привет"],
  ["shift_jis", "日本語テキスト"],
  ["euc-jp", "日本語 丂"],
  ["gbk", "中文"],
  ["big5", "繁體中文"],
  ["euc-kr", "한국어"],
];
for (const [charset, text] of TEXTS) {
  test(`text of ${charset} survives encoding and decoding`, () => {
    const bytes = encodeText(text, charset);
    assert.ok(bytes);
    assert.equal(new TextDecoder(charset, { fatal: true }).decode(bytes), text);
  });
}

test("unsupported characters and charsets are refused", () => {
  assert.equal(encodeText("日", "windows-1252"), undefined);
  assert.equal(encodeText("a", "iso-2022-jp"), undefined);
  assert.equal(encodeText("a", "no-such-charset"), undefined);
});

test("any bytes at all survive as windows-1252", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (octets) => {
      const bytes = Uint8Array.from([0xff, ...octets]);
      const { text, charset } = decodeText(bytes, "text/plain; charset=windows-1252");
      if (charset !== "windows-1252") return;
      assert.deepEqual(Uint8Array.from(encodeText(text, charset) ?? []), bytes);
    }),
  );
});
