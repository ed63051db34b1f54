import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { FRAME, frame, request, settings } from "@headworks/testkit";
import { data, heads, pattern, widen, type RawPeer } from "../test/raw-peer.ts";
import { requestedRaw, both, OK, servedRaw } from "../test/session-rig.ts";
import type { StreamRecorder } from "../test/stream-recorder.ts";
import { within } from "../test/within.ts";
import { CANCEL, FLOW_CONTROL_ERROR, NO_ERROR } from "./codes.ts";
import { FRAME_BYTES } from "./frames.ts";
import { CONNECTION_WINDOW_BYTES } from "./flow-control.ts";

const FIRST_WINDOW = 4;
const FIRST_WINDOW_BYTES = 65_535;
const POST = [":method", "POST"] as const;

/** Answers each request with so many bytes. */
function responses(bytes: (recorder: StreamRecorder) => number): (recorder: StreamRecorder) => void {
  return (recorder) => {
    recorder.stream.sendSection(OK, false);
    recorder.stream.write(pattern(bytes(recorder), recorder.stream.id));
    recorder.stream.end();
  };
}

/** How many bytes the session has allowed on a stream, or the connection with 0, beyond the first window. */
function widenedBy(peer: RawPeer, stream: number): number {
  const frames = peer.frames.filter((one) => one.type === FRAME.windowUpdate && one.stream === stream);
  return frames.reduce((sum, { payload }) => sum + payload.readUInt32BE(0), 0);
}

test("nothing is told while a stream is held; behind it comes all of it in order, then trailers, then the end", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = (recorder) => recorder.stream.hold();
  const pieces = Array.from({ length: 60 }, (_, at) => pattern([1, 4095, 4096, 0, 17][at % 5] ?? 0, at));
  const whole = Buffer.concat(pieces).subarray(0, FIRST_WINDOW_BYTES);
  let at = 0;
  peer.send(heads(1, POST));
  for (const { length } of pieces) {
    if (at < whole.length) peer.send(data(1, whole.subarray(at, at + length)));
    at += length;
  }
  peer.send(heads(1, ["x-sum", "1"], true));
  await peer.isOpen();
  const recorder = await tested.stream();
  assert.deepEqual(recorder.order, ["section"]);
  assert.equal(recorder.stream.hasReceivedEnd, true);
  assert.equal(widenedBy(peer, 1), 0, "a window does not grow for unread bytes");
  recorder.stream.release();
  assert.deepEqual(recorder.order, ["section", "data", "trailers", "end"]);
  assert.ok(recorder.body.equals(whole));
  assert.deepEqual(recorder.broken, []);
});

test("holding again from inside the telling stops it there, and each release tells what is left", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = (recorder) => {
    recorder.stream.hold();
    recorder.onDataReceived = () => recorder.stream.hold();
  };
  const large = [pattern(5000, 1), pattern(6000, 2), pattern(7000, 3)];
  peer.send(heads(1, POST), ...large.map((piece) => data(1, piece)), data(1, "", true));
  await peer.isOpen();
  const recorder = await tested.stream();
  let releases = 0;
  for (; !recorder.order.includes("end") && releases < 100; releases += 1) recorder.stream.release();
  assert.ok(releases >= large.length, `${releases} releases`);
  assert.ok(recorder.body.equals(Buffer.concat(large)));
  assert.deepEqual(recorder.broken, []);
});

test("5.2: a held stream stops its sender by its window, and no other stream", async () => {
  const { client, server } = await both();
  await using _client = client;
  await using _server = server;
  server.onStream = (recorder) => {
    if (recorder.stream.id === 1) recorder.stream.hold();
    recorder.onEnded = () => recorder.stream.sendSection(OK, true);
  };
  const held = client.ask(false);
  held.stream.write(pattern(3_000_000));
  held.stream.end();
  const other = client.ask(false);
  const body = pattern(3_000_000, 5);
  other.stream.write(body);
  other.stream.end();
  assert.equal(await other.code(), NO_ERROR);
  assert.ok((await server.stream(1)).body.equals(body));
  assert.equal(held.stream.waitingBytes, 3_000_000 - FIRST_WINDOW_BYTES);
  (await server.stream(0)).stream.release();
  assert.equal(await held.code(), NO_ERROR);
  assert.ok((await server.stream(0)).body.equals(pattern(3_000_000)));
  assert.deepEqual([...client.broken, ...server.broken], []);
});

test("6.9.1: DATA beyond the window of a stream resets that stream only", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = (recorder) => recorder.stream.hold();
  peer.send(heads(1, POST), heads(3, POST));
  for (let at = 0; at < 4; at += 1) peer.send(data(1, Buffer.alloc(16_384)));
  assert.equal(await peer.reset(1), FLOW_CONTROL_ERROR);
  assert.equal(await (await tested.stream()).code(), FLOW_CONTROL_ERROR);
  await peer.isOpen();
  assert.equal((await tested.stream(1)).isClosed, false);
});

