import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CLIENT, readAll, SERVER, singly } from "../test/reading.ts";
import { frameBytes, FrameReader, opcodeName, OPCODES, type Violation } from "./index.ts";

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(" ", ""), "hex");

test("the examples of RFC 6455, 5.7 are read", () => {
  const table: readonly [string, string, typeof SERVER, number, string][] = [
    ["an unmasked text", "81 05 48 65 6c 6c 6f", SERVER, 1, "Hello"],
    ["a masked text", "81 85 37 fa 21 3d 7f 9f 4d 51 58", CLIENT, 1, "Hello"],
    ["a ping", "89 05 48 65 6c 6c 6f", SERVER, 9, "Hello"],
    ["a masked pong", "8a 85 37 fa 21 3d 7f 9f 4d 51 58", CLIENT, 10, "Hello"],
    ["an empty text", "81 00", SERVER, 1, ""],
    ["an empty masked binary", "82 80 01 02 03 04", CLIENT, 2, ""],
  ];
  for (const [name, bytes, options, opcode, payload] of table) {
    for (const pieces of [[hex(bytes)], singly(hex(bytes))]) {
      const { frames, violation } = readAll(pieces, options);
      assert.deepEqual(
        [violation, frames.map((frame) => [frame.opcode, frame.payload.toString(), frame.isFinal])],
        [undefined, [[opcode, payload, true]]],
        name,
      );
    }
  }
});

test("lengths of every class are read, and their frames counted with their heads", () => {
  for (const length of [0, 1, 125, 126, 127, 128, 65_535, 65_536, 70_000]) {
    for (const mask of [undefined, 0xdeadbeef]) {
      const bytes = frameBytes({ opcode: 2, payload: Buffer.alloc(length, 7), mask });
      const { frames } = readAll([bytes], mask === undefined ? SERVER : CLIENT);
      assert.deepEqual(
        frames.map((frame) => [
          frame.payloadBytes,
          frame.payload.equals(Buffer.alloc(length, 7)),
          frame.wireBytes,
          frame.mask,
        ]),
        [[length, true, bytes.length, mask]],
      );
    }
  }
});

test("what RFC 6455 forbids ends reading with its reason", () => {
  const table: readonly [string, Violation["code"], typeof SERVER][] = [
    ["91 00", "reserved-bits", SERVER],
    ["a1 00", "reserved-bits", SERVER],
    ["c1 00", "reserved-bits", SERVER],
    ["f1 00", "reserved-bits", SERVER],
    ["c9 00", "reserved-bits", { ...SERVER, allowedReserved: 4 }],
    ["a1 00", "reserved-bits", { ...SERVER, allowedReserved: 4 }],
    ["83 00", "reserved-opcode", SERVER],
    ["87 00", "reserved-opcode", SERVER],
    ["8b 00", "reserved-opcode", SERVER],
    ["8f 00", "reserved-opcode", SERVER],
    ["09 00", "fragmented-control", SERVER],
    ["08 00", "fragmented-control", SERVER],
    ["89 7e 00 7e", "long-control", SERVER],
    ["88 7f 00 00 00 00 00 01 00 00", "long-control", SERVER],
    ["81 7e 00 7d", "length-not-minimal", SERVER],
    ["81 7e 00 00", "length-not-minimal", SERVER],
    ["81 7f 00 00 00 00 00 00 ff ff", "length-not-minimal", SERVER],
    ["81 7f 80 00 00 00 00 00 00 00", "length-too-large", SERVER],
    ["81 7f 00 20 00 00 00 00 00 00", "length-too-large", SERVER],
    ["81 80 01 02 03 04", "mask-unexpected", SERVER],
    ["81 00", "mask-missing", CLIENT],
    ["80 00", "continuation-without-start", SERVER],
    ["01 00 81 00", "message-inside-message", SERVER],
    ["01 00 82 00", "message-inside-message", SERVER],
    ["01 00 80 00 80 00", "continuation-without-start", SERVER],
  ];
  for (const [bytes, code, options] of table) {
    for (const pieces of [[hex(bytes)], singly(hex(bytes))]) {
      assert.equal(readAll(pieces, options).violation?.code, code, bytes);
    }
  }
});

test("after a violation nothing more is read", () => {
  const reader = new FrameReader(SERVER);
  assert.equal(reader.read(hex("83 00 81 00"), 0), 2);
  assert.equal(reader.read(hex("81 00"), 0), 0);
  assert.equal(reader.frame, undefined);
  assert.equal(reader.violation?.code, "reserved-opcode");
});

