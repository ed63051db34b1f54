import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryDirectory, waitUntil } from "@headworks/testkit";
import type { Exchange } from "#exchange/exchange.ts";
import { openDatabase } from "../database.ts";
import { sampleExchange, sampleFrame as frame } from "../read/sample-exchange.ts";
import { openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";
import type { FrameQuery, StoredFrame, StreamRecorder } from "./stream-store.ts";

const ALL: FrameQuery = { limit: 1000, offset: 0, order: "asc" };

/** A stream of a running, recorded exchange. */
function openStream(
  rig: StoreRig,
  kind: "websocket" | "sse" = "websocket",
): { exchange: Exchange; stream: StreamRecorder } {
  const exchange = sampleExchange({ id: crypto.randomUUID(), state: { step: "responding" }, scheme: "ws", port: 80 });
  rig.store.record(rig.store.nextSeq(), exchange);
  const stream = rig.store.streams.open(exchange, kind);
  stream.change({ state: "open" });
  return { exchange, stream };
}

const texts = (frames: readonly StoredFrame[]): string[] =>
  frames.map(({ payload }) => Buffer.from(payload).toString());

test("a stream and its frames are returned as recorded, in order", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { streams } = rig.store;
  const { exchange, stream } = openStream(rig);
  stream.change({ subprotocol: "chat.v1", attributes: { extensions: "permessage-deflate" } });
  stream.frame(frame("one", { mask: 0xfffefdfc, wireBytes: 9 }));
  stream.frame(
    frame("two", {
      direction: "receive",
      isCompressed: true,
      wireBytes: 4,
      original: Buffer.from("2"),
      effect: "modified",
    }),
  );
  stream.frame(frame("", { direction: "receive", type: "continuation", opcode: 0, isFinal: false }));
  stream.frame(
    frame(Buffer.from([0, 255]), { type: "binary", opcode: 2, sizeBytes: 70, attributes: { id: "7", event: "ü" } }),
  );
  await rig.store.flush();
  const row = await streams.getStream(exchange.id);
  assert.equal(row?.createdMs !== undefined && row.createdMs > 1_763_700_000_000, true);
  assert.deepEqual(
    { ...row, createdMs: 0 },
    {
      id: exchange.id,
      kind: "websocket",
      sessionId: rig.store.activeSessionId,
      state: "open",
      method: "GET",
      url: "ws://example.com/items?page=1",
      host: "example.com",
      path: "/items?page=1",
      clientAddress: "127.0.0.1:50000",
      serverAddress: "192.0.2.1:443",
      requestFields: exchange.request.fields,
      responseFields: exchange.response?.fields,
      subprotocol: "chat.v1",
      closeCode: null,
      closeReason: null,
      attributes: { extensions: "permessage-deflate" },
      createdMs: 0,
      closedMs: null,
      framesSent: 2,
      framesReceived: 2,
      bytesSent: 73,
      bytesReceived: 3,
      framesNotStored: 0,
      framesStored: 4,
    },
  );
  const { frames, total } = await streams.listFrames({ ...ALL, streamId: exchange.id });
  assert.equal(total, 4);
  assert.deepEqual(
    frames.map(({ ordinal, direction, type, opcode, isFinal, effect, isCompressed, mask }) => [
      ordinal,
      direction,
      type,
      opcode,
      isFinal,
      effect,
      isCompressed,
      mask,
    ]),
    [
      [1, "send", "text", 1, true, null, false, 0xfffefdfc],
      [2, "receive", "text", 1, true, "modified", true, null],
      [3, "receive", "continuation", 0, false, null, false, null],
      [4, "send", "binary", 2, true, null, false, null],
    ],
  );
  assert.deepEqual(
    frames.map(({ payload }) => Buffer.from(payload).toString("hex")),
    ["6f6e65", "74776f", "", "00ff"],
  );
  assert.equal(Buffer.from(frames[1]?.original ?? []).toString(), "2");
  assert.deepEqual(
    [frames[3]?.sizeBytes, frames[3]?.storedBytes, frames[3]?.attributes],
    [70, 2, { id: "7", event: "ü" }],
  );
  assert.deepEqual(await streams.frameBytes(exchange.id, 4), Buffer.from([0, 255]));
  assert.equal(await streams.frameBytes(exchange.id, 5), undefined);
  stream.change({ closeCode: 1000, closeReason: "bye" });
  stream.end();
  stream.frame(frame("too late"));
  await rig.store.flush();
  const closed = await streams.getStream(exchange.id);
  assert.deepEqual(
    [closed?.state, closed?.closeCode, closed?.closeReason, closed?.framesSent],
    ["closed", 1000, "bye", 2],
  );
  assert.ok(closed?.closedMs);
});

test("frames are committed within 250 ms while the stream is open", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { exchange, stream } = openStream(rig);
  stream.frame(frame("now"));
  await waitUntil(async () => (await rig.store.streams.listFrames({ ...ALL, streamId: exchange.id })).total === 1);
  assert.equal((await rig.store.streams.listStreams({ limit: 10, offset: 0 })).streams[0]?.state, "open");
});

