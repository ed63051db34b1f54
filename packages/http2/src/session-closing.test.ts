import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import fc from "fast-check";
import { FLAG, FRAME, frame, request, settings } from "@headworks/testkit";
import { data, goaway, heads, pattern, RawPeer, resetOf, widen } from "../test/raw-peer.ts";
import { requestedRaw, LIMITS, OK, servedRaw, socketPair, Tested } from "../test/session-rig.ts";
import { within } from "../test/within.ts";
import { CANCEL, INTERNAL_ERROR, NO_ERROR, PROTOCOL_ERROR, REFUSED_STREAM } from "./codes.ts";
import { Http2Session } from "./session.ts";

const POST = [":method", "POST"] as const;

test("6.8: a GOAWAY refuses the streams above its last, and the others finish", async () => {
  const { tested, peer } = await requestedRaw();
  await using _tested = tested;
  const requested = [tested.ask(true), tested.ask(false), tested.ask(true), tested.ask(false)];
  peer.send(goaway(3));
  assert.deepEqual([await requested[2]?.code(), await requested[3]?.code()], [REFUSED_STREAM, REFUSED_STREAM]);
  assert.equal(tested.session.acceptsStreams, false);
  requested[1]?.stream.end();
  peer.send(heads(1, OK), data(1, "one", true), heads(3, OK, true), heads(5, OK, true));
  assert.deepEqual([await requested[0]?.code(), await requested[1]?.code()], [NO_ERROR, NO_ERROR]);
  assert.equal(requested[0]?.body.toString(), "one");
  await peer.isOpen();
  assert.equal(tested.session.isFinished, false);
  assert.deepEqual(tested.broken, []);
});

test("6.8: a second GOAWAY may name less, and refuses what is above it", async () => {
  const { tested, peer } = await requestedRaw();
  await using _tested = tested;
  const requested = [tested.ask(true), tested.ask(true)];
  peer.send(goaway(2 ** 31 - 1));
  await peer.isOpen();
  assert.deepEqual(tested.events, ["settings", "goaway 0"]);
  peer.send(goaway(1, INTERNAL_ERROR));
  assert.equal(await requested[1]?.code(), REFUSED_STREAM);
  assert.equal(requested[0]?.isClosed, false);
  assert.deepEqual(tested.events.slice(2), [`goaway ${INTERNAL_ERROR}`]);
});

test("6.8: warn() takes what still comes; close() takes nothing more, finishes what is there, and ends", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  peer.send(heads(1, POST));
  await tested.stream(0);
  tested.session.warn();
  const first = await peer.frame("GOAWAY", ({ type }) => type === FRAME.goaway);
  assert.equal(first.payload.readUInt32BE(0), 2 ** 31 - 1);
  peer.send(heads(3, POST));
  await tested.stream(1);
  tested.session.close();
  tested.session.close();
  peer.send(heads(5, POST), data(5, "late", true));
  await peer.isOpen();
  assert.deepEqual(
    peer.frames.filter(({ type }) => type === FRAME.goaway).map(({ payload }) => payload.readUInt32BE(0)),
    [2 ** 31 - 1, 3],
  );
  assert.equal(tested.streams.length, 2);
  assert.equal(tested.session.isFinished, false);
  for (const { stream } of tested.streams) {
    stream.sendSection(OK, false);
    stream.write(pattern(30_000));
    stream.end();
  }
  peer.send(data(1, "", true));
  await tested.streams[0]?.code();
  assert.equal(tested.session.isFinished, false);
  peer.send(data(3, "", true));
  assert.equal(await peer.goaway(), NO_ERROR);
  assert.equal(await tested.end(), undefined);
  assert.deepEqual([peer.body(1).length, peer.body(3).length], [30_000, 30_000]);
  assert.equal(tested.streams[1]?.stream.closeCode, NO_ERROR);
});

test("6.8: no later GOAWAY names a higher last stream than an earlier one", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  peer.send(heads(1, POST));
  await tested.stream(0);
  tested.session.close();
  // Another stream, which is not looked at, and then what breaks the connection.
  peer.send(heads(3, POST), frame(FRAME.ping, 0, 1, "12345678"));
  assert.equal(await peer.goaway(), PROTOCOL_ERROR);
  const lasts = peer.frames.filter(({ type }) => type === FRAME.goaway).map(({ payload }) => payload.readUInt32BE(0));
  assert.deepEqual(lasts, [1, 1]);
});

