import assert from "node:assert/strict";
import { test } from "node:test";
import { closePayload, frameBytes, MessageDeflater, MessageInflater } from "../src/index.ts";
import type { OutgoingFrame } from "../src/index.ts";
import { readAll, SERVER, singly } from "./reading.ts";

/**
 * The cases of the Autobahn test suite as a table of our own: what one side sends, and what a reader makes of it.
 * `text:…`, `binary:n bytes`, `ping:…`, `pong:…` and `close:code` are messages; `!code` is the violation that ends reading,
 * and `?` a message whose content is not what the standard asks for.
 */
type Case = readonly [id: string, frames: readonly OutgoingFrame[], expected: readonly string[]];

const text = (payload: string | Buffer, more: Partial<OutgoingFrame> = {}): OutgoingFrame => ({
  opcode: 1,
  payload: Buffer.from(payload),
  ...more,
});
const binary = (length: number): OutgoingFrame => ({ opcode: 2, payload: Buffer.alloc(length, 0xfe) });
const more = (payload: string | Buffer, isFinal = false): OutgoingFrame => ({
  opcode: 0,
  payload: Buffer.from(payload),
  isFinal,
});
const ping = (payload: string | Buffer = "", change: Partial<OutgoingFrame> = {}): OutgoingFrame => ({
  opcode: 9,
  payload: Buffer.from(payload),
  ...change,
});
const pong = (payload = "", change: Partial<OutgoingFrame> = {}): OutgoingFrame => ({
  opcode: 10,
  payload: Buffer.from(payload),
  ...change,
});
const close = (payload: Buffer): OutgoingFrame => ({ opcode: 8, payload });
const open = { isFinal: false };

const LENGTHS = [0, 125, 126, 127, 128, 65_535, 65_536];
const VALID_TEXTS = [
  "Hello-µ@ßöäüàá-UTF-8!!",
  "κόσμε",
  "\u0000",
  "\u0080",
  "\u0800",
  "\u{10000}",
  "\u007f",
  "\u07ff",
  "\uffff",
  "\u{10ffff}",
  "\ud7ff",
  "\ue000",
  "\ufffd",
  "\ufffe",
];
const INVALID_TEXTS = [
  "cebae1bdb9cf83cebcceb5eda080656469746564",
  "cebae1bdb9cf83cebcceb5f4908080656469746564",
  "fe",
  "ff",
  "fefeffff",
  "80",
  "bf",
  "8080",
  "c020",
  "c0",
  "e080",
  "f08080",
  "c0af",
  "e080af",
  "f08080af",
  "f8808080af",
  "fc80808080af",
  "c1bf",
  "e09fbf",
  "f08fbfbf",
  "eda080",
  "edbfbf",
  "eda080edb080",
  "f4908080",
  "ceba",
].map((hex) => (hex === "ceba" ? Buffer.from("ce", "hex") : Buffer.from(hex, "hex")));
const GOOD_CODES = [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999];
const BAD_CODES = [0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999, 5000, 65_535];

