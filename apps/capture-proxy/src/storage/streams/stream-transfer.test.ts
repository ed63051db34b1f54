import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import type { ImportOptions } from "../capture-store.ts";
import type { FrameRecord, StoredFrame, StreamRow } from "./stream-store.ts";
import { sampleFrame } from "../read/sample-exchange.ts";
import { NEVER, openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";

const OPTIONS: ImportOptions = {
  sessionName: undefined,
  switchSession: false,
  signal: NEVER,
  onProgress: () => undefined,
};

const frame = (text: string | Buffer, change: Partial<FrameRecord> = {}): FrameRecord =>
  sampleFrame(text, { atMs: 1_763_700_000_123, ...change });

const CLOSE = Buffer.concat([Buffer.from([0x0f, 0xa0]), Buffer.from("enough")]);

/** A session with a WebSocket connection of many frames and an event stream. */
async function fill(rig: StoreRig): Promise<string> {
  const exchange = rig.add({ id: crypto.randomUUID(), scheme: "wss", path: "/chat", status: 101 });
  const socket = rig.store.streams.open(exchange, "websocket");
  socket.change({ state: "open", subprotocol: "chat", attributes: { extensions: "permessage-deflate" } });
  socket.frame(frame("hällo", { mask: 0xffffffff, isCompressed: true }));
  socket.frame(frame(Buffer.from([0, 255]), { direction: "receive", type: "binary", opcode: 2, sizeBytes: 9 }));
  socket.frame(frame("frag", { isFinal: false }));
  socket.frame(frame("", { type: "ping", opcode: 9 }));
  socket.frame(frame("ment", { type: "continuation", opcode: 0, attributes: { fragments: "2" } }));
  socket.frame(frame("new", { effect: "modified", original: Buffer.from("old") }));
  socket.frame(frame("gone", { effect: "dropped" }));
  for (let index = 0; index < 1500; index += 1) socket.frame(frame(`tick ${index}`, { direction: "receive" }));
  socket.frame(frame(CLOSE, { direction: "receive", type: "close", opcode: 8 }));
  socket.change({ closeCode: 4000, closeReason: "enough" });
  socket.end();
  const events = rig.store.streams.open(rig.add({ id: crypto.randomUUID(), path: "/events" }), "sse");
  events.frame(
    frame("data", { direction: "receive", type: "event", opcode: 0, attributes: { event: "tick", id: "7" } }),
  );
  events.end();
  await rig.store.flush();
  return exchange.id;
}

async function exported(chunks: AsyncIterable<Uint8Array> | undefined): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of chunks ?? []) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function* inPieces(document: Buffer): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < document.length; at += 10_007) yield document.subarray(at, at + 10_007);
}

async function contentOf(rig: StoreRig, sessionId: string): Promise<unknown[]> {
  const { streams } = await rig.store.streams.listStreams({ sessionId, limit: 100, offset: 0 });
  return await Promise.all(
    streams.map(async (row) => {
      const { frames } = await rig.store.streams.listFrames({ streamId: row.id, limit: 5000, offset: 0, order: "asc" });
      return { ...withoutIds(row), frames: frames.map(({ streamId: _, ...rest }: StoredFrame) => rest) };
    }),
  );
}

function withoutIds({ id: _id, sessionId: _session, ...rest }: StreamRow): object {
  return rest;
}

test("a session document restores streams and frames in the same store and in another one", async () => {
  await using directory = await temporaryDirectory();
  await using other = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const id = await fill(rig);
  const before = await contentOf(rig, rig.store.activeSessionId);
  const out = await rig.store.exportSession(rig.store.activeSessionId, NEVER);
  const document = await exported(out?.chunks);
  const same = await rig.store.importSession(inPieces(document), OPTIONS);
  assert.equal(same.imported_count, 2);
  assert.deepEqual(await contentOf(rig, same.session_id), before);
  const { streams } = await rig.store.streams.listStreams({ sessionId: same.session_id, limit: 10, offset: 0 });
  for (const row of streams) {
    assert.notEqual(row.id, id, "the id was taken");
    assert.ok(await rig.entry(row.id), "a stream has the id of its entry");
  }
  await using elsewhere = await openRig(other.path);
  const result = await elsewhere.store.importSession(inPieces(document), OPTIONS);
  assert.deepEqual(await contentOf(elsewhere, result.session_id), before);
  assert.equal((await elsewhere.store.streams.getStream(id))?.closeCode, 4000);
  assert.equal(
    (await elsewhere.store.streams.listFrames({ streamId: id, limit: 1, offset: 0, order: "asc" })).total,
    1508,
  );
});