test("of a payload larger than what is kept the beginning is kept and all of it counted", () => {
  const bytes = frameBytes({ opcode: 1, payload: Buffer.from("0123456789"), mask: 0x01020304 });
  for (const pieces of [[bytes], singly(bytes)]) {
    const { frames } = readAll(pieces, { ...CLIENT, keptBytes: 4 });
    assert.deepEqual(
      frames.map((frame) => [frame.payload.toString(), frame.payloadBytes]),
      [["0123", 10]],
    );
  }
});

test("an announced length of petabytes takes no memory before its bytes come", () => {
  const reader = new FrameReader({ ...SERVER, keptBytes: 16 });
  reader.read(hex("82 7f 00 10 00 00 00 00 00 00"), 0);
  assert.equal(reader.violation, undefined);
  for (let index = 0; index < 64; index += 1) reader.read(Buffer.alloc(1_048_576), 0);
  assert.equal(reader.frame, undefined);
  assert.equal(reader.isBetweenFrames, false);
});

test("the bytes that were read stay as they were", () => {
  const bytes = frameBytes({ opcode: 1, payload: Buffer.from("untouched"), mask: 0xa1b2c3d4 });
  const before = Buffer.from(bytes);
  assert.equal(readAll([bytes], CLIENT).frames[0]?.payload.toString(), "untouched");
  assert.deepEqual(bytes, before);
});

const anyFrame = fc.record({
  opcode: fc.constantFrom(1, 2, 9, 10),
  payload: fc.uint8Array({ maxLength: 125 }),
  mask: fc.nat({ max: 0xffffffff }),
});

test("whatever frames are written are read again, however their bytes are cut", () => {
  fc.assert(
    fc.property(
      fc.array(anyFrame, { maxLength: 8 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 40 })),
      (frames, cuts) => {
        const bytes = Buffer.concat(frames.map((frame) => frameBytes(frame)));
        const pieces: Buffer[] = [];
        for (let at = 0; at < bytes.length;) {
          const size = Number(cuts.next().value);
          pieces.push(bytes.subarray(at, at + size));
          at += size;
        }
        const { frames: read, violation, wireBytes } = readAll(pieces, CLIENT);
        assert.equal(violation, undefined);
        assert.equal(wireBytes, bytes.length);
        assert.deepEqual(
          read.map(({ opcode, payload, mask }) => ({ opcode, payload: Buffer.from(payload).toString("hex"), mask })),
          frames.map(({ opcode, payload, mask }) => ({ opcode, payload: Buffer.from(payload).toString("hex"), mask })),
        );
      },
    ),
  );
});

test("random bytes are read or refused without an error, and alike in one piece and byte by byte", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), fc.boolean(), (random, isMasked) => {
      const bytes = Buffer.from(random);
      const options = { isMasked, allowedReserved: 4, keptBytes: 64 };
      const whole = readAll([bytes], options);
      const cut = readAll(singly(bytes), options);
      assert.deepEqual(cut.violation, whole.violation);
      assert.deepEqual(cut.frames, whole.frames);
      assert.ok(whole.wireBytes <= bytes.length);
    }),
  );
});

test("defined opcodes have names, and reserved ones have none", () => {
  for (const [name, opcode] of Object.entries(OPCODES)) assert.equal(opcodeName(opcode), name);
  for (const opcode of [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]) assert.equal(opcodeName(opcode), undefined);
});

test("the examples of RFC 6455, 5.7 are written", () => {
  const hello = Buffer.from("Hello");
  assert.equal(frameBytes({ opcode: 1, payload: hello }).toString("hex"), "810548656c6c6f");
  assert.equal(frameBytes({ opcode: 1, payload: hello, mask: 0x37fa213d }).toString("hex"), "818537fa213d7f9f4d5158");
  assert.equal(frameBytes({ opcode: 1, payload: Buffer.from("Hel"), isFinal: false }).toString("hex"), "010348656c");
  assert.equal(frameBytes({ opcode: 0, payload: Buffer.from("lo") }).toString("hex"), "80026c6f");
  assert.equal(frameBytes({ opcode: 2, payload: Buffer.alloc(256) }).toString("hex", 0, 4), "827e0100");
  assert.equal(frameBytes({ opcode: 2, payload: Buffer.alloc(65_536) }).toString("hex", 0, 10), "827f0000000000010000");
  assert.equal(frameBytes({ opcode: 1, payload: hello, reserved: 4 })[0], 0xc1);
});

test("the payload that is given stays as it is", () => {
  const payload = Buffer.from("mine");
  frameBytes({ opcode: 1, payload, mask: 0xffffffff });
  assert.equal(payload.toString(), "mine");
});