test("6.9.1: padding counts against the windows, and is given back as if it had been taken", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  peer.send(heads(1, POST));
  const padded = frame(FRAME.data, 8, 1, Buffer.concat([Buffer.from([255]), Buffer.from("x"), Buffer.alloc(255)]));
  for (let at = 0; at < 1000; at += 1) {
    peer.send(padded);
    if (at % 100 === 0) await peer.isOpen();
  }
  await peer.isOpen();
  assert.equal((await tested.stream()).dataBytes, 1000);
});

test("6.9: DATA of a stream that has ended counts against the window of the connection, and is given back", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = (recorder) => recorder.stream.reset(CANCEL);
  peer.send(heads(1, POST));
  await peer.isOpen();
  const before = widenedBy(peer, 0);
  const frames = CONNECTION_WINDOW_BYTES / 2 / FRAME_BYTES;
  for (let at = 0; at < frames; at += 1) {
    peer.send(data(1, Buffer.alloc(FRAME_BYTES)));
    if (at % 100 === 0) await peer.isOpen();
  }
  await peer.isOpen();
  assert.equal(widenedBy(peer, 0) - before, CONNECTION_WINDOW_BYTES / 2);
  assert.equal(widenedBy(peer, 1), 0);
});

test("6.9: windows are widened seldom, and before they are used up", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  peer.send(heads(1, POST));
  await peer.isOpen();
  const before = peer.frames.length;
  for (let at = 0; at < 100; at += 1) peer.send(data(1, pattern(1000)));
  await peer.isOpen();
  // Two of the stream, as half of its first window was taken and then of the wider one, and the answer to PING.
  assert.ok(peer.frames.length - before <= 3, `${peer.frames.length - before} frames`);
  assert.ok(widenedBy(peer, 1) >= 100_000 - FIRST_WINDOW_BYTES / 2);
});

test("6.9: a sender with windows of one byte sends a byte at a time", async () => {
  const { tested, peer } = await servedRaw({}, [[FIRST_WINDOW, 1]]);
  await using _tested = tested;
  tested.onStream = responses(() => 20);
  peer.send(request(1));
  for (let bytes = 1; bytes <= 20; bytes += 1) {
    assert.equal((await peer.bodyOf(1, bytes)).length, bytes);
    assert.equal(peer.hasEnd(1), bytes === 20 && peer.hasEnd(1));
    if (bytes < 20) peer.send(widen(1, 1));
  }
  await peer.frame("the end", () => peer.hasEnd(1));
  assert.ok(peer.body(1).equals(pattern(20, 1)));
});

test("6.9.2: with a first window of 0 nothing but heads and empty ends go", async () => {
  const { tested, peer } = await servedRaw({}, [[FIRST_WINDOW, 0]]);
  await using _tested = tested;
  tested.onStream = responses(({ stream }) => (stream.id === 1 ? 5 : 0));
  peer.send(request(1), request(3));
  await peer.frame("the end of 3", () => peer.hasEnd(3));
  await peer.isOpen();
  assert.equal(peer.body(1).length, 0);
  assert.equal(peer.hasEnd(1), false);
  peer.send(widen(1, 5));
  await peer.frame("the end of 1", () => peer.hasEnd(1));
});

test("6.9.2: a window that shrinks below 0 lets nothing go until it is above again", async () => {
  const { tested, peer } = await servedRaw({}, [[FIRST_WINDOW, 1000]]);
  await using _tested = tested;
  tested.onStream = responses(() => 1500);
  peer.send(request(1));
  await peer.bodyOf(1, 1000);
  peer.send(settings([FIRST_WINDOW, 400]), widen(1, 600));
  await peer.isOpen();
  assert.equal(tested.streams[0]?.stream.windowBytes, 0);
  assert.equal(peer.body(1).length, 1000);
  peer.send(widen(1, 1));
  await peer.isOpen();
  assert.equal(peer.body(1).length, 1001);
  peer.send(settings([FIRST_WINDOW, 899]));
  await peer.frame("the end", () => peer.hasEnd(1));
  assert.ok(peer.body(1).equals(pattern(1500, 1)));
});