test("frames are found by stream, kind, direction, type and text, in windows from either end", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { streams } = rig.store;
  const first = openStream(rig);
  const second = openStream(rig, "sse");
  for (let index = 1; index <= 2500; index += 1) {
    first.stream.frame(frame(`Message ${index}`, index % 5 === 0 ? { direction: "receive", type: "binary" } : {}));
  }
  second.stream.frame(frame("Message of an event", { direction: "receive", type: "event", opcode: 0 }));
  await rig.store.flush();
  const table: readonly [Partial<FrameQuery>, number, readonly string[]][] = [
    [{ limit: 1 }, 2501, ["Message 1"]],
    [{ limit: 1, order: "desc" }, 2501, ["Message of an event"]],
    [{ kind: "sse" }, 1, ["Message of an event"]],
    [{ kind: "grpc" }, 0, []],
    [{ streamId: first.exchange.id, kind: "sse" }, 0, []],
    [{ streamId: "unknown" }, 0, []],
    [{ streamId: first.exchange.id, limit: 2, offset: 2498 }, 2500, ["Message 2499", "Message 2500"]],
    [{ streamId: first.exchange.id, limit: 1, order: "desc" }, 2500, ["Message 2500"]],
    [{ direction: "receive", limit: 1 }, 501, ["Message 5"]],
    [{ type: "binary", limit: 1, offset: 1 }, 500, ["Message 10"]],
    [{ streamId: first.exchange.id, afterOrdinal: 2499 }, 1, ["Message 2500"]],
    [{ search: "mEsSaGe 25", limit: 2 }, 12, ["Message 25", "Message 250"]],
    [{ search: "message 249", order: "desc", limit: 2, offset: 1 }, 11, ["Message 2498", "Message 2497"]],
    [{ streamId: first.exchange.id, search: "message 249", direction: "receive" }, 2, ["Message 2490", "Message 2495"]],
    [{ search: "nowhere" }, 0, []],
  ];
  for (const [query, total, expected] of table) {
    const response = await streams.listFrames({ ...ALL, ...query });
    assert.deepEqual([response.total, texts(response.frames)], [total, expected], JSON.stringify(query));
  }
  const [cut] = (await streams.listFrames({ ...ALL, kind: "sse", payloadBytes: 7 })).frames;
  assert.deepEqual([Buffer.from(cut?.payload ?? []).toString(), cut?.storedBytes], ["Message", 19]);
  const { streams: rows, total } = await streams.listStreams({ limit: 1, offset: 0 });
  assert.deepEqual([rows[0]?.id, total], [second.exchange.id, 2]);
  assert.equal((await streams.listStreams({ kind: "websocket", limit: 5, offset: 0 })).total, 1);
  assert.equal((await streams.listStreams({ sessionId: "other", limit: 5, offset: 0 })).total, 0);
});

test("a cancelled search ends", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { stream } = openStream(rig);
  stream.frame(frame("x"));
  await rig.store.flush();
  const withdrawn = AbortSignal.abort(new Error("gone"));
  await assert.rejects(rig.store.streams.listFrames({ ...ALL, search: "x" }, withdrawn), /gone/);
});

test("statistics count transferred and stored frames", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { stream } = openStream(rig);
  const other = openStream(rig);
  stream.frame(frame("12345"));
  stream.frame(frame("123", { direction: "receive", type: "ping", opcode: 9 }));
  other.stream.end();
  await rig.store.flush();
  assert.deepEqual(await rig.store.streams.stats("websocket"), {
    streams: 2,
    openStreams: 1,
    framesSent: 1,
    framesReceived: 1,
    bytesSent: 5,
    bytesReceived: 3,
    framesNotStored: 0,
    framesStored: 2,
    storedBytes: 8,
    byType: { text: 1, ping: 1 },
  });
  assert.equal((await rig.store.streams.stats("sse")).streams, 0);
});

test("clearing a kind removes its frames and closed streams; open streams continue", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { streams } = rig.store;
  const open = openStream(rig);
  const closed = openStream(rig);
  const event = openStream(rig, "sse");
  for (const { stream } of [open, closed, event]) stream.frame(frame("old"));
  closed.stream.end();
  await streams.clear("websocket");
  open.stream.frame(frame("new"));
  await rig.store.flush();
  assert.deepEqual(texts((await streams.listFrames(ALL)).frames), ["old", "new"]);
  assert.equal((await streams.listFrames({ ...ALL, kind: "websocket" })).total, 1);
  assert.equal(await streams.getStream(closed.exchange.id), undefined);
  assert.deepEqual((await streams.getStream(open.exchange.id))?.framesSent, 2);
  assert.equal(rig.store.status().totalSizeBytes, 6);
  await waitUntil(() => rowsOf(directory.file("traffic.db"), "stream_frame") === 2);
  await waitUntil(() => rowsOf(directory.file("traffic.db"), "stream") === 2);
});

