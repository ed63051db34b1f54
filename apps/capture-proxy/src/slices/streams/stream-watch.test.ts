import assert from "node:assert/strict";
import type { Transform } from "node:stream";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  constants,
  createBrotliCompress,
  createDeflate,
  createDeflateRaw,
  createGzip,
  createZstdCompress,
} from "node:zlib";
import { waitUntil } from "@headworks/testkit";
import { BodyCapture } from "#exchange/body.ts";
import type { Exchange } from "#exchange/exchange.ts";
import { sampleExchange, type SampleOptions } from "#storage/read/sample-exchange.ts";
import type { FrameRecord, StreamFacts } from "#storage/streams/stream-store.ts";
import { streamForm, StreamWatch } from "./stream-watch.ts";

interface Watched {
  readonly frames: FrameRecord[];
  readonly facts: StreamFacts[];
  readonly exchange: Exchange;
  readonly body: BodyCapture;
  readonly watch: StreamWatch;
  readonly ended: () => number;
  readonly faults: unknown[];
  nowMs: number;
}

/** A watched response in flight, with the given fields and a recorder in memory. */
function watched(fields: readonly string[], maxFrameBytes = 1_000_000): Watched {
  const exchange = sampleExchange({ state: { step: "responding" }, responseFields: [...fields] });
  const body = new BodyCapture(0, undefined);
  let endings = 0;
  const frames: FrameRecord[] = [];
  const facts: StreamFacts[] = [];
  const faults: unknown[] = [];
  const watch = new StreamWatch({
    recorder: {
      frame: (frame) => frames.push(frame),
      change: (change) => void facts.push(change),
      end: () => void facts.push({ state: "closed" }),
    },
    exchange,
    maxFrameBytes,
    now: () => state.nowMs,
    onEnd: () => (endings += 1),
    onFault: (error) => faults.push(error),
  });
  body.watch(watch);
  const state: Watched = { frames, facts, exchange, body, watch, ended: () => endings, faults, nowMs: 1000 };
  return state;
}

const SSE = ["Content-Type", "text/event-stream"];
const texts = ({ frames }: Watched) => frames.map(({ payload }) => payload.toString());

test("frames are recorded after the piece was forwarded, each with its arrival time", async () => {
  const state = watched(SSE);
  state.body.add(Buffer.from("data: a\n\ndata: b"));
  assert.equal(state.frames.length, 0);
  state.nowMs = 2000;
  await nextTurn();
  assert.deepEqual(texts(state), ["a"]);
  state.body.add(Buffer.from("\n\n"));
  await nextTurn();
  assert.deepEqual(
    state.frames.map(({ atMs, direction, type, isCompressed }) => [atMs, direction, type, isCompressed]),
    [
      [1000, "receive", "event", false],
      [2000, "receive", "event", false],
    ],
  );
});

test("the end is recorded at once, after all earlier frames and the rest of an event", () => {
  const state = watched(SSE);
  state.body.add(Buffer.from("id: 1\nevent: x\nretry: 7\n: c\ndata: a\n\ndata: b"));
  state.body.end();
  assert.deepEqual(texts(state), ["a", "b"]);
  assert.deepEqual(state.frames[0]?.attributes, { event: "x", id: "1", retry: "7", comment: "c" });
  assert.deepEqual(state.frames[1]?.attributes, { incomplete: "true" });
  assert.deepEqual(state.facts, [{ state: "open" }, { state: "closed" }]);
  assert.equal(state.ended(), 1);
});

test("an interrupted stream has a reason", () => {
  const state = watched(SSE);
  const failure = {
    stage: "receive",
    side: "upstream",
    code: "UPSTREAM_RESET",
    message: "The origin hung up",
  } as const;
  state.exchange.state = { step: "failed", failure };
  state.body.end();
  assert.deepEqual(state.facts.slice(1), [{ closeReason: "The origin hung up" }, { state: "closed" }]);
});