test("9.1: what was answered before close() reaches a peer that reads slowly and still sends", async () => {
  const { tested, peer } = await servedRaw({}, [[4, 2 ** 31 - 1]]);
  await using _tested = tested;
  const bytes = 3_000_000;
  tested.onStream = (recorder) => {
    recorder.stream.sendSection(OK, false);
    recorder.stream.write(pattern(bytes));
    recorder.stream.end();
    void recorder.closed.then(() => tested.session.close());
  };
  peer.send(widen(0, 1_000_000_000));
  await peer.isOpen();
  peer.socket.pause();
  peer.send(request(1));
  const recorder = await tested.stream();
  // The system holds what it can; the peer reads a part, and says so as clients do.
  if (!recorder.isClosed) peer.socket.resume();
  await recorder.code();
  peer.socket.pause();
  if (!tested.socket.writableFinished) await within(once(tested.socket, "finish"), () => "the end was not written");
  for (let at = 0; at < 20; at += 1) peer.socket.write(widen(0, 1000));
  peer.socket.resume();
  await peer.frame("the end of the answer", () => peer.hasEnd(1));
  assert.ok(peer.body(1).equals(pattern(bytes)));
  assert.equal(await peer.goaway(), NO_ERROR);
});

test("destroy() tells each stream once, says why, and says nothing later", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  peer.send(heads(1, POST), data(1, "a"), request(3), heads(5, POST));
  await peer.isOpen();
  const error = new Error("enough");
  tested.session.destroy(CANCEL, error);
  tested.session.destroy(INTERNAL_ERROR, new Error("again"));
  tested.session.close();
  tested.session.warn();
  assert.deepEqual(
    tested.streams.map(({ order }) => order.filter((what) => what === "close").length),
    [1, 1, 1],
  );
  peer.send(data(1, "late"), request(7));
  for (const { stream } of tested.streams) {
    stream.write(Buffer.from("late"));
    stream.end();
    stream.reset(CANCEL);
    stream.release();
  }
  assert.equal(await peer.goaway(), CANCEL);
  assert.equal(await tested.end(), error);
  assert.equal(tested.events.filter((what) => what === "close").length, 1);
  assert.equal(tested.streams.length, 3);
  assert.deepEqual(tested.broken, []);
  assert.equal(peer.frames.at(-1)?.type, FRAME.goaway);
});

test("destroy() from inside the telling ends the telling there, of all streams", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  tested.onStream = (recorder) => {
    recorder.onDataReceived = () => tested.session.destroy();
  };
  peer.send(heads(1, POST), heads(3, POST), data(1, "a"), data(3, "b"), data(1, "c", true));
  await tested.end();
  assert.deepEqual(
    tested.streams.map(({ order }) => order.join(" ")),
    ["section data close", "section close"],
  );
});

test("6.7: pings are answered with what they carry, and those of ours are told once of their response", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  const recorder: string[] = [];
  tested.session.ping((isAcknowledged) => void recorder.push(`first ${isAcknowledged}`));
  tested.session.ping((isAcknowledged) => void recorder.push(`second ${isAcknowledged}`));
  tested.session.ping((isAcknowledged) => void recorder.push(`third ${isAcknowledged}`));
  const pings = (): Buffer[] =>
    peer.frames.filter(({ type, flags }) => type === FRAME.ping && flags === 0).map(({ payload }) => payload);
  await peer.frame("three pings", () => pings().length === 3);
  assert.equal(new Set(pings().map((payload) => payload.toString("hex"))).size, 3);
  for (const payload of pings().slice(0, 2)) peer.send(frame(FRAME.ping, FLAG.ack, 0, payload));
  await peer.isOpen();
  assert.deepEqual(recorder, ["first true", "second true"]);
  tested.session.destroy();
  assert.deepEqual(recorder.slice(2), ["third false"]);
  tested.session.ping((isAcknowledged) => void recorder.push(`late ${isAcknowledged}`));
  assert.deepEqual(recorder.slice(3), ["late false"]);
});

