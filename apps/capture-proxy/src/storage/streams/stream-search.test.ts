import assert from "node:assert/strict";
import { test } from "node:test";
import { temporaryDirectory } from "@headworks/testkit";
import { sampleExchange, sampleFrame } from "../read/sample-exchange.ts";
import { NEVER, openRig } from "../store-rig.ts";
import type { StoreRig } from "../store-rig.ts";
import type { FrameRecord, StreamKind, StreamRecorder } from "./stream-store.ts";

/** A running exchange with a stream; the host identifies its entry. */
function openStream(rig: StoreRig, host: string, kind: StreamKind = "websocket"): StreamRecorder {
  const scheme = kind === "websocket" ? "ws" : "http";
  const exchange = sampleExchange({ id: crypto.randomUUID(), state: { step: "responding" }, scheme, port: 80, host });
  rig.store.record(rig.store.nextSeq(), exchange);
  const stream = rig.store.streams.open(exchange, kind);
  stream.change({ state: "open" });
  return stream;
}

function say(
  stream: StreamRecorder,
  way: "in" | "out",
  text: string | Buffer,
  type: FrameRecord["type"] = "text",
  isFinal = true,
): void {
  const direction = way === "in" ? "receive" : "send";
  stream.frame(sampleFrame(text, { direction, type, isFinal }));
}

const hostsOf = async (rig: StoreRig, q: string): Promise<string> => {
  await rig.store.flush();
  const { rows, total } = await rig.rows({ q });
  assert.equal(total, rows.length, q);
  return rows
    .map(({ host }) => host)
    .sort()
    .join(" ");
};

test("WebSocket messages and their directions find the entries of their connections", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  rig.add({ host: "plain" });
  const chat = openStream(rig, "chat");
  say(chat, "out", "an Error of ours: Übel");
  say(chat, "in", "all is well");
  const news = openStream(rig, "news");
  say(news, "in", "error in the paper");
  say(news, "in", Buffer.from("error"), "binary");
  const events = openStream(rig, "events", "sse");
  say(events, "in", "error of an event", "event");
  openStream(rig, "silent");
  for (const [q, hosts] of [
    ["ws.text:error", "chat news"],
    ["ws.text:error dir:in", "news"],
    ["dir:out ws.text:error", "chat"],
    ["ws.text:error dir:in OR host:plain", "news plain"],
    ["ws.text:ÜBEL", "chat"],
    ["ws.text:/^error/", "news"],
    ['ws.text:="all is well"', "chat"],
    ["ws.text:*", "chat news"],
    ["ws.text:error ws.text:well", "chat"],
    ["ws.text:error -dir:out", "news"],
    ["-ws.text:error", "events plain silent"],
    ["-(ws.text:error dir:in)", "chat events plain silent"],
    ["dir:in", "chat events news"],
    ["dir:out", "chat"],
    ["dir:!=out", "events news"],
    ["-dir:*", "plain silent"],
    ["host:news (ws.text:paper OR grpc.status:5)", "news"],
    ["ws.text:error paper", ""],
  ] as const) {
    assert.equal(await hostsOf(rig, q), hosts, q);
  }
  const { matched } = await rig.store.summarize({ q: "ws.text:error dir:in" }, NEVER);
  assert.equal(matched, 1);
  assert.deepEqual(
    (await rig.rows({ q: "dir:in" }, { sort: "host", order: "asc" })).rows.map(({ host }) => host),
    ["chat", "events", "news"],
  );
});

test("a message in several frames is one text, also with frames of the other side in between", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const chat = openStream(rig, "chat");
  say(chat, "in", "an er", "text", false);
  say(chat, "out", "good", "text", false);
  say(chat, "in", "ro", "continuation", false);
  say(chat, "in", "beat", "ping");
  say(chat, "out", "bye", "continuation");
  say(chat, "in", "r of theirs", "continuation");
  const blobs = openStream(rig, "blobs");
  say(blobs, "in", "an er", "binary", false);
  say(blobs, "in", "ror", "continuation");
  for (const [q, hosts] of [
    ["ws.text:error", "chat"],
    ["ws.text:error dir:in", "chat"],
    ["ws.text:error dir:out", ""],
    ["ws.text:=goodbye dir:out", "chat"],
    ['ws.text:="an error of theirs"', "chat"],
    ["ws.text:=ro", ""],
    ["ws.text:beat", ""],
    ["host:blobs ws.text:*", ""],
  ] as const) {
    assert.equal(await hostsOf(rig, q), hosts, q);
  }
});