test("lines of JSON are items", () => {
  const state = watched(["Content-Type", "application/x-ndjson"]);
  state.body.add(Buffer.from('{"a":1}\n{"b"'));
  state.body.add(Buffer.from(":2}\n"));
  state.body.end();
  assert.deepEqual(texts(state), ['{"a":1}', '{"b":2}']);
  assert.deepEqual(
    state.frames.map(({ type, sizeBytes, wireBytes, attributes }) => [type, sizeBytes, wireBytes, attributes]),
    [
      ["item", 7, 8, undefined],
      ["item", 7, 8, undefined],
    ],
  );
});

test("frames are cut at the body limit, and their sizes are complete", () => {
  for (const limit of [3, 0]) {
    const state = watched(SSE, limit);
    state.body.add(Buffer.from("data: abcdef\n\n"));
    state.body.end();
    assert.equal(state.frames[0]?.sizeBytes, 6);
    assert.ok((state.frames[0]?.payload.length ?? Infinity) <= limit);
  }
});

const encoders: readonly [coding: string, encoder: () => Transform, flush: number][] = [
  ["gzip", () => createGzip(), constants.Z_SYNC_FLUSH],
  ["deflate", () => createDeflate(), constants.Z_SYNC_FLUSH],
  ["deflate", () => createDeflateRaw(), constants.Z_SYNC_FLUSH],
  ["br", () => createBrotliCompress(), constants.BROTLI_OPERATION_FLUSH],
  ["zstd", () => createZstdCompress(), constants.ZSTD_e_flush],
];