test("a HAR contains WebSocket messages in the browsers' format and restores them with control frames", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const id = await fill(rig);
  const { chunks } = await rig.store.exportHar({ session_id: rig.store.activeSessionId }, undefined, NEVER);
  const document = await exported(chunks);
  const { log } = JSON.parse(document.toString()) as {
    log: { entries: { _webSocketMessages?: object[]; _weir?: { controlFrames?: object[] } }[] };
  };
  const [socket, events] = log.entries;
  assert.equal(events?._webSocketMessages, undefined);
  assert.equal(socket?._webSocketMessages?.length, 1504);
  assert.deepEqual(socket._webSocketMessages.slice(0, 4), [
    { type: "send", time: 1_763_700_000.123, opcode: 1, data: "hällo" },
    { type: "receive", time: 1_763_700_000.123, opcode: 2, data: "AP8=" },
    { type: "send", time: 1_763_700_000.123, opcode: 1, data: "fragment" },
    { type: "send", time: 1_763_700_000.123, opcode: 1, data: "new" },
  ]);
  assert.deepEqual(socket._weir?.controlFrames, [
    { before: 2, type: "send", time: 1_763_700_000.123, opcode: 9, data: "" },
    { before: 1504, type: "receive", time: 1_763_700_000.123, opcode: 8, data: CLOSE.toString("base64") },
  ]);
  const result = await rig.store.importHar(inPieces(document), OPTIONS);
  const { streams } = await rig.store.streams.listStreams({ sessionId: result.session_id, limit: 10, offset: 0 });
  assert.equal(streams.length, 1);
  const [imported] = streams;
  assert.notEqual(imported?.id, id);
  assert.deepEqual(
    [imported?.kind, imported?.state, imported?.url, imported?.framesSent, imported?.framesReceived],
    ["websocket", "closed", "wss://example.com/chat", 4, 1502],
  );
  const { frames, total } = await rig.store.streams.listFrames({
    streamId: imported?.id,
    limit: 2000,
    offset: 0,
    order: "asc",
  });
  assert.equal(total, 1506);
  assert.deepEqual(
    [...frames.slice(0, 4), ...frames.slice(-1)].map(({ direction, type, payload, atMs }) => [
      direction,
      type,
      Buffer.from(payload).toString("hex"),
      atMs,
    ]),
    [
      ["send", "text", Buffer.from("hällo").toString("hex"), 1_763_700_000_123],
      ["receive", "binary", "00ff", 1_763_700_000_123],
      ["send", "ping", "", 1_763_700_000_123],
      ["send", "text", Buffer.from("fragment").toString("hex"), 1_763_700_000_123],
      ["receive", "close", CLOSE.toString("hex"), 1_763_700_000_123],
    ],
  );
});

test("invalid frames reject the document, and nothing is left behind", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const entry = { id: "a", timestamp: "2026-01-01T00:00:00Z", request: { method: "GET", url: "ws://host/" } };
  const stream = { entry: "a", kind: "websocket" };
  const good = { stream: 0, ordinal: 1, direction: "send", type: "text", data: "AA==" };
  const table: readonly [string, object, RegExp][] = [
    ["no kind", { streams: [{ entry: "a" }] }, /stream 0: `kind` is missing/],
    ["no entry", { streams: [{ kind: "sse" }] }, /stream 0: `entry` is missing/],
    ["a stream that is a list", { streams: [[]] }, /stream 0: it is not an object/],
    ["fields that are numbers", { streams: [{ ...stream, request_fields: [1] }] }, /not a list of texts/],
    [
      "a frame of no stream",
      { streams: [stream], frames: [{ ...good, stream: 1 }] },
      /frame 0: `stream` is not the index/,
    ],
    ["a negative ordinal", { streams: [stream], frames: [{ ...good, ordinal: -1 }] }, /`ordinal` is not a whole/],
    ["no base64", { streams: [stream], frames: [{ ...good, data: "%" }] }, /`data` is not base64/],
    ["no data", { streams: [stream], frames: [{ ...good, data: null }] }, /`data` is missing/],
    ["a type that is none", { streams: [stream], frames: [{ ...good, type: "x" }] }, /`type` is not one/],
    [
      "attributes that are numbers",
      { streams: [stream], frames: [{ ...good, attributes: { a: 1 } }] },
      /`attributes.a`/,
    ],
  ];
  for (const [name, members, expected] of table) {
    const document = Buffer.from(JSON.stringify({ version: "1.0", entries: [entry], ...members }));
    await assert.rejects(rig.store.importSession(inPieces(document), OPTIONS), expected, name);
  }
  assert.equal((await rig.store.streams.listStreams({ limit: 10, offset: 0 })).total, 0);
  assert.equal((await rig.store.listSessions()).length, 1);
});

test("a document cannot add frames to entries of another session, nor two frames with one ordinal", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const victim = rig.add({ id: crypto.randomUUID() });
  await rig.store.flush();
  const good = { stream: 1, ordinal: 1, direction: "send", type: "text", data: "AA==" };
  const document = {
    version: "1.0",
    entries: [{ id: "mine", timestamp: "2026-01-01T00:00:00Z", request: { method: "GET", url: "ws://host/" } }],
    streams: [
      { entry: victim.id, kind: "websocket" },
      { entry: "mine", kind: "websocket" },
    ],
    frames: [{ ...good, stream: 0 }, good, { ...good, data: "AQ==" }],
  };
  const result = await rig.store.importSession(inPieces(Buffer.from(JSON.stringify(document))), OPTIONS);
  assert.equal(await rig.store.streams.getStream(victim.id), undefined);
  const { streams } = await rig.store.streams.listStreams({ limit: 10, offset: 0 });
  assert.deepEqual(
    streams.map(({ id, sessionId, framesStored }) => [id, sessionId, framesStored]),
    [["mine", result.session_id, 1]],
  );
  const { frames } = await rig.store.streams.listFrames({ streamId: "mine", limit: 10, offset: 0, order: "asc" });
  assert.deepEqual(
    frames.map(({ payload }) => Buffer.from(payload).toString("hex")),
    ["00"],
  );
});