test("6.9.2: a stream that begins because another ended under new settings has their window, and not twice", async () => {
  const { tested, peer } = await requestedRaw([[FIRST_WINDOW, 0]]);
  await using _tested = tested;
  const first = tested.ask(false);
  first.stream.write(Buffer.from("x"));
  first.stream.end();
  const begun = Promise.withResolvers<StreamRecorder>();
  first.onClose = () => begun.resolve(tested.ask(false));
  peer.send(heads(1, OK, true));
  await peer.isOpen();
  peer.send(settings([FIRST_WINDOW, 10]));
  const second = await within(begun.promise, () => "the second stream did not begin");
  assert.equal(second.stream.windowBytes, 10);
});

test("6.5.3: settings are confirmed before what they allow is sent", async () => {
  const { tested, peer } = await servedRaw({}, [[FIRST_WINDOW, 10]]);
  await using _tested = tested;
  tested.onStream = responses(() => 100);
  peer.send(request(1));
  await peer.bodyOf(1, 10);
  peer.send(settings([FIRST_WINDOW, 100]));
  await peer.bodyOf(1, 100);
  const allowed = peer.frames.findLastIndex(({ type, flags }) => type === FRAME.settings && flags === 1);
  const sent = peer.frames.findLastIndex(({ type }) => type === FRAME.data);
  assert.ok(allowed < sent, `the ACK is frame ${allowed}, the DATA ${sent}`);
});

test("5.2: with the connection's window used up, streams take turns however small it is widened, and all finish", async () => {
  const { tested, peer } = await servedRaw({}, [[FIRST_WINDOW, 10_000_000]]);
  await using _tested = tested;
  const [few, max] = [4, 200_000];
  tested.onStream = responses(() => max);
  const streams = Array.from({ length: few }, (_, at) => 1 + 2 * at);
  peer.send(...streams.map((stream) => request(stream)));
  await peer.bodyOf(1, FIRST_WINDOW_BYTES);
  await peer.isOpen();
  const sizes = (): number[] => streams.map((stream) => peer.body(stream).length);
  for (let at = 0; at < 40; at += 1) {
    peer.send(widen(0, 1000));
    await peer.isOpen();
  }
  const [first = 0, ...others] = sizes();
  for (const bytes of others) assert.ok(bytes >= 8000, `bodies of ${[first, ...others].join(", ")} bytes`);
  peer.send(widen(0, few * max));
  for (const stream of streams) {
    assert.ok((await peer.bodyOf(stream, max)).equals(pattern(max, stream)), `stream ${stream}`);
    await peer.frame("the end", () => peer.hasEnd(stream));
  }
});

test("5.2: a stream that is refilled whenever it drains does not keep the connection's window from others", async () => {
  const { tested, peer } = await servedRaw({}, [[FIRST_WINDOW, 10_000_000]]);
  await using _tested = tested;
  tested.onStream = (recorder) => {
    recorder.stream.sendSection(OK, false);
    const fill = (): void => {
      while (recorder.stream.hasRoom(10_000)) recorder.stream.write(Buffer.alloc(5000));
    };
    recorder.onDrained = fill;
    fill();
  };
  peer.send(request(1), request(3));
  await peer.bodyOf(1, FIRST_WINDOW_BYTES);
  for (let at = 0; at < 30; at += 1) {
    peer.send(widen(0, 20_000));
    await peer.isOpen();
  }
  const [one, other] = [peer.body(1).length - FIRST_WINDOW_BYTES, peer.body(3).length];
  assert.ok(Math.min(one, other) > 150_000, `${one} and ${other} bytes`);
});

test("a peer that takes nothing stops all writing; when it reads again, streams take turns and all is right", async () => {
  const { tested, peer } = await servedRaw({}, [[FIRST_WINDOW, 2 ** 31 - 1]]);
  await using _tested = tested;
  const bytes = 12_000_000;
  let drains = 0;
  tested.onStream = (recorder) => {
    recorder.onDrained = () => void (drains += 1);
    recorder.stream.sendSection(OK, false);
    const body = pattern(bytes, recorder.stream.id);
    for (let at = 0; at < bytes; at += 100_000) recorder.stream.write(body.subarray(at, at + 100_000));
    recorder.stream.hasRoom(1);
    recorder.stream.end();
  };
  peer.send(widen(0, 2 ** 31 - 1 - FIRST_WINDOW_BYTES));
  await peer.isOpen();
  peer.socket.pause();
  const begun = once(tested.socket, "data");
  peer.send(request(1), request(3));
  await begun;
  await tested.stream(1);
  const waiting = tested.streams.map(({ stream }) => stream.waitingBytes);
  assert.ok(
    waiting.every((left) => left > 0),
    `${waiting.join(", ")} bytes wait`,
  );
  assert.ok(tested.socket.writableLength < 400_000, `${tested.socket.writableLength} bytes in the socket`);
  peer.socket.resume();
  for (const stream of [1, 3]) {
    await peer.frame(`the end of ${stream}`, () => peer.hasEnd(stream));
    assert.ok(peer.body(stream).equals(pattern(bytes, stream)), `body ${stream}`);
  }
  const order = peer.frames.filter(({ type }) => type === FRAME.data).map(({ stream }) => stream);
  const middle = order.slice(order.length * 0.3, order.length * 0.7);
  const share = middle.filter((stream) => stream === 1).length / middle.length;
  assert.ok(Math.abs(share - 0.5) < 0.1, `${share} of the frames in the middle are of one stream`);
  assert.equal(drains, 0, "nothing is told behind the close");
  assert.deepEqual(tested.broken, []);
});

