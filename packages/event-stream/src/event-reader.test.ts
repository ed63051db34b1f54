import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { EventReader } from "./event-reader.ts";
import type { EventBlock } from "./event-reader.ts";

const LIMIT_BYTES = 1_000_000;

/** What a reader tells of these pieces, ended or left open. */
function blocksOf(
  pieces: readonly (string | Buffer)[],
  options: { limit?: number; ends?: boolean } = {},
): EventBlock[] {
  const blocks: EventBlock[] = [];
  const reader = new EventReader({
    maxEventBytes: options.limit ?? LIMIT_BYTES,
    onBlock: (block) => void blocks.push(block),
  });
  for (const piece of pieces) reader.read(Buffer.from(piece));
  if (options.ends !== false) reader.end();
  return blocks;
}

/** What a browser would dispatch, in short. */
const seen = (blocks: readonly EventBlock[]) =>
  blocks
    .filter(({ isDispatched }) => isDispatched)
    .map(({ event, data, lastEventId }) => (lastEventId === "" ? [event, data] : [event, data, lastEventId]));

const dispatched: readonly [name: string, stream: string, events: readonly (readonly string[])[]][] = [
  ["an event with one line", "data: hello\n\n", [["message", "hello"]]],
  ["lines of data are joined by a line feed", "data: YHOO\ndata: +2\ndata: 10\n\n", [["message", "YHOO\n+2\n10"]]],
  [
    "comments, empty data, two empty lines and a rest without an end, as in the standard's example",
    ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event",
    [
      ["message", "first event", "1"],
      ["message", "second event"],
    ],
  ],
  [
    "data lines without a value",
    "data\n\ndata\ndata\n\ndata:",
    [
      ["message", ""],
      ["message", "\n"],
    ],
  ],
  [
    "one space after the colon is dropped, and one only",
    "data:test\n\ndata: test\n\ndata:  test\n\n",
    [
      ["message", "test"],
      ["message", "test"],
      ["message", " test"],
    ],
  ],
  [
    "the type of an event counts for that one only",
    "event: add\ndata: 1\n\ndata: 2\n\n",
    [
      ["add", "1"],
      ["message", "2"],
    ],
  ],
  ["an empty type is message", "event:\ndata: 1\n\n", [["message", "1"]]],
  ["a type without data is nothing, and does not stay", "event: add\n\ndata: 1\n\n", [["message", "1"]]],
  [
    "an id stays until there is another",
    "id: 7\ndata: a\n\ndata: b\n\nid: 8\ndata: c\n\n",
    [
      ["message", "a", "7"],
      ["message", "b", "7"],
      ["message", "c", "8"],
    ],
  ],
  ["an id in a block without data counts", "id: 7\n\ndata: a\n\n", [["message", "a", "7"]]],
  [
    "an id with a NUL is ignored",
    "id: 7\ndata: a\n\nid: 8\0\ndata: b\n\n",
    [
      ["message", "a", "7"],
      ["message", "b", "7"],
    ],
  ],
  ["the last of several ids and types wins", "id: 1\nid: 2\nevent: a\nevent: b\ndata: x\n\n", [["b", "x", "2"]]],
  [
    "carriage returns end lines",
    "data: a\r\rdata: b\r\r",
    [
      ["message", "a"],
      ["message", "b"],
    ],
  ],
  ["carriage return and line feed end one line", "data: a\r\ndata: b\r\n\r\n", [["message", "a\nb"]]],
  [
    "ends of lines may be mixed",
    "data: a\ndata: b\rdata: c\r\n\ndata: d\r\r\n",
    [
      ["message", "a\nb\nc"],
      ["message", "d"],
    ],
  ],
  ["one byte order mark is dropped at the start", "\u{FEFF}data: a\n\n", [["message", "a"]]],
  ["two byte order marks make an unknown field", "\u{FEFF}\u{FEFF}data: a\n\ndata: b\n\n", [["message", "b"]]],
  [
    "a byte order mark further on belongs to its line",
    "data: a\n\n\u{FEFF}data: b\n\ndata: \u{FEFF}c\n\n",
    [
      ["message", "a"],
      ["message", "\u{FEFF}c"],
    ],
  ],
  [
    "unknown fields, and known ones in other letters or with a space, are ignored",
    "Data: a\ndata : b\nfoo: c\n data: d\ndata: e\n\n",
    [["message", "e"]],
  ],
  ["colons in a value stay", "data: a:b: c\n\n", [["message", "a:b: c"]]],
  ["characters beyond ASCII", "event: größe\ndata: 日本語 🙂\n\n", [["größe", "日本語 🙂"]]],
  ["a stream without an event", "\n\n\r\r\n\n", []],
];

for (const [name, stream, events] of dispatched) {
  test(`events: ${name}`, () => {
    assert.deepEqual(seen(blocksOf([stream])), events);
    const bytes = Buffer.from(stream);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      assert.deepEqual(seen(blocksOf([bytes.subarray(0, cut), bytes.subarray(cut)])), events, `cut at ${cut}`);
    }
    const single = Array.from(bytes, (byte) => Buffer.of(byte));
    assert.deepEqual(seen(blocksOf(single)), events, "byte by byte");
  });
}

const retries: readonly [value: string, retryMs: number | undefined][] = [
  ["10000", 10_000],
  ["0", 0],
  ["007", 7],
  ["", undefined],
  ["-1", undefined],
  ["1.5", undefined],
  ["1e3", undefined],
  [" 5", undefined],
  ["5 ", undefined],
  ["٣", undefined],
  ["9".repeat(400), undefined],
];

