import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FRAME, frame, PREFACE, settings } from "@headworks/testkit";
import { FRAME_SIZE_ERROR, HEADERS, Http2Error, PROTOCOL_ERROR } from "./codes.ts";
import { beginsAsHttp2, blockOf, FrameParser, type FrameSink } from "./frames.ts";

/** Notes frames as they are told; content of DATA in one piece, as it may come in any. */
class Noted implements FrameSink {
  isFinished = false;
  readonly events: string[] = [];
  /** Ends the reading behind this event. */
  last = Number.POSITIVE_INFINITY;
  #content: Buffer[] | undefined;

  onDataFrame(stream: number, flags: number, sizeBytes: number): void {
    assert.equal(this.#content, undefined, "DATA begins inside of DATA");
    this.#content = [];
    this.#note(`DATA ${stream} ${flags} ${sizeBytes}`);
  }

  onDataPiece(piece: Buffer): void {
    assert.ok(piece.length > 0, "a piece is never empty");
    assert.ok(this.#content !== undefined, "content of no frame");
    this.#content.push(Buffer.from(piece));
  }

  onDataFrameEnd(): void {
    assert.ok(this.#content !== undefined, "an end of no frame");
    this.#note(`content ${Buffer.concat(this.#content).toString("hex")}`);
    this.#content = undefined;
  }

  onFrame(type: number, flags: number, stream: number, content: Buffer): void {
    assert.equal(this.#content, undefined, "a frame inside of DATA");
    this.#note(`${type} ${flags} ${stream} ${content.toString("hex")}`);
  }

  #note(event: string): void {
    assert.equal(this.isFinished, false, "told when nothing more was to be");
    this.events.push(event);
    if (this.events.length >= this.last) this.isFinished = true;
  }
}

/** What is told of bytes that come in these pieces, and what is wrong with them. */
function recorder(pieces: readonly Buffer[], expectsPreface = false): { events: string[]; code: number | undefined } {
  const sink = new Noted();
  const parser = new FrameParser(sink, expectsPreface);
  try {
    for (const piece of pieces) parser.read(Buffer.from(piece));
  } catch (error) {
    assert.ok(error instanceof Http2Error, String(error));
    return { events: sink.events, code: error.http2Code };
  }
  return { events: sink.events, code: undefined };
}

function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return sorted.slice(1).map((end, at) => bytes.subarray(sorted[at], end));
}

function padded(type: number, flags: number, stream: number, content: string, padding: number): Buffer {
  return frame(
    type,
    flags | 8,
    stream,
    Buffer.concat([Buffer.from([padding]), Buffer.from(content), Buffer.alloc(padding)]),
  );
}

const SAMPLE = Buffer.concat([
  settings([1, 2]),
  frame(FRAME.data, 0, 1, "hello"),
  frame(FRAME.data, 1, 1),
  padded(FRAME.data, 0, 3, "padded", 7),
  padded(FRAME.data, 0, 3, "", 0),
  padded(FRAME.data, 1, 3, "", 255),
  frame(FRAME.headers, 4, 5, "block"),
  frame(FRAME.ping, 0, 0, "12345678"),
  frame(0xfe, 0xff, 0x7fffffff, ""),
]);

const SAMPLE_EVENTS = [
  "4 0 0 000100000002",
  "DATA 1 0 5",
  "content 68656c6c6f",
  "DATA 1 1 0",
  "content ",
  "DATA 3 8 14",
  "content 706164646564",
  "DATA 3 8 1",
  "content ",
  "DATA 3 9 256",
  "content ",
  "1 4 5 626c6f636b",
  "6 0 0 3132333435363738",
  "254 255 2147483647 ",
];

test("4.1: frames are told in order, without padding and with what counts against windows", () => {
  assert.deepEqual(recorder([SAMPLE]), { events: SAMPLE_EVENTS, code: undefined });
});

test("4.1: frames that are cut at any byte are the same frames", () => {
  for (let at = 0; at <= SAMPLE.length; at += 1) {
    assert.deepEqual(recorder(cutAt(SAMPLE, [at])).events, SAMPLE_EVENTS, `cut at ${at}`);
  }
  const single = Array.from(SAMPLE, (byte) => Buffer.from([byte]));
  assert.deepEqual(recorder(single).events, SAMPLE_EVENTS, "byte by byte");
});

const anyFrame = fc
  .record({
    type: fc.oneof(fc.constantFrom(0, 0, 1, 4, 6, 8, 9), fc.integer({ min: 0, max: 255 })),
    flags: fc.integer({ min: 0, max: 255 }),
    stream: fc.integer({ min: 0, max: 0xffffffff }),
    content: fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ minLength: 16_384, maxLength: 16_385 })),
  })
  .map(({ type, flags, stream, content }) => frame(type, flags, stream, Buffer.from(content)));

