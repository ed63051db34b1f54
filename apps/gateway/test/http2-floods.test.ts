import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  FLAG,
  FRAME,
  frame,
  FrameReader,
  GET,
  http2Client,
  PREFACE,
  rawClient,
  type RawConnection,
  type ReadFrame,
  request,
  section,
  settings,
  startOrigin,
  u32,
  waitUntil,
} from "@headworks/testkit";
import { http2Limits } from "#listener/environment-numbers.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

const routes = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
] as const;

/** Sends pieces until the gateway ends the connection or all are out; says how it ended. */
async function flood(
  port: number,
  first: Buffer,
  pieces: Iterable<Buffer>,
): Promise<{ isEnded: boolean; code: number | undefined }> {
  await using client = await rawClient(port);
  client.socket.on("error", () => undefined);
  const reading = readAll(client);
  await client.write(Buffer.concat([PREFACE, settings(), first]));
  for (const piece of pieces) {
    if (client.ended) break;
    // A connection that is ended in the middle is what the test is about.
    await client.write(piece).catch(() => undefined);
  }
  const deadlineMs = performance.now() + 3000;
  await waitUntil(() => client.ended || performance.now() > deadlineMs);
  const isEnded = client.ended;
  client.destroy();
  const goaway = (await reading).findLast(({ type }) => type === FRAME.goaway);
  return { isEnded, code: goaway?.payload.readUInt32BE(4) };
}

async function readAll(client: RawConnection): Promise<ReadFrame[]> {
  const reader = new FrameReader();
  const frames: ReadFrame[] = [];
  for (;;) {
    const chunk = await client.readSome(20_000).catch(() => undefined);
    if (chunk === undefined) return frames;
    for (const one of reader.read(chunk)) if (one.type === FRAME.goaway || frames.length < 1000) frames.push(one);
  }
}

function* times(count: number, make: (at: number) => Buffer): Generator<Buffer> {
  for (let at = 0; at < count; at += 100) {
    yield Buffer.concat(Array.from({ length: 100 }, (_, step) => make(at + step)));
  }
}

const odd = (at: number): number => 2 * at + 1;

/** Upper limit of a wait, also on a busy machine. */
const MAX_WAIT_MS = 5000;

/**
 * What a flood must not touch: somebody else is answered all the while, and soon. Gives the most processor time, in
 * milliseconds, that this thread, which all of them share, spent while somebody waited: on a free machine that is how
 * long they waited.
 */
async function served(gateway: TestGateway, during: () => Promise<void>): Promise<number> {
  let isFinished = false;
  let slowestMs = 0;
  const probe = async (): Promise<void> => {
    while (!isFinished) {
      const startedMs = performance.now();
      const before = process.threadCpuUsage();
      assert.equal((await gateway.send({ path: "/healthz" })).status, 200);
      const { user, system } = process.threadCpuUsage(before);
      const waitedMs = performance.now() - startedMs;
      assert.ok(waitedMs < MAX_WAIT_MS, `${waitedMs} ms`);
      slowestMs = Math.max(slowestMs, (user + system) / 1000);
    }
  };
  const probing = probe();
  try {
    await during();
  } finally {
    isFinished = true;
    await probing;
  }
  return slowestMs;
}