const CASES: readonly Case[] = [
  ...LENGTHS.map((length, index): Case => [
    `1.1.${index + 1}`,
    [text("*".repeat(length))],
    [`text:${"*".repeat(length)}`],
  ]),
  ...LENGTHS.map((length, index): Case => [`1.2.${index + 1}`, [binary(length)], [`binary:${length} bytes`]]),
  ["2.1", [ping()], ["ping:"]],
  ["2.2", [ping("Hello")], ["ping:Hello"]],
  [
    "2.3",
    [ping(Buffer.from("00fffefdfcfb00ff", "hex"))],
    [`ping:${Buffer.from("00fffefdfcfb00ff", "hex").toString()}`],
  ],
  ["2.4", [ping("x".repeat(125))], [`ping:${"x".repeat(125)}`]],
  ["2.5", [ping("x".repeat(126))], ["!long-control"]],
  ["2.7", [pong()], ["pong:"]],
  ["2.8", [pong("unsolicited")], ["pong:unsolicited"]],
  ["2.9", [pong("unsolicited"), ping("p")], ["pong:unsolicited", "ping:p"]],
  [
    "2.10",
    Array.from({ length: 10 }, (_, index) => ping(`p${index}`)),
    Array.from({ length: 10 }, (_, index) => `ping:p${index}`),
  ],
  ["3.1", [text("a", { reserved: 1 })], ["!reserved-bits"]],
  ["3.2", [text("a"), text("b", { reserved: 2 }), ping()], ["text:a", "!reserved-bits"]],
  ["3.3", [text("a"), text("b", { reserved: 3 }), ping()], ["text:a", "!reserved-bits"]],
  ["3.4", [text("a"), text("b", { reserved: 4 }), ping()], ["text:a", "!reserved-bits"]],
  ["3.5", [{ ...binary(8), reserved: 5 }], ["!reserved-bits"]],
  ["3.6", [ping("a", { reserved: 6 })], ["!reserved-bits"]],
  ["3.7", [{ ...close(Buffer.alloc(0)), reserved: 7 }], ["!reserved-bits"]],
  ...[3, 4, 5, 6, 7].map((opcode, index): Case => [
    `4.1.${index + 1}`,
    [{ opcode, payload: Buffer.from("x") }],
    ["!reserved-opcode"],
  ]),
  ...[11, 12, 13, 14, 15].map((opcode, index): Case => [
    `4.2.${index + 1}`,
    [text("a"), { opcode, payload: Buffer.alloc(0) }, ping()],
    ["text:a", "!reserved-opcode"],
  ]),
  ["5.1", [ping("a", open), { opcode: 0, payload: Buffer.from("b") }], ["!fragmented-control"]],
  ["5.2", [pong("a", open), { opcode: 0, payload: Buffer.from("b") }], ["!fragmented-control"]],
  ["5.3", [text("frag1", open), more("frag2", true)], ["text:frag1frag2"]],
  ["5.6", [text("frag1", open), ping("inside"), more("frag2", true)], ["ping:inside", "text:frag1frag2"]],
  ["5.9", [more("nothing", true), text("x")], ["!continuation-without-start"]],
  ["5.12", [more("nothing"), text("x")], ["!continuation-without-start"]],
  [
    "5.15",
    [text("frag1", open), more("frag2", true), more("frag3"), text("frag4")],
    ["text:frag1frag2", "!continuation-without-start"],
  ],
  ["5.18", [text("frag1", open), text("frag2")], ["!message-inside-message"]],
  [
    "5.19",
    [text("1", open), more("2"), ping("p"), more("3"), more("4"), ping("q"), more("5", true)],
    ["ping:p", "ping:q", "text:12345"],
  ],
  ["6.1.1", [text("")], ["text:"]],
  ["6.1.2", [text("", open), more(""), more("", true)], ["text:"]],
  ["6.1.3", [text("", open), more("middle"), more("", true)], ["text:middle"]],
  ...VALID_TEXTS.map((value, index): Case => [`6.2-6.23 valid ${index}`, [text(value)], [`text:${value}`]]),
  ...VALID_TEXTS.map((value, index): Case => {
    const bytes = singly(Buffer.from(value));
    const frames = bytes.map((byte, at) => ({
      opcode: at === 0 ? 1 : 0,
      payload: byte,
      isFinal: at === bytes.length - 1,
    }));
    return [`6.2-6.23 valid ${index}, a byte in each frame`, frames, [`text:${value}`]];
  }),
  ...INVALID_TEXTS.map((value, index): Case => [`6.3-6.21 invalid ${index}`, [text(value)], ["?text"]]),
  ...INVALID_TEXTS.map((value, index): Case => [
    `6.4 invalid ${index} in two frames`,
    [text(value.subarray(0, 1), open), more(value.subarray(1), true)],
    ["?text"],
  ]),
  ["7.1.1", [text("a"), close(closePayload(1000, ""))], ["text:a", "close:1000"]],
  ["7.3.1", [close(Buffer.alloc(0))], ["close:none"]],
  ["7.3.2", [close(Buffer.from("a"))], ["?close"]],
  ["7.3.3", [close(closePayload(1000, ""))], ["close:1000"]],
  ["7.3.4", [close(closePayload(1000, "Hello"))], ["close:1000"]],
  ["7.3.5", [close(closePayload(1000, "x".repeat(123)))], ["close:1000"]],
  ["7.3.6", [close(Buffer.concat([closePayload(1000, ""), Buffer.from("x".repeat(124))]))], ["!long-control"]],
  ["7.5.1", [close(Buffer.concat([closePayload(1000, ""), Buffer.from("cebaeda080", "hex")]))], ["?close"]],
  ...GOOD_CODES.map((code, index): Case => [`7.7.${index + 1}`, [close(closePayload(code, ""))], [`close:${code}`]]),
  ...BAD_CODES.map((code, index): Case => [`7.9.${index + 1}`, [close(closePayload(code, ""))], ["?close"]]),
  ...[256, 1024, 4096].map((kilobytes, index): Case => [
    `9.2.${index + 1}`,
    [binary(kilobytes * 1024)],
    [`binary:${kilobytes * 1024} bytes`],
  ]),
];