test("3.4: a client whose server ends its side has ended, and nothing it waited for is left waiting", async () => {
  const { tested, peer } = await requestedRaw();
  await using _tested = tested;
  const whole = tested.ask(true);
  const half = tested.ask(true);
  peer.send(heads(1, OK), data(1, "all", true), heads(3, OK), data(3, "some"));
  peer.socket.end();
  assert.equal(await tested.end(), undefined);
  assert.deepEqual(whole.order, ["section", "data", "end", "close"]);
  assert.deepEqual(half.order, ["section", "data", "close"]);
});

test("3.4: a server whose client ends its side goes on answering", async () => {
  const { tested, peer } = await servedRaw();
  await using _tested = tested;
  peer.send(request(1));
  peer.socket.end();
  await within(once(tested.socket, "end"), () => "the client's side did not end");
  const recorder = await tested.stream();
  recorder.stream.sendSection(OK, false);
  recorder.stream.write(Buffer.from("answer"));
  recorder.stream.end();
  await peer.frame("the answer", () => peer.hasEnd(1));
  assert.ok(tested.events.includes("end"));
});

for (const [what, said] of [
  ["another protocol", Buffer.from("GET / HTTP/1.1\r\n\r\n")],
  ["HTTP/1.1 from a server", Buffer.from("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")],
] as const) {
  test(`3.4: who speaks ${what} is told PROTOCOL_ERROR or FRAME_SIZE_ERROR`, async () => {
    const [client, server] = await socketPair();
    const isServer = what === "another protocol";
    const peer = new RawPeer(isServer ? client : server, !isServer);
    const [own, other] = isServer ? [server, client] : [client, server];
    await using tested = new Tested(own, other, { role: isServer ? "server" : "client" });
    peer.send(said);
    assert.ok([PROTOCOL_ERROR, 6].includes(await peer.goaway()));
    assert.equal(tested.session.hasSettings, false);
    assert.ok(((await tested.end()) ?? "") !== "");
  });
}

test("a socket that breaks at any byte closes each stream once, and nothing is told behind that", async () => {
  const frames = [
    heads(1, OK),
    data(1, pattern(3000)),
    heads(3, [":status", "100"]),
    heads(3, OK),
    data(3, pattern(200)),
    heads(1, ["x-sum", "1"], true),
    resetOf(5, CANCEL),
    settings([4, 100]),
    frame(FRAME.ping, 0, 0, "12345678"),
    data(3, "", true),
    goaway(7),
    heads(7, OK, true),
  ];
  const bytes = Buffer.concat(frames);
  const places = fc.record({
    at: fc.integer({ min: 0, max: bytes.length }),
    held: fc.subarray([0, 1, 2, 3]),
    isReset: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(places, async ({ at, held, isReset }) => {
      const { tested, peer } = await requestedRaw();
      await using _tested = tested;
      const requested = [tested.ask(true), tested.ask(false), tested.ask(false), tested.ask(true), tested.ask(true)];
      requested[1]?.stream.write(pattern(100_000));
      for (const one of held) requested[one]?.stream.hold();
      peer.socket.write(bytes.subarray(0, at), () => {
        if (isReset) peer.socket.resetAndDestroy();
        else peer.socket.end();
      });
      await tested.end();
      for (const recorder of requested) recorder.stream.release();
      assert.deepEqual(
        requested.map(({ order }) => order.filter((what) => what === "close").length),
        [1, 1, 1, 1, 1],
      );
      assert.deepEqual(tested.broken, []);
      assert.equal(tested.events.at(-1), "close");
    }),
    { numRuns: 60 },
  );
});

test("a session on a socket that is gone already is closed", async () => {
  const [client, server] = await socketPair();
  server.destroy();
  const closed = Promise.withResolvers<undefined>();
  client.destroy();
  const session = new Http2Session(
    client,
    { role: "client", section: LIMITS },
    { onClose: () => closed.resolve(undefined) },
  );
  await within(closed.promise, () => "the session was not closed");
  assert.equal(session.isFinished, true);
});