test("4.1: any frames, valid or not, cut into any pieces, tell the same and break with the same code", () => {
  const places = fc.array(fc.nat(), { maxLength: 30 });
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 8 }), places, fc.boolean(), (frames, cuts, isClient) => {
      const bytes = Buffer.concat([...(isClient ? [PREFACE] : []), settings(), ...frames]);
      const whole = recorder([bytes], isClient);
      assert.deepEqual(recorder(cutAt(bytes, cuts), isClient), whole);
    }),
    { numRuns: 300 },
  );
});

test("any bytes give nothing but frames and an Http2Error", () => {
  const places = fc.array(fc.nat(), { maxLength: 5 });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), places, (bytes, cuts) => {
      const all = Buffer.concat([settings(), Buffer.from(bytes)]);
      assert.deepEqual(recorder(cutAt(all, cuts)), recorder([all]));
    }),
    { numRuns: 500 },
  );
});

const SETTINGS = settings();

/** What breaks the reading, with which code, and what was told before. */
const BROKEN: readonly (readonly [what: string, bytes: Buffer, code: number, recorder: number])[] = [
  ["6.1: padding longer than its frame", Buffer.concat([SETTINGS, frame(0, 8, 1, "\x03ab")]), PROTOCOL_ERROR, 2],
  ["6.1: padding as long as its frame", Buffer.concat([SETTINGS, frame(0, 8, 1, "\x01")]), PROTOCOL_ERROR, 2],
  ["6.1: no length of the padding", Buffer.concat([SETTINGS, frame(0, 8, 1, "")]), FRAME_SIZE_ERROR, 1],
  ["4.2: DATA of 16,385 bytes", Buffer.concat([SETTINGS, frame(0, 0, 1, Buffer.alloc(16_385))]), FRAME_SIZE_ERROR, 1],
  ["4.2: an unknown frame of 16 MB", Buffer.concat([SETTINGS, Buffer.from("fffffffa0000000000", "hex")]), 6, 1],
  ["3.4: DATA before SETTINGS", frame(0, 0, 1, "x"), PROTOCOL_ERROR, 0],
  ["3.4: HEADERS before SETTINGS", frame(1, 5, 1, "x"), PROTOCOL_ERROR, 0],
  ["3.4: a confirmation before SETTINGS", frame(4, 1, 0), PROTOCOL_ERROR, 0],
  ["3.4: PING before SETTINGS", frame(6, 0, 0, "12345678"), PROTOCOL_ERROR, 0],
];

for (const [what, bytes, code, events] of BROKEN) {
  test(`${what} breaks the connection with ${code}, wherever it is cut`, () => {
    for (let at = 0; at <= Math.min(bytes.length, 64); at += 1) {
      const found = recorder(cutAt(bytes, [at]));
      assert.equal(found.code, code, `cut at ${at}`);
      assert.equal(found.events.length, events, `cut at ${at}`);
    }
  });
}

test("4.2: a frame of the largest size that everybody takes is taken", () => {
  for (const type of [0, 1]) {
    const large = Buffer.concat([SETTINGS, frame(type, 0, 1, Buffer.alloc(16_384, "x"))]);
    assert.equal(recorder([large]).code, undefined, `type ${type}`);
  }
});

test("4.2: a frame that is too large breaks before its content came", () => {
  assert.equal(
    recorder([SETTINGS, Buffer.from("00400100", "hex"), Buffer.from("0000000001", "hex")]).code,
    FRAME_SIZE_ERROR,
  );
});

test("3.4: the preface is read byte by byte, and breaks at its first wrong byte", () => {
  const good = Buffer.concat([PREFACE, SETTINGS]);
  for (let at = 0; at <= good.length; at += 1) {
    assert.deepEqual(recorder(cutAt(good, [at]), true), { events: ["4 0 0 "], code: undefined }, `cut at ${at}`);
  }
  for (let at = 0; at < PREFACE.length; at += 1) {
    const wrong = Buffer.from(PREFACE);
    wrong[at] = (wrong[at] ?? 0) ^ 1;
    assert.equal(recorder([wrong.subarray(0, at)], true).code, undefined, `${at} bytes are right`);
    assert.equal(
      recorder([wrong.subarray(0, at), wrong.subarray(at, at + 1)], true).code,
      PROTOCOL_ERROR,
      `byte ${at}`,
    );
  }
});

