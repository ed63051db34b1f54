import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Base64Reader } from "./index.ts";

function decode(text: string, pieceLength = text.length): { readonly bytes: Buffer; readonly isBroken: boolean } {
  const reader = new Base64Reader();
  const pieces: Buffer[] = [];
  for (let at = 0; at < text.length; at += Math.max(1, pieceLength)) {
    pieces.push(reader.push(Buffer.from(text.slice(at, at + Math.max(1, pieceLength)), "latin1")));
  }
  pieces.push(reader.end());
  return { bytes: Buffer.concat(pieces), isBroken: reader.isBroken };
}

test("pieces that were each encoded alone become the bytes they were, however the text is cut", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 20 })), fc.integer({ min: 1, max: 9 }), (pieces, cut) => {
      const text = pieces.map((piece) => Buffer.from(piece).toString("base64")).join("");
      assert.deepEqual(decode(text, cut), { bytes: Buffer.concat(pieces), isBroken: false });
    }),
  );
});

test("any octets are read without a throw", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 50 })), (pieces) => {
      const reader = new Base64Reader();
      let inputBytes = 0;
      let outputBytes = 0;
      for (const piece of pieces) {
        inputBytes += piece.length;
        outputBytes += reader.push(Buffer.from(piece)).length;
      }
      assert.ok(outputBytes + reader.end().length <= inputBytes);
    }),
  );
});

test("line ends are skipped and missing padding at the end is forgiven", () => {
  assert.equal(decode("aGVs\r\nbG8").bytes.toString(), "hello");
});

test("text that is no base64 is broken from there on", () => {
  const { bytes, isBroken } = decode("aGVsbG8=aG%sbG8=aGVs", 8);
  assert.equal(bytes.toString(), "hello");
  assert.equal(isBroken, true);
  assert.equal(decode("ab=c").isBroken, true);
});