test("a stream whose queue never runs empty keeps none of what it has sent", async () => {
  const { tested, peer } = await servedRaw({}, [[FIRST_WINDOW, 0]]);
  await using _tested = tested;
  peer.send(request(1), widen(0, 1_000_000_000));
  await peer.isOpen();
  const { stream } = await tested.stream();
  const pieceBytes = 100_000;
  const sent: WeakRef<Buffer>[] = [];
  stream.sendSection(OK, false);
  stream.write(Buffer.alloc(pieceBytes));
  for (let at = 0; at < 300; at += 1) {
    const piece = Buffer.alloc(pieceBytes);
    if (at < 200) sent.push(new WeakRef(piece));
    stream.write(piece);
    peer.send(widen(1, pieceBytes));
    if (at % 20 === 0) await peer.isOpen();
  }
  await peer.isOpen();
  assert.equal(stream.waitingBytes, pieceBytes);
  const before = process.memoryUsage().arrayBuffers;
  peer.frames.length = 0;
  for (let at = 0; at < 40 && sent.some((one) => one.deref() !== undefined); at += 1) {
    Buffer.alloc(10_000_000);
    await peer.isOpen();
  }
  const kept = sent.filter((one) => one.deref() !== undefined).length;
  assert.ok(kept < 100, `${kept} of ${sent.length} pieces that were sent are still there (${before})`);
});

test("many tiny DATA frames on a held stream take little more memory than their bytes", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = (recorder) => recorder.stream.hold();
  peer.send(heads(1, POST));
  await peer.isOpen();
  const { heapUsed } = process.memoryUsage();
  const tiny = Buffer.concat(Array.from({ length: 1000 }, (_, at) => data(1, Buffer.from([at & 0xff]))));
  for (let at = 0; at < 60; at += 1) {
    peer.send(tiny);
    if (at % 10 === 0) await peer.isOpen();
  }
  await peer.isOpen();
  const grown = process.memoryUsage().heapUsed - heapUsed;
  const recorder = await tested.stream();
  assert.equal(recorder.dataBytes, 0);
  let pieces = 0;
  recorder.onDataReceived = () => void (pieces += 1);
  recorder.stream.release();
  assert.equal(recorder.dataBytes, 60_000);
  assert.ok(pieces < 20, `${pieces} pieces were held`);
  assert.ok(grown < 30_000_000, `${grown} bytes of heap`);
});

test("6.9: what a held stream had not told when it is reset is dropped, and told never", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = (recorder) => recorder.stream.hold();
  peer.send(heads(1, POST), data(1, "held"));
  await peer.isOpen();
  const recorder = await tested.stream();
  peer.send(frame(FRAME.reset, 0, 1, Buffer.from([0, 0, 0, CANCEL])));
  assert.equal(await recorder.code(), CANCEL);
  recorder.stream.release();
  assert.deepEqual(recorder.order, ["section", "close"]);
});

test("a held response that is complete outlives its connection until it was told", async () => {
  const { tested, peer } = await requestedRaw();
  await using _tested = tested;
  const [whole, half] = [tested.ask(true), tested.ask(true)];
  for (const { stream } of [whole, half]) stream.hold();
  peer.send(heads(1, OK), data(1, "held"), heads(1, ["x", "y"], true), heads(3, OK), data(3, "half"));
  await peer.isOpen();
  peer.socket.resetAndDestroy();
  await tested.end();
  assert.equal(await half.code(), NO_ERROR);
  assert.deepEqual(half.order, ["section", "close"]);
  assert.deepEqual(whole.order, ["section"]);
  whole.stream.release();
  assert.deepEqual(whole.order, ["section", "data", "trailers", "end", "close"]);
  assert.deepEqual(tested.broken, []);
});

test("a held request that is complete is dropped with its connection", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = ({ stream }) => stream.hold();
  peer.send(heads(1, POST), data(1, "held"), heads(1, ["x", "y"], true));
  await peer.isOpen();
  peer.socket.resetAndDestroy();
  await tested.end();
  assert.deepEqual((await tested.stream()).order, ["section", "close"]);
});