test("content of DATA is told as it comes, and does not wait for the frame to be whole", () => {
  const sink = new Noted();
  let pieces = 0;
  sink.onDataPiece = () => void (pieces += 1);
  const parser = new FrameParser(sink, false);
  parser.read(Buffer.concat([SETTINGS, frame(0, 0, 1, "abcd").subarray(0, 10)]));
  assert.equal(pieces, 1);
  parser.read(Buffer.from("b"));
  assert.equal(pieces, 2);
});

test("nothing is told any more once the receiver has ended, not even what came in the same read", () => {
  for (let last = 1; last < SAMPLE_EVENTS.length; last += 1) {
    // An end of DATA belongs to its frame.
    if (SAMPLE_EVENTS[last]?.startsWith("content") === true) continue;
    const sink = new Noted();
    sink.last = last;
    new FrameParser(sink, false).read(SAMPLE);
    assert.deepEqual(sink.events, SAMPLE_EVENTS.slice(0, last));
  }
});

test("the begin of a frame that is kept does not keep the whole read alive", () => {
  const parser = new FrameParser(new Noted(), false);
  const read = Buffer.alloc(65_536);
  const ping = frame(6, 0, 0, "12345678");
  Buffer.concat([SETTINGS, ping.subarray(0, 12)]).copy(read);
  parser.read(read.subarray(0, SETTINGS.length + 12));
  read.fill(0xff);
  assert.doesNotThrow(() => parser.read(ping.subarray(12)));
});

/** What of HEADERS belongs to the field block, or what is wrong with them. */
const BLOCKS: readonly (readonly [what: string, flags: number, content: string, block: string | number])[] = [
  ["nothing else", 0, "block", "block"],
  ["padding", 8, "\x02block\0\0", "block"],
  ["padding of no bytes", 8, "\0block", "block"],
  ["nothing but padding", 8, "\x02\0\0", ""],
  ["a priority", 0x20, "\0\0\0\x03\x10block", "block"],
  ["a priority that is exclusive", 0x20, "\x80\0\0\x03\x10block", "block"],
  ["padding and a priority", 0x28, "\x01\0\0\0\x03\x10block\0", "block"],
  ["a priority and no block", 0x20, "\0\0\0\x03\x10", ""],
  ["padding longer than the frame", 8, "\x08block", PROTOCOL_ERROR],
  ["padding over the priority", 0x28, "\x03\0\0\0\x03\x10ab", PROTOCOL_ERROR],
  ["no length of the padding", 8, "", FRAME_SIZE_ERROR],
  ["a priority that is cut off", 0x20, "\0\0\0\x03", FRAME_SIZE_ERROR],
  ["a priority that is cut off behind a length of padding", 0x28, "\0\0\0\0\x03", FRAME_SIZE_ERROR],
];

for (const [what, flags, content, expected] of BLOCKS) {
  test(`6.2: HEADERS with ${what} give ${JSON.stringify(expected)}`, () => {
    const bytes = Buffer.from(content, "latin1");
    if (typeof expected === "string") {
      assert.equal(blockOf(HEADERS, flags, bytes).toString("latin1"), expected);
    } else {
      assert.throws(() => blockOf(HEADERS, flags, bytes), { name: "Http2Error", http2Code: expected });
    }
  });
}

test("RFC 9113, 3.4: the preface is known by all of its bytes, and what differs in one of them is something else", () => {
  assert.equal(beginsAsHttp2(PREFACE), "yes");
  assert.equal(beginsAsHttp2(Buffer.concat([PREFACE, Buffer.from("x")])), "yes");
  for (let at = 0; at < PREFACE.length; at += 1) {
    assert.equal(beginsAsHttp2(PREFACE.subarray(0, at)), "maybe", `${at} bytes`);
    const other = Buffer.from(PREFACE);
    other[at] = (other[at] ?? 0) ^ 1;
    assert.equal(beginsAsHttp2(other), "no", `byte ${at}`);
    assert.equal(beginsAsHttp2(other.subarray(0, at + 1)), "no", `the first ${at + 1} bytes`);
  }
  for (const text of ["POST / HTTP/1.1", "PUT /", "PRIVATE /", "GET /"]) {
    assert.equal(beginsAsHttp2(Buffer.from(text)), "no", text);
  }
});
