import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { FRAME, frame, settings } from "@headworks/testkit";
import { data, goaway, heads, pattern, type RawPeer, resetOf, widen } from "../test/raw-peer.ts";
import { requestedRaw, OK, servedRaw, type Tested } from "../test/session-rig.ts";
import type { StreamRecorder } from "../test/stream-recorder.ts";
import { CANCEL, NO_ERROR } from "./codes.ts";
import { ClosedStreams } from "./stream.ts";

/** What a peer says next, of one of three streams. */
const said = fc.record({
  what: fc.constantFrom(
    "head",
    "head and end",
    "interim",
    "data",
    "data",
    "data and end",
    "padding",
    "empty end",
    "trailers",
    "reset",
    "calm reset",
    "window",
    "settings",
    "ping",
    "goaway",
    "wrong fields",
  ),
  stream: fc.constantFrom(1, 3, 5),
  bytes: fc.oneof(fc.integer({ min: 1, max: 200 }), fc.integer({ min: 4000, max: 16_000 })),
  /** What we do behind it, with the same stream. */
  behind: fc.constantFrom("nothing", "nothing", "hold", "hold", "release", "release", "write", "end", "reset", "turn"),
});

type Said = typeof said extends fc.Arbitrary<infer T> ? T : never;

function frameOf({ what, stream, bytes }: Said, isServer: boolean): Buffer {
  const head = isServer ? [":method", "POST"] : OK;
  switch (what) {
    case "head":
    case "head and end":
      return heads(stream, head, what === "head and end");
    case "interim":
      return heads(stream, isServer ? head : [":status", "103"]);
    case "data":
    case "data and end":
      return data(stream, pattern(bytes, stream), what === "data and end");
    case "padding":
      return frame(FRAME.data, 8, stream, Buffer.concat([Buffer.from([200]), Buffer.from("p"), Buffer.alloc(200)]));
    case "empty end":
      return data(stream, "", true);
    case "trailers":
      return heads(stream, ["x-sum", "1"], true);
    case "reset":
    case "calm reset":
      return resetOf(stream, what === "reset" ? CANCEL : NO_ERROR);
    case "window":
      return widen(stream, bytes);
    case "settings":
      return settings([4, bytes]);
    case "ping":
      return frame(FRAME.ping, 0, 0, "12345678");
    case "goaway":
      return goaway(stream);
    case "wrong fields":
      return heads(stream, ["connection", "close"], true);
  }
}

function act(recorder: StreamRecorder, { behind, bytes }: Said): void {
  const { stream } = recorder;
  if (behind === "hold") stream.hold();
  if (behind === "release") stream.release();
  if (behind === "write") stream.write(pattern(bytes));
  if (behind === "end") stream.end();
  if (behind === "reset") stream.reset(CANCEL);
  if (stream.isClosed) assert.equal(recorder.isClosed, true, `stream ${stream.id} is closed, and did not say so`);
}

/** Whatever a program did, each stream has kept what it promises. */
async function checkPromises(tested: Tested, peer: RawPeer): Promise<void> {
  peer.socket.resetAndDestroy();
  await tested.end();
  for (const recorder of tested.streams) {
    // What a handler holds again inside of the telling would be told at the next release.
    recorder.onDataReceived = undefined;
    recorder.stream.release();
    assert.equal(recorder.order.filter((what) => what === "close").length, 1, `closes of stream ${recorder.stream.id}`);
    assert.equal(recorder.order.at(-1), "close", `the last of stream ${recorder.stream.id}`);
    if (recorder.order.includes("end")) assert.equal(recorder.stream.hasReceivedEnd, true);
    if (recorder.trailers !== undefined) assert.ok(recorder.order.includes("end"), "trailers without an end");
  }
  assert.deepEqual(tested.broken, []);
}