/** The name, what is sent, and whether the connection must be ended for it. */
const FLOODS: readonly (readonly [string, Buffer, () => Iterable<Buffer>, boolean])[] = [
  [
    "rapid resets",
    Buffer.alloc(0),
    () => times(20_000, (at) => Buffer.concat([request(odd(at)), frame(FRAME.reset, 0, odd(at), u32(8))])),
    true,
  ],
  [
    "streams that the gateway is made to reset",
    Buffer.alloc(0),
    () =>
      times(20_000, (at) =>
        Buffer.concat([request(odd(at), [], FLAG.endHeaders), frame(FRAME.windowUpdate, 0, odd(at), u32(0))]),
      ),
    true,
  ],
  [
    "streams whose window overflows",
    Buffer.alloc(0),
    () =>
      times(20_000, (at) =>
        Buffer.concat([request(odd(at), [], FLAG.endHeaders), frame(FRAME.windowUpdate, 0, odd(at), u32(0x7fffffff))]),
      ),
    true,
  ],
  [
    "CONTINUATION without end",
    frame(FRAME.headers, 0, 1, section(GET)),
    () => times(20_000, (at) => frame(FRAME.continuation, 0, 1, section([[`x-${at}`, "y".repeat(1000)]]))),
    true,
  ],
  [
    "empty CONTINUATION",
    frame(FRAME.headers, 0, 1, section(GET)),
    () => times(50_000, () => frame(FRAME.continuation, 0, 1)),
    true,
  ],
  ["SETTINGS", Buffer.alloc(0), () => times(100_000, () => settings([4, 65_535])), false],
  ["PING", Buffer.alloc(0), () => times(100_000, () => frame(FRAME.ping, 0, 0, "12345678")), false],
  [
    "PRIORITY",
    Buffer.alloc(0),
    () => times(100_000, (at) => frame(FRAME.priority, 0, odd(at), Buffer.from([0, 0, 0, 0, 1]))),
    false,
  ],
  ["empty DATA", request(1, [], FLAG.endHeaders), () => times(100_000, () => frame(FRAME.data, 0, 1)), true],
  [
    "more streams than allowed",
    Buffer.alloc(0),
    () => times(5000, (at) => request(odd(at), [], FLAG.endHeaders)),
    true,
  ],
  ["garbage", Buffer.alloc(0), () => times(1000, () => Buffer.from("GET / HTTP/1.1\r\n\r\n")), true],
];
for (const [what, first, pieces, mustEnd] of FLOODS) {
  test(`HTTP/2 flood of ${what}: ${mustEnd ? "the connection ends" : "nothing piles up"}, others are served`, async () => {
    await using origin = await startOrigin({ handler: (incoming) => void incoming.resume() });
    await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [...routes] });
    const before = process.memoryUsage();
    const slowestMs = await served(gateway, async () => {
      const { isEnded } = await flood(gateway.port(), first, pieces());
      if (mustEnd) assert.equal(isEnded, true);
    });
    const after = process.memoryUsage();
    assert.ok(slowestMs < 1000, `${slowestMs} ms`);
    const grownMb = (after.rss - before.rss) / 1e6;
    assert.ok(grownMb < 150, `${grownMb} MB`);
    // Nothing of it stays: all upstream connections of its requests are let go.
    await waitUntil(async () => (await gateway.send({ path: "/metrics" })).body.includes("active_requests 1\n"));
  });
}

test("HTTP/2: windows of one byte get their answer in small pieces while others are served", async () => {
  await using origin = await startOrigin({ handler: (_incoming, response) => void response.end("x".repeat(2000)) });
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [...routes] });
  const slowestMs = await served(gateway, async () => {
    await using client = await rawClient(gateway.port());
    const reader = new FrameReader();
    await client.write(Buffer.concat([PREFACE, settings([4, 1]), frame(FRAME.settings, FLAG.ack, 0), request(1)]));
    let received = 0;
    while (received < 2000) {
      for (const { type, payload, flags } of reader.read(await client.readSome())) {
        if (type !== FRAME.data) continue;
        received += payload.length;
        assert.ok(payload.length <= 1);
        if ((flags & FLAG.endStream) === 0) await client.write(frame(FRAME.windowUpdate, 0, 1, u32(1)));
      }
    }
  });
  assert.ok(slowestMs < 500, `${slowestMs} ms`);
});

