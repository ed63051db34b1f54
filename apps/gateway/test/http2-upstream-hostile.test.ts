import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as later } from "node:timers";
import {
  FLAG,
  FRAME,
  frame,
  http2Client,
  rawClient,
  section,
  settings,
  startHttp2Origin,
  startRawHttp2Origin,
  startResettingHttp2Origin,
  startRawServer,
  u32,
  waitUntil,
} from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { errorCode } from "./error-code.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

type UpstreamInput = NonNullable<DocumentInput["upstreams"]>[number];

const routes = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
] as const;

const gatewayFor = async (port: number, more: Partial<UpstreamInput> = {}): Promise<TestGateway> =>
  await startGateway({ ...serving("api", [port], { protocol: "h2c", ...more }), routes: [...routes] });

const ok = (stream: number): Buffer =>
  frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, section([[":status", "204"]]));

const HOSTILE: readonly (readonly [string, readonly Buffer[], number])[] = [
  ["an answer without a status", [frame(FRAME.headers, 5, 1, section([["x", "1"]]))], 502],
  ["a status that is no number", [frame(FRAME.headers, 5, 1, section([[":status", "abc"]]))], 502],
  [
    "a line end in a value",
    [
      frame(
        FRAME.headers,
        5,
        1,
        section([
          [":status", "200"],
          ["x-a", "1\r\nx-b: 2"],
        ]),
      ),
    ],
    502,
  ],
  [
    "fields of connections",
    [
      frame(
        FRAME.headers,
        5,
        1,
        section([
          [":status", "200"],
          ["transfer-encoding", "chunked"],
        ]),
      ),
    ],
    502,
  ],
  [
    "a body shorter than its length",
    [
      frame(
        FRAME.headers,
        4,
        1,
        section([
          [":status", "200"],
          ["content-length", "9"],
        ]),
      ),
      frame(FRAME.data, 1, 1, "short"),
    ],
    0,
  ],
  [
    "a head that ends in place of the body it announces",
    [
      frame(
        FRAME.headers,
        5,
        1,
        section([
          [":status", "200"],
          ["content-length", "9"],
        ]),
      ),
    ],
    502,
  ],
  [
    "two lengths",
    [
      frame(
        FRAME.headers,
        4,
        1,
        section([
          [":status", "200"],
          ["content-length", "4"],
          ["content-length", "5"],
        ]),
      ),
      frame(FRAME.data, 1, 1, "four"),
    ],
    502,
  ],
  ["a push", [frame(FRAME.pushPromise, 4, 1, Buffer.concat([u32(2), section([[":method", "GET"]])]))], 502],
  [
    "an endless row of informational answers",
    Array.from({ length: 500 }, () => frame(FRAME.headers, 4, 1, section([[":status", "103"]]))),
    502,
  ],
  ["a frame that is too large", [frame(FRAME.data, 0, 1, Buffer.alloc(20_000))], 502],
  ["a window of nothing", [frame(FRAME.windowUpdate, 0, 0, u32(0))], 502],
  ["HTTP/1.1", [Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")], 502],
];
for (const [what, frames, status] of HOSTILE) {
  test(`HTTP/2 upstream: ${what} is a broken answer, and the next request is served`, async () => {
    let isHostile = true;
    await using origin = await startRawHttp2Origin((stream, write) => {
      if (isHostile) write(...frames);
      else write(ok(stream));
      isHostile = false;
    });
    await using gateway = await gatewayFor(origin.port);
    const response = await gateway.send({ path: "/" }).catch(() => undefined);
    if (status === 0) assert.equal(response, undefined, "the client sees that its answer is not whole");
    else assert.equal(response?.status, status);
    assert.equal(response?.header("x-b"), undefined);
    assert.equal((await gateway.send({ path: "/" })).status, 204);
  });
}

for (const [body, code, isWhole] of [
  ["all of it", 0, true],
  ["a part", 0, false],
  ["all of it", 11, false],
] as const) {
  test(`HTTP/2 upstream: a reset with ${code} behind "${body}" of nine announced bytes is ${isWhole ? "the end" : "a cut"}`, async () => {
    await using origin = await startResettingHttp2Origin({ body, lengthBytes: 9, code });
    await using gateway = await gatewayFor(origin.port);
    await using client = await http2Client(gateway.port());
    const response = await client.fetch({ ":path": "/" });
    assert.deepEqual([response.status, response.code === 0], [200, isWhole]);
    if (isWhole) assert.equal(response.body.toString(), body);
  });
}

describe("an upstream that stops, or whose client does", { concurrency: 12 }, () => {
  test(
    "HTTP/2 upstream: an endpoint that never answers times out, and a connection that is dead is replaced",
    { timeout: 30_000 },
    async () => {
      let sessions = 0;
      await using origin = await startRawServer(async (connection) => {
        sessions += 1;
        connection.socket.write(settings());
        // Takes everything, says nothing, not even to pings.
        while (!connection.ended) await connection.readSome(60_000).catch(() => undefined);
      });
      await using gateway = await gatewayFor(origin.port, { timeouts: { read_ms: 200 } });
      const response = await gateway.send({ path: "/" });
      assert.deepEqual([response.status, errorCode(response)], [504, "upstream_response_timeout"]);
      await waitUntil(() => origin.connections[0]?.ended === true, { timeoutMs: 10_000 });
      await gateway.send({ path: "/" });
      assert.equal(sessions, 2);
    },
  );

  test("HTTP/2 upstream: a client that goes away in its upload never makes it look whole", async () => {
    for (const framing of ["Content-Length: 10", "Transfer-Encoding: chunked"]) {
      let sawEnd = false;
      const closed = Promise.withResolvers<number>();
      await using origin = await startHttp2Origin((stream) => {
        stream.resume();
        stream.on("end", () => (sawEnd ||= !stream.aborted));
        stream.on("close", () => closed.resolve(stream.rstCode ?? 0));
      });
      await using gateway = await gatewayFor(origin.port, { request_buffer_bytes: 0 });
      const client = await rawClient(gateway.port());
      await client.write(
        `POST / HTTP/1.1\r\nHost: a\r\n${framing}\r\n\r\n${framing.startsWith("C") ? "half" : "4\r\nhalf\r\n"}`,
      );
      await waitUntil(() => origin.requests.length === 1);
      client.destroy();
      assert.equal(await closed.promise, 8);
      assert.equal(sawEnd, false, framing);
    }
  });

  test("HTTP/2 upstream: an endpoint that reads nothing holds the client back", async () => {
    await using origin = await startHttp2Origin((stream) => void stream.pause());
    await using gateway = await gatewayFor(origin.port);
    await using client = await rawClient(gateway.port());
    await client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900000000\r\n\r\n");
    const piece = Buffer.alloc(65_536);
    let written = 0;
    let isStuck = false;
    while (!isStuck && written < 100_000_000) {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const timer = later(() => resolve(true), 1000);
      client.socket.write(piece, () => resolve(false));
      isStuck = await promise;
      clearTimeout(timer);
      written += piece.length;
    }
    assert.equal(isStuck, true);
    assert.ok(written < 30_000_000, String(written));
  });
});
