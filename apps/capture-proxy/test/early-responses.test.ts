import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { Readable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import {
  collect,
  FLAG,
  FRAME,
  frame,
  rawClient,
  RawConnection,
  readResponse,
  section,
  startRawHttp2Origin,
  u32,
  waitUntil,
} from "@headworks/testkit";
import { CONTINUE } from "#exchange/phases.ts";
import type { Engine } from "./engine-harness.ts";
import { clientOf, http2Engine, originTls, secureTunnelTo, tunnelTo } from "./http2-rig.ts";

const HEAD = "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\n";
const TEXTS = {
  "a length": `${HEAD}Content-Length: 7\r\n\r\ntoo big`,
  chunks: `${HEAD}Transfer-Encoding: chunked\r\n\r\n7\r\ntoo big\r\n0\r\n\r\n`,
  "its end as the end": `${HEAD}\r\ntoo big`,
};

/** Answers without reading more than the first bytes of the request, and closes, which resets the connection. */
async function startClosing(bytes: string, isSecure: boolean): Promise<Server> {
  const serve = (socket: Socket): void => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.pause();
      socket.write(bytes, () => socket.destroy());
    });
  };
  const server = isSecure ? createTlsServer(originTls, serve) : createServer(serve);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

/** The response came whole; the connection ends behind it, or takes another request. */
async function assertRefused(client: RawConnection, method: string, next: string): Promise<void> {
  const response = await readResponse(client, method);
  assert.deepEqual([response.status, response.body.toString()], [413, "too big"]);
  if (response.header("connection") !== "close") {
    await client.write(`GET ${next} HTTP/1.1\r\nHost: a\r\n\r\n`);
    assert.equal((await readResponse(client)).status, 413);
  }
}

const piecesOf = (body: Buffer): Buffer[] =>
  Array.from({ length: body.length / 65_536 }, (_, at) => body.subarray(at * 65_536, (at + 1) * 65_536));

describe("a response that comes before its request was read", { concurrency: 4 }, () => {
  let proxy: Engine & AsyncDisposable;
  const servers: Server[] = [];

  before(async () => {
    proxy = await http2Engine();
  });

  after(async () => {
    await proxy[Symbol.asyncDispose]();
    for (const server of servers) server.close();
  });

  /** Its entry has the response, and says nothing of a failure. */
  async function assertRecorded(path: string, count: number): Promise<void> {
    const found = () => proxy.finished.filter(({ request }) => request.path === path);
    await waitUntil(() => found().length >= count, { what: "the entry" });
    for (const { state, response, responseBody } of found()) {
      assert.deepEqual(state, { step: "completed" });
      assert.deepEqual([response?.status, responseBody.sizeBytes], [413, 7]);
    }
  }

  for (const [framing, text] of Object.entries(TEXTS)) {
    for (const isSecure of [false, true]) {
      for (const sizeBytes of [262_144, 8_388_608]) {
        const body = Buffer.alloc(sizeBytes, "x");
        const where = isSecure ? "intercepted" : "plain";
        const path = `/${framing.replaceAll(" ", "-")}-${where}-${sizeBytes}`;

        test(`with ${framing}, ${where}, to ${sizeBytes} bytes: it reaches clients and the entry`, async () => {
          const server = await startClosing(text, isSecure);
          servers.push(server);
          const { port } = server.address() as AddressInfo;
          const target = isSecure ? path : `http://127.0.0.1:${port}${path}`;
          const open = async (): Promise<RawConnection> =>
            isSecure ? new RawConnection(await secureTunnelTo(proxy, port, ["http/1.1"])) : await rawClient(proxy.port);
          {
            await using client = await open();
            const head = `POST ${target} HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Length: ${sizeBytes}\r\n\r\n`;
            void client.write(head).catch(() => undefined);
            void client.write(body).catch(() => undefined);
            await assertRefused(client, "POST", `${target}/next`);
          }
          {
            await using client = await open();
            const head = `PUT ${target} HTTP/1.1\r\nHost: localhost:${port}\r\nTransfer-Encoding: chunked\r\n\r\n`;
            void client.write(head).catch(() => undefined);
            for (const piece of piecesOf(body)) {
              void client.write(`10000\r\n${piece.toString("latin1")}\r\n`).catch(() => undefined);
            }
            void client.write("0\r\n\r\n").catch(() => undefined);
            await assertRefused(client, "PUT", `${target}/next`);
          }
          let count = 2;
          if (isSecure) {
            await using client = await clientOf("2", proxy, port);
            for (; count < 4; count++) {
              const stream = client.session?.request({ ":path": path, ":method": "POST" });
              assert.ok(stream);
              const collected = collect(stream);
              // In pieces, as node's client counts what waits of all streams and refuses more.
              Readable.from(piecesOf(body)).pipe(stream);
              const response = await collected;
              assert.deepEqual([response.status, response.body.toString(), response.code], [413, "too big", 0]);
            }
          }
          await assertRecorded(path, count);
        });
      }
    }
  }

  for (const sizeBytes of [262_144, 8_388_608]) {
    test(`over HTTP/2, to ${sizeBytes} bytes, with a reset without an error behind it: it reaches clients`, async () => {
      const origin = await startRawHttp2Origin((stream, write) =>
        write(
          frame(FRAME.headers, FLAG.endHeaders, stream, section([[":status", "413"]])),
          frame(FRAME.data, FLAG.endStream, stream, "too big"),
          frame(FRAME.reset, 0, stream, u32(0)),
        ),
      );
      const path = `/h2-${sizeBytes}`;
      await using client = await clientOf("2", proxy, origin.port, { isPlain: true });
      for (let count = 0; count < 2; count++) {
        const stream = client.session?.request({ ":path": path, ":method": "PUT" });
        assert.ok(stream);
        const collected = collect(stream);
        Readable.from(piecesOf(Buffer.alloc(sizeBytes))).pipe(stream);
        const response = await collected;
        assert.deepEqual([response.status, response.body.toString(), response.code], [413, "too big", 0]);
      }
      await assertRecorded(path, 2);
      // Of a connection on which nothing came, which Weir opens ahead, the origin complains.
      await origin.close().catch(() => undefined);
    });
  }
});

