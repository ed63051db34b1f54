import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Base64Reader, frameMessage, MessageReader, type ReaderEnd, type WireMessage } from "./index.ts";

const MAX_KEPT_BYTES = 64;

interface Read {
  readonly messages: WireMessage[];
  readonly end: ReaderEnd;
}

function read(pieces: readonly Buffer[], allowsTrailers = false, maxKeptBytes = MAX_KEPT_BYTES): Read {
  const messages: WireMessage[] = [];
  const reader = new MessageReader({ maxKeptBytes, allowsTrailers }, (message) => messages.push(message));
  for (const piece of pieces) reader.push(piece);
  return { messages, end: reader.end() };
}

/** Cuts at the given places, which may repeat: empty pieces are pieces too. */
function cutAt(body: Buffer, places: readonly number[]): Buffer[] {
  const cuts = [0, ...places.map((place) => place % (body.length + 1)).toSorted((a, b) => a - b), body.length];
  return cuts.slice(1).map((to, at) => body.subarray(cuts[at] ?? 0, to));
}

test("messages come out the same however the body is cut", () => {
  const bodies = fc.array(fc.tuple(fc.uint8Array({ maxLength: 100 }), fc.constantFrom(0, 1)), { maxLength: 8 });
  fc.assert(
    fc.property(bodies, fc.array(fc.nat(), { maxLength: 40 }), (parts, places) => {
      const { messages, end } = read(
        cutAt(Buffer.concat(parts.map(([bytes, flags]) => frameMessage(bytes, flags))), places),
      );
      assert.deepEqual(
        messages.map(({ flags, sizeBytes, bytes }) => ({ flags, sizeBytes, bytes: [...bytes] })),
        parts.map(([bytes, flags]) => ({
          flags,
          sizeBytes: bytes.length,
          bytes: [...bytes.subarray(0, MAX_KEPT_BYTES)],
        })),
      );
      assert.deepEqual(end, { kind: "clean" });
    }),
  );
});

test("any bytes are read without an exception, and kept bytes stay within the limit", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 })), fc.boolean(), (pieces, allowsTrailers) => {
      const { messages, end } = read(
        pieces.map((piece) => Buffer.from(piece)),
        allowsTrailers,
      );
      for (const { bytes, sizeBytes } of messages) assert.ok(bytes.length === Math.min(sizeBytes, MAX_KEPT_BYTES));
      if (end.kind === "cut") assert.ok(end.bytes.length <= MAX_KEPT_BYTES);
    }),
  );
});

test("a prefix that claims 4 GiB reserves nothing", () => {
  const before = process.memoryUsage().arrayBuffers;
  const readers = Array.from({ length: 100 }, () => {
    const reader = new MessageReader({ maxKeptBytes: 1 << 30, allowsTrailers: false }, () => assert.fail("no message"));
    reader.push(Buffer.from([0, 255, 255, 255, 255, 1, 2, 3]));
    return reader;
  });
  assert.ok(process.memoryUsage().arrayBuffers - before < 10_000_000);
  for (const reader of readers) {
    assert.deepEqual(reader.end(), { kind: "cut", sizeBytes: 4_294_967_295, bytes: Buffer.from([1, 2, 3]) });
  }
});

test("a body that ends early says where", () => {
  const whole = frameMessage(Buffer.from("abc"));
  assert.deepEqual(read([whole.subarray(0, 3)]).end, {
    kind: "cut",
    sizeBytes: undefined,
    bytes: whole.subarray(0, 3),
  });
  assert.deepEqual(read([whole.subarray(0, 7)]).end, { kind: "cut", sizeBytes: 3, bytes: Buffer.from("ab") });
});

test("flags that gRPC does not have end the reading and are named with their place", () => {
  const body = Buffer.concat([frameMessage(Buffer.from("abc")), Buffer.from("<html>no gRPC</html>")]);
  for (const pieces of [[body], cutAt(body, [1, 2, 3, 9, 10])]) {
    const { messages, end } = read(pieces);
    assert.equal(messages.length, 1);
    assert.deepEqual(end, { kind: "broken", reason: "0x3c at byte 8 is no flag of a gRPC message" });
  }
});

test("trailers are a message only where gRPC-Web is spoken", () => {
  const body = [frameMessage(Buffer.from("grpc-status:0"), 0x80)];
  assert.deepEqual(
    read(body, true).messages.map(({ isTrailer, isCompressed }) => ({ isTrailer, isCompressed })),
    [{ isTrailer: true, isCompressed: false }],
  );
  assert.equal(read(body).end.kind, "broken");
});

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