for (const [value, retryMs] of retries) {
  test(`a reconnection time of ${JSON.stringify(value.slice(0, 20))} is ${retryMs ?? "ignored"}`, () => {
    const [block] = blocksOf([`retry: ${value}\n\n`]);
    assert.equal(block?.retryMs, retryMs);
    assert.equal(block?.isDispatched, false);
  });
}

test("what browsers drop is told: comments, ids and reconnection times alone, and a rest", () => {
  const blocks = blocksOf([": one\n:two\n\nretry: 5\n\nid: 3\n\ndata: rest\nid: 4\nevent: cut"]);
  assert.deepEqual(
    blocks.map(({ comment, retryMs, id, data, isDispatched, isComplete, lastEventId }) => [
      comment ?? retryMs ?? id,
      data,
      isDispatched,
      isComplete,
      lastEventId,
    ]),
    [
      ["one\ntwo", "", false, true, ""],
      [5, "", false, true, ""],
      ["3", "", false, true, "3"],
      ["4", "rest", false, false, "3"],
    ],
  );
});

test("an event is told with the empty line behind it, however lines end", () => {
  for (const end of ["\n", "\r", "\r\n"]) {
    const bytes = Buffer.from(`data: x${end}${end}`);
    // The CR of the empty line is its end; the LF behind it may come much later.
    const enough = end === "\r\n" ? bytes.length - 1 : bytes.length;
    assert.equal(blocksOf([bytes.subarray(0, enough - 1)], { ends: false }).length, 0, JSON.stringify(end));
    assert.equal(blocksOf([bytes.subarray(0, enough)], { ends: false }).length, 1, JSON.stringify(end));
  }
});

test("wrong and cut UTF-8 becomes the replacement character", () => {
  const stream = Buffer.concat([
    Buffer.from("data: a"),
    Buffer.of(0xff, 0xc3),
    Buffer.from("\ndata: "),
    Buffer.of(0xe2, 0x82),
    Buffer.from("\n\n"),
  ]);
  const expected = new TextDecoder("utf-8", { ignoreBOM: true }).decode(stream);
  assert.equal(blocksOf([stream])[0]?.data, expected.trim().replaceAll("data: ", ""));
});

test("an event larger than the limit is cut at a character, counted whole, and the next one is read", () => {
  const [large, next] = blocksOf([`event: big\ndata: ${"ü".repeat(100)}\ndata: more\nid: 5\n\ndata: next\n\n`], {
    limit: 50,
  });
  assert.ok(large !== undefined && next !== undefined);
  assert.equal(large.event, "big");
  assert.equal(large.id, "5");
  assert.ok(large.isCut && large.isDispatched);
  assert.equal(large.sizeBytes, 205);
  assert.match(large.data, /^ü+\u{FFFD}?(\nmor?e?)?$/u);
  assert.ok(Buffer.byteLength(large.data) <= 52);
  assert.deepEqual([next.data, next.isCut, next.sizeBytes], ["next", false, 4]);
});

test("endless lines, and endless lines without content, are held within the limit", () => {
  const heapBefore = process.memoryUsage().heapUsed + process.memoryUsage().external;
  const blocks: EventBlock[] = [];
  const reader = new EventReader({ maxEventBytes: 10_000, onBlock: (block) => void blocks.push(block) });
  const letters = Buffer.alloc(65_536, "x");
  const lines = Buffer.from("data\n:\n".repeat(10_000));
  for (let count = 0; count < 200; count += 1) reader.read(letters);
  for (let count = 0; count < 200; count += 1) reader.read(lines);
  assert.ok(process.memoryUsage().heapUsed + process.memoryUsage().external - heapBefore < 100_000_000);
  reader.read(Buffer.from("\n\n"));
  assert.equal(blocks.length, 1);
  assert.ok((blocks[0]?.data.length ?? Infinity) <= 10_000 && blocks[0]?.isCut === true);
  assert.equal(blocks[0]?.wireBytes, 200 * (65_536 + lines.length) + 1);
});

const line = fc.oneof(
  fc.constantFrom(
    "data",
    "data:",
    "data: x",
    "event: e",
    "id: 1",
    "id",
    "retry: 3",
    ": c",
    "",
    "\u{FEFF}",
    "data:\u{1F642}",
  ),
  fc.string({ maxLength: 12, unit: anyCharacter }).map((text) => text.replaceAll(/[\r\n]/g, "")),
);
const stream = fc
  .array(fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n", "\n\n")), { maxLength: 20 })
  .map((lines) => Buffer.from(lines.map(([text, end]) => text + end).join("")));

test("where a stream is cut changes nothing", () => {
  fc.assert(
    fc.property(
      stream,
      fc.array(fc.nat(200), { maxLength: 8 }),
      fc.integer({ min: 1, max: 60 }),
      (bytes, cuts, limit) => {
        const at = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
          (a, b) => a - b,
        );
        const pieces = at.map((from, index) => bytes.subarray(from, at[index + 1] ?? bytes.length));
        const told = (blocks: readonly EventBlock[]) => blocks.map(({ wireBytes: _, ...rest }) => rest);
        assert.deepEqual(told(blocksOf(pieces, { limit })), told(blocksOf([bytes], { limit })));
      },
    ),
  );
});

test("any bytes are read, each is counted at most once, and nothing is thrown", () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 20 }), (pieces) => {
      const bytes = pieces.map((piece) => Buffer.from(piece));
      const counted = blocksOf([...bytes, "\n\ndata: x\n\n"]).reduce((sum, { wireBytes }) => sum + wireBytes, 0);
      assert.equal(counted, Buffer.concat(bytes).length + 11);
    }),
  );
});