for (const role of ["client", "server"] as const) {
  test(`5.1: whatever a peer of a ${role} says, and whenever we hold, streams are told in order and closed once`, async () => {
    const program = fc.array(said, { minLength: 1, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(program, fc.boolean(), fc.boolean(), async (steps, holdsAtOnce, respondsInside) => {
        const isServer = role === "server";
        const { tested, peer } = isServer
          ? await servedRaw({ maxConcurrentStreams: 10 })
          : await requestedRaw([[4, 20_000]]);
        const prepare = (recorder: StreamRecorder): void => {
          if (holdsAtOnce) recorder.stream.hold();
          if (!respondsInside) return;
          recorder.onDataReceived = ({ stream, dataBytes }) => {
            if (dataBytes % 3 === 0) stream.hold();
            if (dataBytes % 5 === 0) stream.write(Buffer.from("inside"));
            if (dataBytes % 7 === 0) stream.reset(CANCEL);
          };
          recorder.onEnded = ({ stream }) => stream.end(["x-answer", "1"]);
        };
        tested.onStream = prepare;
        if (!isServer) for (let at = 0; at < 3; at += 1) prepare(tested.ask(at === 0));
        for (const one of steps) {
          peer.send(frameOf(one, isServer));
          await turn();
          const recorder = tested.streams.find(({ stream }) => stream.id === one.stream);
          if (recorder !== undefined) act(recorder, one);
        }
        await checkPromises(tested, peer);
      }),
      { numRuns: 150 },
    );
  });
}

test("what comes while something is told waits behind it, and what was written inside of the telling leaves", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = (recorder) => {
    recorder.stream.sendSection(OK, false);
    recorder.onDataReceived = () => {
      // Holding and releasing inside of the telling changes nothing.
      recorder.stream.hold();
      recorder.stream.release();
      recorder.stream.write(recorder.body.subarray(-1));
    };
    recorder.onEnded = () => recorder.stream.end();
  };
  const body = pattern(100);
  peer.send(
    heads(1, [":method", "POST"]),
    ...Array.from(body, (byte) => data(1, Buffer.from([byte]))),
    data(1, "", true),
  );
  await peer.frame("the end", () => peer.hasEnd(1));
  assert.ok(peer.body(1).equals(body));
  assert.deepEqual((await tested.stream()).order, ["section", "data", "end", "close"]);
});

test("writing and ending twice, or behind an end, sends one end and nothing behind it", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = ({ stream }) => {
    stream.sendSection(OK, false);
    stream.write(Buffer.alloc(0));
    stream.write(Buffer.from("once"));
    stream.end();
    stream.end(["x", "y"]);
    stream.write(Buffer.from("twice"));
    stream.sendSection(OK, true);
  };
  peer.send(heads(1, [":method", "POST"]));
  await peer.isOpen();
  assert.deepEqual(
    peer.frames.filter(({ stream }) => stream === 1).map(({ type, flags, payload }) => [type, flags, payload.length]),
    [
      [FRAME.headers, 4, 1],
      [FRAME.data, 1, 4],
    ],
  );
});

test("content that is lent may be changed behind the call, whatever of it still waits", async () => {
  const { tested, peer } = await servedRaw({}, [[4, 3]]);
  await using _tested = tested;
  tested.onStream = ({ stream }) => {
    stream.sendSection(OK, false);
    const lent = Buffer.alloc(5);
    for (const letter of ["a", "b", "c"]) stream.writeShared(lent.fill(letter));
    lent.fill("x");
    stream.end();
  };
  peer.send(heads(1, [":method", "POST"]), widen(1, 4), widen(1, 100));
  await peer.frame("the end", () => peer.hasEnd(1));
  assert.equal(peer.body(1).toString(), "aaaaabbbbbccccc");
});

test("the endings of the streams that ended last are known, and no others", () => {
  const closed = new ClosedStreams();
  assert.equal(closed.endingOf(1), "unknown");
  for (let id = 1; id < 401; id += 2) closed.note(id, id % 3 === 0 ? "ended" : id % 3 === 1 ? "reset" : "left");
  assert.deepEqual(
    [399, 397, 395, 145, 143, 1, 401].map((id) => closed.endingOf(id)),
    ["ended", "reset", "left", "reset", "unknown", "unknown", "unknown"],
  );
});

test("numbers that a client left out are known, as far as there are few of them", () => {
  const closed = new ClosedStreams();
  let last = 0;
  for (const id of [1, 3, 9, 11, 13, 1001]) {
    closed.opened(id, last);
    last = id;
  }
  const leftOut = [1, 3, 5, 7, 9, 11, 13, 15, 999, 1001, 1003].filter((id) => closed.wasSkipped(id));
  assert.deepEqual(leftOut, [5, 7, 15, 999]);
  const first = new ClosedStreams();
  first.opened(5, 0);
  assert.deepEqual([first.wasSkipped(1), first.wasSkipped(3), first.wasSkipped(5)], [true, true, false]);
  for (let id = 1005; id < 100_000; id += 4) closed.opened(id, id - 4);
  assert.equal(closed.wasSkipped(99_999), false, "a forgotten stream counts as used");
});
