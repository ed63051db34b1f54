import assert from "node:assert/strict";
import { once } from "node:events";
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
  request,
  section,
  settings,
  startRawServer,
  u32,
  waitUntil,
  type RawConnection,
} from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

const LONG_MS = 600_000;
const SHORT_MS = 500;

/** An upstream whose answers never end, or for `/silent` never begin, and a gateway that gives a client this long to take something. */
async function endless(idleMs: number) {
  const server = await startRawServer(async (connection) => {
    const head = await connection.readUntil("\r\n\r\n");
    if (head.includes("/silent")) return void (await connection.closed);
    const { socket } = connection;
    socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    const chunk = Buffer.concat([Buffer.from("10000\r\n"), Buffer.alloc(65_536), Buffer.from("\r\n")]);
    while (!isFinished(connection)) {
      if (!socket.write(chunk)) await Promise.race([once(socket, "drain"), connection.closed]).catch(() => undefined);
    }
  });
  const gateway = await startGateway({
    listeners: [{ name: "public", address: "127.0.0.1", port: 0, metrics: true, idle_timeout_ms: idleMs }],
    ...serving("api", [server.port]),
    routes: [
      { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
    ],
  });
  return {
    server,
    gateway,
    [Symbol.asyncDispose]: async () => {
      await gateway[Symbol.asyncDispose]();
      await server.close().catch(() => undefined);
    },
  };
}

const isFinished = (connection: RawConnection | undefined): boolean =>
  connection !== undefined && (connection.socket.destroyed || connection.socket.readableEnded);

async function gauge(gateway: TestGateway, name: string): Promise<number> {
  const { body } = await gateway.send({ path: "/metrics" });
  return Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)$`, "m").exec(body.toString())?.[1]);
}

/** Nothing of the client's is left but the scrape itself. */
async function isForgotten(gateway: TestGateway): Promise<void> {
  await waitUntil(async () => (await gauge(gateway, "active_requests")) === 1, { what: "the end of its requests" });
  await waitUntil(async () => (await gauge(gateway, "gateway_open_connections")) === 1, {
    what: "the end of its connection",
  });
}

describe("clients that are gone", { concurrency: 12 }, () => {
  for (const [how, leave] of [
    ["ends its connection", (client) => client.destroy()],
    ["resets its connection", (client) => client.reset()],
  ] as const satisfies readonly (readonly [string, (client: RawConnection) => void])[]) {
    test(`HTTP/2: a client that ${how} behind full windows ends its requests and their upstream connections soon`, async () => {
      await using rig = await endless(LONG_MS);
      const { gateway, server } = rig;
      await using client = await rawClient(gateway.port());
      await client.write(Buffer.concat([PREFACE, settings(), request(1), request(3)]));
      const reader = new FrameReader();
      let received = 0;
      while (received < 65_535) {
        for (const { type, payload } of reader.read(await client.readSome())) {
          if (type === FRAME.data) received += payload.length;
        }
      }
      assert.deepEqual([server.connections.length, server.connections.some(isFinished)], [2, false]);
      leave(client);
      await waitUntil(() => server.connections.every(isFinished), {
        what: "the end of the upstream connections",
        timeoutMs: 30_000,
      });
      await isForgotten(gateway);
    });
  }

  for (const [how, leave] of [
    ["resets its connection", (client) => client.reset()],
    ["resets its request without an error", (client) => void client.write(frame(FRAME.reset, 0, 1, u32(0)))],
  ] as const satisfies readonly (readonly [string, (client: RawConnection) => void])[]) {
    test(`HTTP/2: a client that ${how} after a body that is still unread is not waited for`, async () => {
      await using origin = await startRawServer(async (connection) => {
        await connection.collect(60_000).catch(() => undefined);
      });
      await using gateway = await startGateway({
        ...serving("api", [origin.port], { connection_cap: 1 }),
        routes: [
          { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
        ],
      });
      await using first = await rawClient(gateway.port());
      await first.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await waitUntil(() => origin.connections.length === 1);
      await using client = await rawClient(gateway.port());
      const post = section([[":method", "POST"], ...GET.slice(1)]);
      const body = [frame(FRAME.headers, FLAG.endHeaders, 1, post), frame(FRAME.data, FLAG.endStream, 1, "whole")];
      await client.write(Buffer.concat([PREFACE, settings(), ...body]));
      await waitUntil(async () => (await gauge(gateway, "active_requests")) === 3, { what: "the request" });
      leave(client);
      await waitUntil(async () => (await gauge(gateway, "active_requests")) === 2, { what: "the end of the request" });
    });
  }

  test("HTTP/2: a client that opens no window any more loses its request after the idle time, and keeps its connection", async () => {
    await using rig = await endless(SHORT_MS);
    const { gateway, server } = rig;
    await using client = await http2Client(gateway.port());
    const stream = client.session.request({ ":path": "/" });
    stream.on("error", () => undefined);
    stream.pause();
    const closed = once(stream, "close");
    await waitUntil(() => isFinished(server.connections[0]), { what: "the end of the upstream connection" });
    stream.resume();
    await closed;
    assert.equal(stream.rstCode, 8);
    assert.equal((await client.fetch({ ":path": "/healthz" })).status, 200);
  });

  test("HTTP/2: a client that reads nothing of its connection any more loses its request after the idle time, and its connection after as long again", async () => {
    await using rig = await endless(SHORT_MS);
    const { gateway, server } = rig;
    await using client = await rawClient(gateway.port());
    const max = 2 ** 31 - 1;
    const widest = frame(FRAME.windowUpdate, 0, 0, u32(max - 65_535));
    const silent = section(GET.map(([name, value]) => [name, value === "/" ? "/silent" : value]));
    const requests = [frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, 1, silent), request(3), request(5)];
    await client.write(Buffer.concat([PREFACE, settings([4, max]), widest, ...requests]));
    await client.readSome();
    client.socket.pause();
    await waitUntil(() => server.connections.length === 3 && server.connections.every(isFinished), {
      what: "the end of the upstream connections",
    });
    await isForgotten(gateway);
  });
});