test("text that spans frames matches the last of them; text inside a frame matches that frame", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const chat = openStream(rig, "chat");
  say(chat, "in", "an er", "text", false);
  say(chat, "out", "ro", "text", false);
  say(chat, "in", "ro", "continuation", false);
  say(chat, "in", "beat", "ping");
  say(chat, "out", "r", "continuation");
  say(chat, "in", Buffer.concat([Buffer.from("R of "), Buffer.from("Ü").subarray(0, 1)]), "continuation", false);
  say(chat, "in", Buffer.concat([Buffer.from("Ü").subarray(1), Buffer.from("bel")]), "continuation");
  say(chat, "in", "ro", "text", false);
  say(chat, "in", "r, whose beginning is this", "continuation");
  say(chat, "in", "lost", "continuation");
  const events = openStream(rig, "events", "grpc");
  say(events, "in", "an er", "message");
  say(events, "in", "ror", "message");
  await rig.store.flush();
  const found = async (search: string): Promise<string> => {
    const { frames, total } = await rig.store.streams.listFrames({ search, limit: 50, offset: 0, order: "asc" });
    assert.equal(total, frames.length, search);
    return frames.map(({ direction, ordinal }) => `${direction} ${ordinal}`).join(", ");
  };
  for (const [search, frames] of [
    ["error", "receive 7"],
    ["an error of übel", "receive 7"],
    ["an er", "receive 1, receive 1"],
    ["beat", "receive 4"],
    ["ror, whose", "receive 9"],
    ["ror", "send 5, receive 7, receive 9, receive 2"],
    ["whose", "receive 9"],
    ["thislost", ""],
  ] as const) {
    assert.equal(await found(search), frames, search);
  }
});

test("a cached result follows new and cleared messages", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const chat = openStream(rig, "chat");
  say(chat, "out", "hello");
  assert.equal(await hostsOf(rig, "ws.text:later"), "");
  assert.equal(await hostsOf(rig, "-ws.text:later"), "chat");
  assert.equal(await hostsOf(rig, "dir:in"), "");
  say(chat, "in", "later");
  assert.equal(await hostsOf(rig, "ws.text:later"), "chat");
  assert.equal(await hostsOf(rig, "-ws.text:later"), "");
  assert.equal(await hostsOf(rig, "dir:in"), "chat");
  await rig.store.streams.clear("websocket");
  assert.equal(await hostsOf(rig, "ws.text:later"), "");
});

test("a gRPC status finds its entry by number and by name once it is known", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  rig.add({ host: "plain" });
  const good = openStream(rig, "good", "grpc");
  const lost = openStream(rig, "lost", "grpc");
  openStream(rig, "running", "grpc");
  // A WebSocket close code is not a status.
  openStream(rig, "chat").change({ closeCode: 5 });
  assert.equal(await hostsOf(rig, "grpc.status:*"), "");
  good.change({ closeCode: 0 });
  lost.change({ closeCode: 5 });
  for (const [q, hosts] of [
    ["grpc.status:*", "good lost"],
    ["grpc.status:0", "good"],
    ["grpc.status:NOT_FOUND", "lost"],
    ["grpc.status:!=0", "lost"],
    ["grpc.status:<=NOT_FOUND", "good lost"],
    ["-grpc.status:0", "chat lost plain running"],
    ["grpc.status:!=OK body:nothing", ""],
  ] as const) {
    assert.equal(await hostsOf(rig, q), hosts, q);
  }
});

test("a search reads the newest 16 MiB of a connection", async () => {
  await using directory = await temporaryDirectory();
  await using rig = await openRig(directory.path);
  const chat = openStream(rig, "chat");
  say(chat, "in", "first");
  await rig.store.flush();
  for (let count = 0; count < 5; count += 1) {
    say(chat, "in", Buffer.alloc(4_194_304, "x"));
    await rig.store.flush();
  }
  say(chat, "in", "last");
  assert.equal(await hostsOf(rig, "ws.text:last"), "chat");
  assert.equal(await hostsOf(rig, "ws.text:first"), "");
});