test("a response whose origin resets the connection while rules hold it reaches client and entry whole", async () => {
  const decided = Promise.withResolvers<void>();
  const isHeld = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.write(`${HEAD}Content-Length: 14\r\n\r\ntoo big`);
      void isHeld.promise.then(() => socket.write("too big", () => socket.resetAndDestroy()));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  await using proxy = await http2Engine({
    rules: {
      onResponseHead: async () => {
        isHeld.resolve();
        await decided.promise;
        return CONTINUE;
      },
    },
  });
  await using client = await rawClient(proxy.port);
  const { port } = server.address() as AddressInfo;
  await client.write(`POST http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok`);
  await isHeld.promise;
  await waitUntil(async () => (await connectionsOf(server)) === 0, { what: "the reset" });
  decided.resolve();
  const response = await readResponse(client, "POST");
  assert.deepEqual([response.status, response.body.toString()], [413, "too bigtoo big"]);
  const [exchange] = await proxy.waitFor(1);
  assert.deepEqual([exchange?.state, exchange?.responseBody.sizeBytes], [{ step: "completed" }, 14]);
  server.close();
});

const connectionsOf = async (server: Server): Promise<number> =>
  await new Promise((resolve, reject) =>
    server.getConnections((error, count) => (error === null ? resolve(count) : reject(error))),
  );

test("what an origin said through a tunnel before it closed unread arrives", async () => {
  const server = await startClosing(TEXTS["a length"], false);
  await using proxy = await http2Engine({ policy: { interceptsTls: false } });
  const socket = await tunnelTo(proxy, `127.0.0.1:${(server.address() as AddressInfo).port}`);
  await using client = new RawConnection(socket);
  // Nothing that begins like HTTP, which would be read.
  void client.write(Buffer.alloc(8_388_608, 0x16)).catch(() => undefined);
  assert.equal((await client.readUntil("too big")).toString(), TEXTS["a length"]);
  server.close();
});
