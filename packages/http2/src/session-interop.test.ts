import assert from "node:assert/strict";
import { connect as connectHttp2, createServer, performServerHandshake } from "node:http2";
import type { ClientHttp2Stream, Http2Server, ServerHttp2Stream } from "node:http2";
import type { Duplex } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import { test } from "node:test";
import fc from "fast-check";
import { pattern } from "../test/raw-peer.ts";
import { memoryPair, OK, socketPair, Tested } from "../test/session-rig.ts";
import type { StreamRecorder } from "../test/stream-recorder.ts";
import { within } from "../test/within.ts";
import { CANCEL, NO_ERROR } from "./codes.ts";

/** One request of a program: what it sends, in which pieces, and what becomes of it. */
interface Step {
  readonly askBytes: number;
  readonly responseBytes: number;
  readonly pieceBytes: number;
  readonly hasTrailers: boolean;
  /** Turns of the event loop for which our end tells nothing, from its first data on. */
  readonly holdTurns: number;
  readonly fate: "finish" | "finish at once" | "reset by the client" | "reset by the server";
}

const sizes = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 300 }) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 70_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 400_000 }) },
);
const step: fc.Arbitrary<Step> = fc.record({
  askBytes: sizes,
  responseBytes: sizes,
  pieceBytes: fc.integer({ min: 500, max: 50_000 }),
  hasTrailers: fc.boolean(),
  holdTurns: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 5 })),
  fate: fc.oneof(
    { weight: 5, arbitrary: fc.constant<Step["fate"]>("finish") },
    { weight: 1, arbitrary: fc.constant<Step["fate"]>("finish at once") },
    { weight: 1, arbitrary: fc.constant<Step["fate"]>("reset by the client") },
    { weight: 1, arbitrary: fc.constant<Step["fate"]>("reset by the server") },
  ),
});
const program = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 8 }),
  windowBytes: fc.constantFrom(1000, 65_535, 1_000_000),
});

function* pieces(bytes: number, pieceBytes: number, seed: number): Generator<Buffer> {
  const body = pattern(bytes, seed);
  for (let at = 0; at < bytes; at += pieceBytes) yield body.subarray(at, at + pieceBytes);
}

function holds(recorder: StreamRecorder, turns: number): void {
  if (turns === 0) return;
  recorder.onDataReceived = () => {
    recorder.onDataReceived = undefined;
    recorder.stream.hold();
    void later(turns).then(() => recorder.stream.release());
  };
}

async function later(turns: number): Promise<void> {
  for (let at = 0; at < turns; at += 1) await turn();
}

/** What node's end of one stream saw. */
interface Seen {
  readonly body: Buffer;
  readonly trailers: string[];
  readonly code: number;
}

async function seenBy(stream: ClientHttp2Stream | ServerHttp2Stream): Promise<Seen> {
  const found: Buffer[] = [];
  const trailers: string[] = [];
  const closed = Promise.withResolvers<undefined>();
  stream.on("data", (piece: Buffer) => void found.push(piece));
  stream.on("trailers", (_headers: unknown, _flags: unknown, section: string[]) => void trailers.push(...section));
  stream.on("error", () => undefined);
  stream.on("close", () => closed.resolve(undefined));
  await within(closed.promise, () => `node's stream ${stream.id} was not closed`);
  return { body: Buffer.concat(found), trailers, code: stream.rstCode ?? 0 };
}

function writeAll(
  stream: ClientHttp2Stream | ServerHttp2Stream,
  bytes: number,
  { pieceBytes, hasTrailers }: Step,
): void {
  if (hasTrailers) stream.on("wantTrailers", () => stream.sendTrailers({ "x-seed": String(bytes) }));
  for (const piece of pieces(bytes, pieceBytes, bytes)) stream.write(piece);
  stream.end();
}

/** Whether one end saw all of a body, or, where the stream was reset, the begin of it. */
function checkBody(what: string, seen: { body: Buffer; trailers: readonly string[] }, bytes: number, step: Step): void {
  if (step.fate.startsWith("reset")) {
    assert.ok(pattern(bytes, bytes).subarray(0, seen.body.length).equals(seen.body), `begin of ${what}`);
    return;
  }
  assert.equal(seen.body.length, bytes, `size of ${what}`);
  assert.ok(pattern(bytes, bytes).equals(seen.body), `bytes of ${what}`);
  assert.deepEqual(seen.trailers, step.hasTrailers ? ["x-seed", String(bytes)] : [], `trailers of ${what}`);
}

function sendAll(recorder: StreamRecorder, bytes: number, { pieceBytes, hasTrailers }: Step): void {
  for (const piece of pieces(bytes, pieceBytes, bytes)) recorder.stream.write(piece);
  recorder.stream.end(hasTrailers ? ["x-seed", String(bytes)] : undefined);
}