test("frames are removed with their entries, and later frames of these are not stored", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { store } = rig;
  const ways: readonly ((exchange: Exchange) => Promise<unknown>)[] = [
    (exchange) => store.deleteEntries([exchange.id]),
    () => store.clearSession(store.activeSessionId),
    async () => {
      const old = store.activeSessionId;
      const { id } = await store.createSession("next", null);
      await store.switchSession(id);
      assert.equal(await store.deleteSession(old), "deleted");
    },
  ];
  for (const remove of ways) {
    const { exchange, stream } = openStream(rig);
    stream.frame(frame("some bytes"));
    await store.flush();
    assert.equal((await store.streams.listFrames(ALL)).total, 1);
    assert.equal(store.status().totalSizeBytes, 10);
    await remove(exchange);
    stream.frame(frame("later"));
    await store.flush();
    await waitUntil(async () => (await store.streams.listFrames(ALL)).total === 0);
    assert.equal(await store.streams.getStream(exchange.id), undefined);
    assert.equal(store.status().totalSizeBytes, 0);
    await waitUntil(() => rowsOf(directory.file("traffic.db"), "stream_frame") === 0);
    await waitUntil(() => rowsOf(directory.file("traffic.db"), "stream") === 0);
  }
});

test("frames count towards the size limit: old entries are removed, then the oldest frames of open streams", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path, { maxTotalSizeMb: 1 });
  const old = rig.add({ responseBody: ["x".repeat(100_000)] });
  const { exchange, stream } = openStream(rig);
  for (let index = 1; index <= 40; index += 1) stream.frame(frame(String(index).padEnd(100_000)));
  await rig.store.flush();
  await waitUntil(() => rig.store.status().totalSizeBytes <= 1_048_576);
  assert.equal(await rig.entry(old.id), undefined);
  assert.ok(await rig.entry(exchange.id));
  const { frames, total } = await rig.store.streams.listFrames({ ...ALL, streamId: exchange.id, order: "desc" });
  assert.equal(frames.length, total);
  assert.deepEqual(
    frames.map(({ ordinal }) => ordinal),
    Array.from({ length: total }, (_, index) => 40 - index),
  );
  assert.ok(total > 2 && total <= 10, `${total} frames are left`);
  assert.equal(rig.store.status().totalSizeBytes, total * 100_000);
  assert.equal((await rig.store.streams.getStream(exchange.id))?.framesSent, 40);
});

test("frames beyond the backlog are counted as not stored, and leave gaps in the ordinals", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const { exchange, stream } = openStream(rig);
  const megabyte = Buffer.alloc(1_048_576);
  // Synchronously, so that the writer cannot keep up.
  for (let index = 0; index < 100; index += 1) stream.frame(frame(megabyte, { type: "binary", opcode: 2 }));
  await rig.store.flush();
  const row = await rig.store.streams.getStream(exchange.id);
  assert.equal(row?.framesSent, 100);
  assert.ok(row.framesNotStored >= 36 && row.framesNotStored < 100, `${row.framesNotStored} were not stored`);
  assert.equal(row.framesStored, 100 - row.framesNotStored);
  stream.frame(frame("after"));
  await rig.store.flush();
  const [last] = (await rig.store.streams.listFrames({ ...ALL, order: "desc", limit: 1 })).frames;
  assert.deepEqual([last?.ordinal, Buffer.from(last?.payload ?? []).toString()], [101, "after"]);
});

test("streams of unrecorded exchanges are not stored", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const stream = rig.store.streams.open({ ...sampleExchange(), isRecorded: false }, "sse");
  stream.change({ state: "open" });
  stream.frame(frame("secret"));
  stream.end();
  await rig.store.flush();
  assert.equal((await rig.store.streams.listStreams({ limit: 10, offset: 0 })).total, 0);
});

test("after a restart streams are closed, frames remain, and numbers continue", async () => {
  await using directory = await temporaryDirectory();
  const ids: string[] = [];
  for (let round = 0; round < 2; round += 1) {
    await using rig = await openRig(directory.path);
    const { exchange, stream } = openStream(rig);
    stream.frame(frame(`round ${round}`));
    ids.push(exchange.id);
  }
  await using rig = await openRig(directory.path);
  const { streams } = await rig.store.streams.listStreams({ limit: 10, offset: 0 });
  assert.deepEqual(
    streams.map(({ id, state }) => [id, state]),
    [
      [ids[1], "closed"],
      [ids[0], "closed"],
    ],
  );
  assert.deepEqual(texts((await rig.store.streams.listFrames(ALL)).frames), ["round 0", "round 1"]);
});

function rowsOf(path: string, table: "stream" | "stream_frame"): number {
  const database = openDatabase(path, { readOnly: true });
  try {
    return Number(database.prepare(`SELECT COUNT(*) AS total FROM ${table}`).get()?.["total"]);
  } finally {
    database.close();
  }
}