/** Encodes a text and flushes, like an origin that sends events as they happen. */
async function flushed(encoder: Transform, text: string, flush: number): Promise<Buffer> {
  encoder.write(text);
  const { promise, resolve } = Promise.withResolvers<undefined>();
  (encoder as unknown as { flush(kind: number, done: () => void): void }).flush(flush, () => resolve(undefined));
  await promise;
  const pieces: Buffer[] = [];
  // read() is repeated, since the number of pieces per call depends on the version of Node.js.
  for (let piece = encoder.read() as Buffer | null; piece !== null; piece = encoder.read() as Buffer | null) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

for (const [coding, create, flush] of encoders) {
  test(`${coding}: each event is recorded before the next one is encoded`, async () => {
    const state = watched([...SSE, "Content-Encoding", coding]);
    const encoder = create();
    for (const [index, event] of ["first", "second", "third"].entries()) {
      state.body.add(await flushed(encoder, `data: ${event}\n\n`, flush));
      await waitUntil(() => state.frames.length === index + 1);
    }
    assert.deepEqual(texts(state), ["first", "second", "third"]);
    assert.ok(state.frames.every(({ isCompressed }) => isCompressed));
    state.body.end();
    await waitUntil(() => state.ended() === 1);
    encoder.destroy();
  });
}

test("damage in a coded stream ends its recording, not the stream, and is reported", async () => {
  const state = watched([...SSE, "Content-Encoding", "gzip"]);
  const encoder = createGzip();
  state.body.add(await flushed(encoder, "data: a\n\n", constants.Z_SYNC_FLUSH));
  await waitUntil(() => state.frames.length === 1);
  state.body.add(Buffer.from("this is no gzip at all"));
  state.body.add(Buffer.alloc(100_000, 1));
  state.body.end();
  await waitUntil(() => state.ended() === 1);
  assert.deepEqual(texts(state), ["a"]);
  assert.deepEqual(state.facts.slice(1), [{ attributes: { decoding: "damaged" } }, { state: "closed" }]);
  assert.deepEqual(state.faults, []);
  encoder.destroy();
});

test("input that arrives faster than it decodes ends the recording, which is reported", async () => {
  const state = watched([...SSE, "Content-Encoding", "gzip"]);
  for (let count = 0; count < 20; count += 1) state.body.add(Buffer.alloc(1_048_576));
  state.body.end();
  await waitUntil(() => state.ended() === 1);
  assert.ok(state.facts.some(({ attributes }) => attributes?.["unread"] !== undefined));
});

test("a replacement body of a rule is recorded after the original, marked, and parsed by its own type", async () => {
  const state = watched([...SSE, "Content-Encoding", "gzip"]);
  const encoder = createGzip();
  state.body.add(await flushed(encoder, "data: a\n\n", constants.Z_SYNC_FLUSH));
  const next = new BodyCapture(0, undefined);
  assert.ok(state.exchange.response);
  state.exchange.response.fields = ["content-type", "application/jsonl"];
  state.body.replaceBy(next);
  next.add(Buffer.from("1\n2\n"));
  next.end();
  await waitUntil(() => state.ended() === 1);
  assert.deepEqual(
    state.frames.map(({ payload, effect, type }) => [payload.toString(), effect, type]),
    [
      ["a", undefined, "event"],
      ["1", "modified", "item"],
      ["2", "modified", "item"],
    ],
  );
  encoder.destroy();
});

test("a replacement body that is no stream has no frames", async () => {
  const state = watched(SSE);
  assert.ok(state.exchange.response);
  state.exchange.response.fields = ["content-type", "text/html"];
  state.watch.replaced();
  state.body.add(Buffer.from("data: x\n\n"));
  state.body.end();
  await waitUntil(() => state.ended() === 1);
  assert.deepEqual(texts(state), []);
});

test("a failing recorder ends the recording and nothing else", async () => {
  const state = watched(SSE);
  state.frames.push = () => {
    throw new Error("defect");
  };
  state.body.add(Buffer.from("data: a\n\n"));
  await nextTurn();
  state.body.add(Buffer.from("data: b\n\n"));
  state.body.end();
  assert.deepEqual(state.faults.map(String), ["Error: defect"]);
  assert.equal(state.ended(), 1);
});

const answered = (type: string | undefined, change: SampleOptions & { coding?: string } = {}) => {
  const { coding, ...options } = change;
  const fields = [
    ...(type === undefined ? [] : ["Content-Type", type]),
    ...(coding === undefined ? [] : ["Content-Encoding", coding]),
  ];
  return streamForm(sampleExchange({ responseFields: fields, ...options }));
};

const cases: readonly [
  type: string | undefined,
  form: string | undefined,
  change?: SampleOptions & { coding?: string },
][] = [
  ["text/event-stream", "sse"],
  ["Text/Event-Stream; charset=utf-8", "sse"],
  [" text/event-stream ;charset=utf-8", "sse"],
  ["text/event-stream", "sse", { status: 500 }],
  ["text/event-stream", "sse", { method: "POST", path: "/v1/chat/completions" }],
  ["text/event-stream", "sse", { coding: "gzip" }],
  ["text/event-stream", "sse", { coding: "GZIP" }],
  ["text/event-stream", undefined, { coding: "gzip, br" }],
  ["text/event-stream", "sse", { coding: "identity" }],
  ["text/event-stream", undefined, { coding: "dcz" }],
  ["text/event-stream", undefined, { method: "HEAD" }],
  ["text/event-stream", undefined, { status: 204 }],
  ["text/event-stream", undefined, { status: 304 }],
  ["text/event-stream", undefined, { state: { step: "forwarding" } }],
  ["text/event-streams", undefined],
  ["application/x-ndjson", "lines"],
  ["application/jsonl", "lines"],
  ["application/json-seq", "sequence"],
  ["application/stream+json;charset=UTF-8", "concatenated"],
  ["application/json", undefined],
  ["application/json; charset=UTF-8", "array", { path: "/v1beta/models/gemini:streamGenerateContent?key=1" }],
  ["text/html", undefined],
  ["", undefined],
  [undefined, undefined],
];

for (const [type, form, change] of cases) {
  test(`a response of ${JSON.stringify(type)} ${JSON.stringify(change ?? {})} is read as ${form ?? "no stream"}`, () => {
    const found = answered(type, change);
    assert.equal(found?.kind === "json" ? found.form : found?.kind, form);
  });
}