test("a client of ours and node's server understand each other, byte for byte", async () => {
  await fc.assert(
    fc.asyncProperty(program, async ({ steps, windowBytes }) => {
      const [client, server] = await socketPair();
      const served: Promise<Seen>[] = [];
      const listener: Http2Server = createServer({ settings: { initialWindowSize: windowBytes } });
      listener.on("stream", (stream: ServerHttp2Stream, headers) => {
        const at = Number(headers["x-step"]);
        const requested = steps[at];
        assert.ok(requested !== undefined);
        served[at] = seenBy(stream);
        const response = (): void => {
          if (stream.destroyed) return;
          if (requested.fate === "reset by the server") return stream.close(CANCEL);
          stream.respond({ ":status": 200 }, { waitForTrailers: requested.hasTrailers });
          writeAll(stream, requested.responseBytes, requested);
        };
        if (requested.fate === "finish") stream.on("end", response);
        else response();
      });
      listener.emit("connection", server);
      await using tested = new Tested(client, server, { role: "client" });
      const requested = steps.map((one, at) => {
        const recorder = tested.ask(false, ["x-step", String(at)]);
        holds(recorder, one.holdTurns);
        sendAll(recorder, one.askBytes, one);
        if (one.fate === "reset by the client") void later(at % 4).then(() => recorder.stream.reset(CANCEL));
        return recorder;
      });
      for (const [at, one] of steps.entries()) {
        const recorder = requested[at];
        assert.ok(recorder !== undefined);
        const code = await recorder.code();
        if (!one.fate.startsWith("reset")) assert.equal(code, NO_ERROR, `stream ${at}, ${one.fate}`);
        checkBody(`answer ${at}`, { body: recorder.body, trailers: recorder.trailers ?? [] }, one.responseBytes, one);
        const seen = await served[at];
        if (seen !== undefined) checkBody(`request ${at}`, seen, one.askBytes, one);
      }
      assert.deepEqual(tested.broken, []);
      assert.equal(tested.session.isFinished, false);
    }),
    { numRuns: 40 },
  );
});

test("node's client and a server of ours understand each other, byte for byte", async () => {
  await fc.assert(
    fc.asyncProperty(program, async ({ steps, windowBytes }) => {
      const [client, server] = await socketPair();
      await using tested = new Tested(server, client, { role: "server", maxConcurrentStreams: 100 });
      const served: StreamRecorder[] = [];
      tested.onStream = (recorder, fields) => {
        const at = Number(fields[fields.indexOf("x-step") + 1]);
        const one = steps[at];
        assert.ok(one !== undefined);
        served[at] = recorder;
        holds(recorder, one.holdTurns);
        const response = (): void => {
          if (one.fate === "reset by the server") return recorder.stream.reset(CANCEL);
          recorder.stream.sendSection(OK, false);
          sendAll(recorder, one.responseBytes, one);
        };
        if (one.fate === "finish") recorder.onEnded = response;
        else response();
      };
      const session = connectHttp2("http://a.test", {
        createConnection: () => client,
        settings: { initialWindowSize: windowBytes },
      });
      session.on("error", () => undefined);
      const requested = steps.map((one, at) => {
        const stream = session.request(
          { ":method": "POST", "x-step": String(at) },
          { endStream: false, waitForTrailers: one.hasTrailers },
        );
        const seen = seenBy(stream);
        writeAll(stream, one.askBytes, one);
        if (one.fate === "reset by the client") void later(at % 4).then(() => stream.close(CANCEL));
        return seen;
      });
      for (const [at, one] of steps.entries()) {
        const seen = await requested[at];
        assert.ok(seen !== undefined);
        if (!one.fate.startsWith("reset")) assert.equal(seen.code, NO_ERROR, `stream ${at}, ${one.fate}`);
        checkBody(`answer ${at}`, seen, one.responseBytes, one);
        const recorder = served[at];
        if (recorder === undefined) continue;
        await recorder.code();
        checkBody(`request ${at}`, { body: recorder.body, trailers: recorder.trailers ?? [] }, one.askBytes, one);
      }
      assert.deepEqual(tested.broken, []);
      assert.equal(tested.session.isFinished, false);
      session.destroy();
    }),
    { numRuns: 40 },
  );
});

test("6.5.3: a body that waits for wider settings does not go out before node has their confirmation", async () => {
  const [client, server] = await socketPair();
  await using tested = new Tested(client, server, { role: "client" });
  const recorder = tested.ask(false);
  recorder.stream.write(pattern(300_000));
  recorder.stream.end();
  const session = performServerHandshake(server as Duplex, { settings: { initialWindowSize: 1_000_000 } });
  const served = Promise.withResolvers<Seen>();
  session.on("stream", (stream: ServerHttp2Stream) => {
    stream.respond({ ":status": 200 });
    stream.end();
    void seenBy(stream).then(served.resolve);
  });
  assert.equal((await served.promise).body.length, 300_000);
  assert.equal(await recorder.code(), NO_ERROR);
});

test("two sessions in memory, where each write is read within the call, exchange what they should", async () => {
  const [one, other] = memoryPair();
  await using client = new Tested(one, other, { role: "client" });
  await using server = new Tested(other, one, { role: "server" });
  server.onStream = (recorder) => {
    recorder.stream.sendSection(OK, false);
    recorder.onDataReceived = () => recorder.stream.write(recorder.body.subarray(recorder.dataBytes - 1));
    recorder.onEnded = () => {
      recorder.stream.write(pattern(500_000, recorder.stream.id));
      recorder.stream.end();
    };
  };
  const requested = Array.from({ length: 20 }, (_, at) => {
    const recorder = client.ask(false);
    recorder.stream.write(pattern(200_000, at));
    recorder.stream.end();
    return recorder;
  });
  for (const [at, recorder] of requested.entries()) {
    assert.equal(await recorder.code(), NO_ERROR);
    assert.ok(server.streams[at]?.body.equals(pattern(200_000, at)), `request ${at}`);
    assert.ok(recorder.body.subarray(-500_000).equals(pattern(500_000, recorder.stream.id)), `answer ${at}`);
  }
  assert.deepEqual([...client.broken, ...server.broken], []);
});
