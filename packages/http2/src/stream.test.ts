import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";
import fc from "fast-check";
import { FRAME, frame, settings } from "@headworks/testkit";
import { data, goaway, heads, pattern, resetOf, widen, type RawPeer } from "../test/raw-peer.ts";
import { askedRaw, OK, servedRaw, type Tested } from "../test/session-rig.ts";
import type { Told } from "../test/told.ts";
import { CANCEL, NO_ERROR } from "./codes.ts";

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

function act(told: Told, { behind, bytes }: Said): void {
  const { stream } = told;
  if (behind === "hold") stream.hold();
  if (behind === "release") stream.release();
  if (behind === "write") stream.write(pattern(bytes));
  if (behind === "end") stream.end();
  if (behind === "reset") stream.reset(CANCEL);
  if (stream.isClosed) assert.equal(told.isClosed, true, `stream ${stream.id} is closed, and did not say so`);
}

/** Whatever a program did, each stream has kept what it promises. */
async function checkPromises(tested: Tested, peer: RawPeer): Promise<void> {
  peer.socket.resetAndDestroy();
  await tested.end();
  for (const told of tested.streams) {
    // What a handler holds again inside of the telling would be told at the next release.
    told.onDataCame = undefined;
    told.stream.release();
    assert.equal(told.order.filter((what) => what === "close").length, 1, `closes of stream ${told.stream.id}`);
    assert.equal(told.order.at(-1), "close", `the last of stream ${told.stream.id}`);
    if (told.order.includes("end")) assert.equal(told.stream.hasReceivedEnd, true);
    if (told.trailers !== undefined) assert.ok(told.order.includes("end"), "trailers without an end");
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
          : await askedRaw([[4, 20_000]]);
        const prepare = (told: Told): void => {
          if (holdsAtOnce) told.stream.hold();
          if (!respondsInside) return;
          told.onDataCame = ({ stream, dataBytes }) => {
            if (dataBytes % 3 === 0) stream.hold();
            if (dataBytes % 5 === 0) stream.write(Buffer.from("inside"));
            if (dataBytes % 7 === 0) stream.reset(CANCEL);
          };
          told.onEnded = ({ stream }) => stream.end(["x-answer", "1"]);
        };
        tested.onStream = prepare;
        if (!isServer) for (let at = 0; at < 3; at += 1) prepare(tested.ask(at === 0));
        for (const one of steps) {
          peer.say(frameOf(one, isServer));
          await turn();
          const told = tested.streams.find(({ stream }) => stream.id === one.stream);
          if (told !== undefined) act(told, one);
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
  tested.onStream = (told) => {
    told.stream.sendSection(OK, false);
    told.onDataCame = () => {
      // Holding and releasing inside of the telling changes nothing.
      told.stream.hold();
      told.stream.release();
      told.stream.write(told.body.subarray(-1));
    };
    told.onEnded = () => told.stream.end();
  };
  const body = pattern(100);
  peer.say(
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
  peer.say(heads(1, [":method", "POST"]));
  await peer.goesOn();
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
    for (const letter of ["a", "b", "c"]) stream.write(lent.fill(letter), true);
    lent.fill("x");
    stream.end();
  };
  peer.say(heads(1, [":method", "POST"]), widen(1, 4), widen(1, 100));
  await peer.frame("the end", () => peer.hasEnd(1));
  assert.equal(peer.body(1).toString(), "aaaaabbbbbccccc");
});
