import assert from "node:assert/strict";
import { test } from "node:test";
import { FRAME, frame, request, settings } from "@headworks/testkit";
import { data, goaway, heads, pattern, resetOf, widen } from "../test/raw-peer.ts";
import { requestedRaw, memoryPair, OK, servedRaw } from "../test/session-rig.ts";
import { within } from "../test/within.ts";
import { CANCEL, ENHANCE_YOUR_CALM, Http2Error } from "./codes.ts";

const POST = [":method", "POST"] as const;
const FRAMES = 30_000;
/** A peer that reads gets its answers at once, so that hardly anything waits. */
const MAX_WAITING_BYTES = 1_500_000;

const ping = frame(FRAME.ping, 0, 0, "12345678");
const priority = frame(FRAME.priority, 0, 1, Buffer.from([0, 0, 0, 0, 1]));

/** Frames for nothing: what goes before them, and then those, over and over. */
const FLOODS: readonly (readonly [what: string, first: readonly Buffer[], again: Buffer])[] = [
  ["PING", [], ping],
  ["SETTINGS", [], settings([4, 1000])],
  ["empty SETTINGS", [], settings()],
  ["PRIORITY", [], priority],
  ["WINDOW_UPDATE of the connection", [], widen(0, 1)],
  ["WINDOW_UPDATE of a stream", [heads(1, POST)], widen(1, 1)],
  ["WINDOW_UPDATE of a stream that is over", [heads(1, POST), resetOf(1, CANCEL)], widen(1, 1)],
  ["unknown frames", [], frame(0xfa, 0xff, 77, "what")],
  ["empty DATA", [heads(1, POST)], data(1, "")],
  ["empty DATA of a stream that is over", [heads(1, POST), resetOf(1, CANCEL)], data(1, "")],
  ["ends of a stream that is over", [heads(1, POST), resetOf(1, CANCEL)], data(1, "", true)],
  ["GOAWAY", [], goaway(0)],
  ["RST_STREAM of a stream that is over", [heads(1, POST), resetOf(1, CANCEL)], resetOf(1, CANCEL)],
  ["HEADERS of a stream that is over", [heads(1, POST), resetOf(1, CANCEL)], heads(1, ["a", "b"], true)],
  [
    "bytes for a stream that is over, and PING",
    [heads(1, POST), resetOf(1, CANCEL)],
    Buffer.concat([data(1, "x"), ping]),
  ],
  ["CONTINUATION", [frame(FRAME.headers, 1, 1)], frame(FRAME.continuation, 0, 1)],
  ["CONTINUATION with bytes", [frame(FRAME.headers, 1, 1)], frame(FRAME.continuation, 0, 1, Buffer.alloc(16_000))],
];

for (const [what, first, again] of FLOODS) {
  test(`10.5: a flood of ${what} ends the connection with ENHANCE_YOUR_CALM`, async () => {
    const { tested, peer } = await servedRaw();
    await using _tested = tested;
    peer.send(...first);
    const many = Buffer.concat(Array.from({ length: 100 }, () => again));
    for (let at = 0; at < FRAMES && !peer.isEnded; at += 100) {
      peer.socket.write(many);
      if (at % 1000 === 0 || peer.socket.writableNeedDrain) await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(await peer.goaway(), ENHANCE_YOUR_CALM);
    const error = await tested.end();
    assert.ok(error instanceof Http2Error && error.http2Code === ENHANCE_YOUR_CALM, String(error));
    assert.deepEqual(tested.broken, []);
  });
}

test("10.5: a server's flood of HEADERS for a stream that has ended ends the connection as well", async () => {
  const { tested, peer } = await requestedRaw();
  await using _tested = tested;
  tested.ask(true).stream.reset(CANCEL);
  await peer.reset(1);
  const many = Buffer.concat(Array.from({ length: 1000 }, () => heads(1, OK)));
  for (let at = 0; at < FRAMES && !peer.isEnded; at += 1000) peer.send(many);
  assert.equal(await peer.goaway(), ENHANCE_YOUR_CALM);
});

test("10.5: a window for each frame, of the stream and of the connection, is no flood", async () => {
  const { tested, peer } = await servedRaw({}, [[4, 1]]);
  await using _tested = tested;
  tested.onStream = (recorder) => {
    recorder.stream.sendSection(OK, false);
    recorder.stream.write(pattern(FRAMES));
    recorder.stream.end();
  };
  peer.send(request(1));
  const windows = Buffer.concat(Array.from({ length: 1000 }, () => Buffer.concat([widen(0, 1), widen(1, 1)])));
  for (let at = 0; at < FRAMES; at += 1000) {
    peer.send(windows);
    await peer.isOpen();
  }
  await peer.frame("the end", () => peer.hasEnd(1));
  assert.ok(peer.frames.filter(({ type }) => type === FRAME.data).length >= FRAMES);
  assert.equal(tested.session.isFinished, false);
});

test("10.5: many small frames of a body that is read are no flood", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  peer.send(heads(1, POST));
  const small = Buffer.concat(Array.from({ length: 1000 }, () => data(1, "x")));
  for (let at = 0; at < FRAMES; at += 1000) {
    peer.send(small);
    if (at % 10_000 === 0) await peer.isOpen();
  }
  await peer.isOpen();
  assert.equal((await tested.stream()).dataBytes, FRAMES);
});

/** What makes work for a peer that reads nothing of what it gets. */
const UNREAD: readonly (readonly [what: string, again: (at: number) => Buffer])[] = [
  ["a ping behind each byte of a body", () => Buffer.concat([data(1, "x"), ping])],
  ["requests that are answered at once", (at) => request(3 + 2 * at)],
];

for (const [what, again] of UNREAD) {
  test(`10.5: a peer that reads nothing and sends ${what} is not read either until it reads`, async () => {
    const { tested, peer } = await servedRaw({}, [], memoryPair());
    await using _tested = tested;
    tested.onStream = (recorder, _fields, isWhole) => {
      if (isWhole) recorder.stream.sendSection([...OK, "set-cookie", "!".repeat(100)], true);
    };
    peer.send(heads(1, POST));
    await peer.isOpen();
    peer.socket.pause();
    let maxBytes = 0;
    for (let at = 0; at < 200; at += 1) {
      const many = Buffer.concat(Array.from({ length: 1000 }, (_, one) => again(at * 1000 + one)));
      const { promise, resolve } = Promise.withResolvers<undefined>();
      const isFinished = (): void => resolve(undefined);
      tested.socket.once("pause", isFinished);
      peer.socket.write(many, isFinished);
      await within(promise, () => "nothing went on");
      tested.socket.off("pause", isFinished);
      await new Promise((turn) => setImmediate(turn));
      maxBytes = Math.max(maxBytes, tested.socket.writableLength);
      if (tested.socket.isPaused()) break;
    }
    assert.ok(maxBytes < MAX_WAITING_BYTES, `${maxBytes} bytes wait for the peer`);
    assert.ok(tested.socket.isPaused(), "nothing stopped the peer");
    // It is no fault to be slow: once the peer reads, everything goes on.
    peer.socket.resume();
    await peer.isOpen();
  });
}