describe("clients that let time pass", { concurrency: 12 }, () => {
  test("HTTP/2: a client that opens no window for its answers loses its streams after the idle time", async () => {
    await using origin = await startOrigin({
      handler: (_incoming, response) => void response.end("x".repeat(200_000)),
    });
    await using gateway = await startGateway({
      listeners: [{ name: "public", address: "127.0.0.1", port: 0, idle_timeout_ms: 500 }],
      ...serving("api", [origin.port]),
      routes: [...routes],
    });
    await using client = await rawClient(gateway.port());
    const streams = Array.from({ length: 50 }, (_, at) => request(odd(at)));
    await client.write(Buffer.concat([PREFACE, settings([4, 0]), ...streams]));
    const reader = new FrameReader();
    const reset = new Set<number>();
    while (reset.size < 50) {
      for (const { type, stream } of reader.read(await client.readSome())) if (type === FRAME.reset) reset.add(stream);
    }
  });

  test("HTTP/2: a connection without requests ends after the idle time, also in the middle of a head", async () => {
    await using gateway = await startGateway({
      listeners: [{ name: "public", address: "127.0.0.1", port: 0, idle_timeout_ms: 400, header_timeout_ms: 400 }],
      routes: [],
    });
    for (const bytes of [
      PREFACE.subarray(0, 10),
      Buffer.concat([PREFACE, settings()]),
      Buffer.concat([PREFACE, settings(), frame(FRAME.headers, 0, 1, section(GET))]),
    ]) {
      await using client = await rawClient(gateway.port());
      await client.write(bytes);
      await client.collect(5000);
    }
  });

  test("HTTP/2: a body that stops arriving is answered 408 after its time", async () => {
    await using origin = await startOrigin({ handler: (incoming) => void incoming.resume() });
    await using gateway = await startGateway(
      { ...serving("api", [origin.port]), routes: [...routes] },
      { environment: { GATEWAY_REQUEST_BODY_TIMEOUT_MS: "300" } },
    );
    await using client = await http2Client(gateway.port());
    const stream = client.session.request({ ":path": "/", ":method": "POST" }, { endStream: false });
    stream.on("error", () => undefined);
    stream.write("half");
    const status = await new Promise((resolve) => stream.once("response", (headers) => resolve(headers[":status"])));
    assert.equal(status, 408);
  });
});

test("HTTP/2: limits come from the environment, and values out of their range are the defaults", () => {
  const defaults = {
    concurrentStreams: 128,
    streamWindowBytes: 1_048_576,
    connectionWindowBytes: 4_194_304,
    sendBufferBytes: 1_048_576,
  };
  assert.deepEqual(http2Limits({}), defaults);
  assert.deepEqual(
    http2Limits({
      GATEWAY_H2_MAX_CONCURRENT_STREAMS: "7",
      GATEWAY_H2_STREAM_WINDOW_KIB: "64",
      GATEWAY_H2_CONNECTION_WINDOW_KIB: "128",
      GATEWAY_H2_MAX_SEND_BUF_KIB: "16",
    }),
    { concurrentStreams: 7, streamWindowBytes: 65_536, connectionWindowBytes: 131_072, sendBufferBytes: 16_384 },
  );
  assert.deepEqual(http2Limits({ GATEWAY_H2_MAX_CONCURRENT_STREAMS: "" }), defaults);
  for (const bad of ["0", "-1", "x", "1e3", "99999999999"]) {
    const message = `GATEWAY_H2_MAX_CONCURRENT_STREAMS must be a whole number from 1 to 1000000; it is "${bad}"`;
    assert.throws(() => http2Limits({ GATEWAY_H2_MAX_CONCURRENT_STREAMS: bad }), { message });
  }
});

test("HTTP/2: the limit of streams is announced to the client", async () => {
  await using gateway = await startGateway({ routes: [] }, { environment: { GATEWAY_H2_MAX_CONCURRENT_STREAMS: "7" } });
  await using client = await http2Client(gateway.port());
  await client.fetch({ ":path": "/healthz" });
  assert.equal(client.session.remoteSettings.maxConcurrentStreams, 7);
});