function outcome(pieces: readonly Buffer[]): string[] {
  const { frames, read, violation } = readAll(
    pieces,
    { ...SERVER, keptBytes: 16_000_000 },
    { inflater: undefined, keptBytes: 16_000_000 },
  );
  const seen: string[] = [];
  for (const [index, { message, close: facts, problem }] of read.entries()) {
    if (message === undefined) continue;
    const name = ({ 1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong" } as const)[
      message.opcode as 1 | 2 | 8 | 9 | 10
    ];
    if (problem !== undefined) seen.push(`?${name}`);
    else if (name === "close") seen.push(`close:${facts?.code ?? "none"}`);
    else if (name === "binary") seen.push(`binary:${message.payload.length} bytes`);
    else seen.push(`${name}:${message.payload.toString()}`);
    assert.ok(frames[index]);
  }
  return violation === undefined ? seen : [...seen, `!${violation.code}`];
}

test(`${CASES.length} cases after the Autobahn suite are read as the standard has it, in one piece`, () => {
  for (const [id, frames, expected] of CASES) {
    assert.deepEqual(outcome([Buffer.concat(frames.map((frame) => frameBytes(frame)))]), expected, id);
  }
});

test("and byte by byte", () => {
  for (const [id, frames, expected] of CASES) {
    const bytes = Buffer.concat(frames.map((frame) => frameBytes(frame)));
    if (bytes.length < 10_000) assert.deepEqual(outcome(singly(bytes)), expected, id);
  }
});

test("12 and 13: compressed messages of every size, in one frame and in many, with every window", () => {
  for (const takesOver of [true, false]) {
    for (const windowBits of [8, 9, 12, 15]) {
      const deflater = new MessageDeflater(takesOver, windowBits);
      const inflater = new MessageInflater(takesOver, 1_000_000);
      const wanted: string[] = [];
      const pieces: Buffer[] = [];
      for (const length of [0, 16, 64, 256, 1024, 4096, 8192, 16_384, 65_536, 131_072]) {
        const message = JSON.stringify({
          sale: "x".repeat(length / 2),
          list: Array.from({ length: length / 16 }, (_, at) => at),
        });
        const compressed = deflater.deflate(Buffer.from(message));
        const third = Math.ceil(compressed.length / 3);
        wanted.push(message, message);
        pieces.push(frameBytes({ opcode: 1, payload: compressed, reserved: 4 }));
        const again = deflater.deflate(Buffer.from(message));
        const parts = [again.subarray(0, third), again.subarray(third, 2 * third), again.subarray(2 * third)];
        for (const [at, part] of parts.entries()) {
          pieces.push(
            frameBytes({ opcode: at === 0 ? 1 : 0, payload: part, reserved: at === 0 ? 4 : 0, isFinal: at === 2 }),
          );
        }
      }
      const { read, violation } = readAll(
        [Buffer.concat(pieces)],
        { ...SERVER, allowedReserved: 4 },
        { inflater, keptBytes: 1_000_000 },
      );
      assert.equal(violation, undefined);
      const messages = read.flatMap(({ message, problem }) =>
        message === undefined ? [] : [problem ?? message.payload.toString()],
      );
      assert.deepEqual(messages, wanted, `${takesOver} ${windowBits}`);
    }
  }
});

test("13: a compressed message that is no deflate is told, and a bit inside a message ends reading", () => {
  const options = { ...SERVER, allowedReserved: 4 };
  const inflater = new MessageInflater(true, 1000);
  const bad = readAll([frameBytes({ opcode: 1, payload: Buffer.from("ffffffff", "hex"), reserved: 4 })], options, {
    inflater,
    keptBytes: 1000,
  });
  assert.match(bad.read[0]?.problem ?? "", /cannot be decompressed/);
  const inside = [
    frameBytes({ opcode: 1, payload: Buffer.from("00", "hex"), reserved: 4, isFinal: false }),
    frameBytes({ opcode: 0, payload: Buffer.from("00", "hex"), reserved: 4 }),
  ];
  assert.equal(readAll(inside, options, { inflater, keptBytes: 1000 }).violation?.code, "reserved-bits");
});

test("a message that is kept only in part is told so, and cut where it was", () => {
  const frames = [text("1234", open), more("5678"), more("90", true)].map((frame) => frameBytes(frame));
  const { read } = readAll(frames, SERVER, { inflater: undefined, keptBytes: 6 });
  assert.deepEqual(
    read.map(({ message }) => [message?.payload.toString(), message?.isCut, message?.fragments]),
    [
      [undefined, undefined, undefined],
      [undefined, undefined, undefined],
      ["123456", true, 3],
    ],
  );
  const compressed = frameBytes({
    opcode: 1,
    payload: new MessageDeflater(true, 15).deflate(Buffer.alloc(500, 7)),
    reserved: 4,
  });
  const inflater = new MessageInflater(true, 1000);
  const cut = readAll(
    [compressed, compressed],
    { ...SERVER, allowedReserved: 4, keptBytes: 2 },
    { inflater, keptBytes: 2 },
  );
  assert.deepEqual(
    cut.read.map(({ problem }) => problem),
    ["A compressed message is too large to be read", "A compressed message is too large to be read"],
  );
});
