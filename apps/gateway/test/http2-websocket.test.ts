import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { ClientHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import { collect, http2Client, type RawServer, startRawServer, waitUntil, websocketFields } from "@headworks/testkit";
import { WebSocketServer, type WebSocket } from "ws";
import { errorCode } from "./error-code.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { proxied } from "./route-documents.ts";

let origin: WebSocketServer;
let gateway: TestGateway;
before(async () => {
  origin = new WebSocketServer({
    port: 0,
    host: "127.0.0.1",
    handleProtocols: (offered) => [...offered][0] ?? false,
    verifyClient: ({ req }: { readonly req: IncomingMessage }) => req.url !== "/refused",
  });
  await once(origin, "listening");
  origin.on("connection", (socket: WebSocket) => {
    socket.on("message", (data: Buffer, isBinary) => {
      if (data.toString() === "bye") socket.close(4001, "as you wish");
      else socket.send(data, { binary: isBinary });
    });
  });
  const { port } = origin.address() as AddressInfo;
  const document: DocumentInput = {
    ...serving("api", [port]),
    consumers: [{ name: "someone", credentials: [{ type: "api_key", key: "key-of-someone" }] }],
    routes: [proxied("api"), { ...proxied("closed"), service: "api", auth_required: true, match: pathOf("/closed") }],
  };
  // Large messages fill this window many times.
  gateway = await startGateway(document, { environment: { GATEWAY_H2_CONNECTION_WINDOW_KIB: "64" } });
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const client of origin.clients) client.terminate();
  await new Promise((closed) => origin.close(closed));
});

function pathOf(value: string) {
  return { path: { type: "exact", value } } as const;
}

const CONNECT = websocketFields("http", "gateway.test", "/chat");

/** A client's frame: whole, masked with zeros (RFC 6455, 5.2). */
function frameOf(opcode: number, payload: Buffer | string): Buffer {
  const bytes = Buffer.from(payload);
  const size =
    bytes.length < 126
      ? Buffer.from([0x80 | bytes.length])
      : Buffer.concat([Buffer.from([0xff, 0, 0, 0, 0]), Buffer.from(new Uint32Array([bytes.length]).buffer).swap32()]);
  return Buffer.concat([Buffer.from([0x80 | opcode]), size, Buffer.alloc(4), bytes]);
}

const TEXT = 1;
const CLOSE = 8;

/** Everything that arrives on a tunnel. */
function arriving(stream: ClientHttp2Stream): () => Buffer {
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => void pieces.push(piece));
  stream.on("error", () => undefined);
  return () => Buffer.concat(pieces);
}

describe("WebSockets over HTTP/2", { concurrency: 12 }, () => {
  test("RFC 8441: the gateway says that it takes WebSockets over HTTP/2", async () => {
    await using client = await http2Client(gateway.port());
    await waitUntil(() => client.session.remoteSettings?.enableConnectProtocol === true);
  });

  test("RFC 8441: a WebSocket over HTTP/2 reaches an upstream of HTTP/1.1, beside requests on the same connection", async () => {
    await using client = await http2Client(gateway.port());
    const stream = client.session.request({ ...CONNECT, "sec-websocket-protocol": "chat.v2, chat.v1" });
    const [head] = (await once(stream, "response")) as [Record<string, string>];
    assert.equal(head[":status"], 200);
    assert.equal(head["sec-websocket-protocol"], "chat.v2");
    for (const name of ["sec-websocket-accept", "upgrade", "connection"]) assert.equal(head[name], undefined);
    const arrived = arriving(stream);
    stream.write(frameOf(TEXT, "hello"));
    await waitUntil(() => arrived().equals(Buffer.from("\x81\x05hello", "latin1")));
    assert.equal((await client.fetch({ ":path": "/healthz" })).status, 200);
    const large = Buffer.alloc(1_048_576, "0123456789abcdef");
    stream.write(frameOf(TEXT, large));
    await waitUntil(() => arrived().length === 7 + 10 + large.length);
    assert.ok(arrived().subarray(17).equals(large));
    stream.end(frameOf(CLOSE, Buffer.from([0x0f, 0xa0])));
    await once(stream, "close");
    assert.equal(stream.rstCode, 0);
    await waitUntil(() => origin.clients.size === 0);
    const active = (await gateway.send({ path: "/metrics" })).body.toString();
    assert.match(active, /^active_requests 1$/m);
  });

  test("RFC 8441: the upstream's close comes with its reason, and the end of the stream behind it", async () => {
    await using client = await http2Client(gateway.port());
    const stream = client.session.request(CONNECT);
    const arrived = arriving(stream);
    stream.write(frameOf(TEXT, "bye"));
    await waitUntil(() => arrived().includes("as you wish"));
    // A client answers a close with its own.
    stream.write(frameOf(CLOSE, Buffer.from([0x0f, 0xa1])));
    await once(stream, "end");
    stream.end();
  });

  test("RFC 8441: a client that resets its stream ends the connection to the upstream", async () => {
    await using client = await http2Client(gateway.port());
    const stream = client.session.request(CONNECT);
    stream.on("error", () => undefined);
    await once(stream, "response");
    await waitUntil(() => origin.clients.size === 1);
    stream.close(8);
    await waitUntil(() => origin.clients.size === 0);
  });

  const REFUSED = [
    { what: "a route that wants a key", fields: { ":path": "/closed" }, status: 401, code: "unauthorized" },
    { what: "another protocol", fields: { ":protocol": "connect-udp" }, status: 501, code: "upgrade_not_supported" },
  ] as const;
  for (const { what, fields, status, code } of REFUSED) {
    test(`RFC 8441: ${what} is answered ${status} and the stream ends`, async () => {
      await using client = await http2Client(gateway.port());
      const response = await collect(client.session.request({ ...CONNECT, ...fields }));
      assert.deepEqual([response.status, errorCode(response)], [status, code]);
      assert.equal((await client.fetch({ ":path": "/healthz" })).status, 200);
    });
  }

  test("RFC 8441: what an upstream refuses, the client hears", async () => {
    await using client = await http2Client(gateway.port());
    const response = await collect(client.session.request({ ...CONNECT, ":path": "/refused" }));
    assert.equal(response.status, 401);
  });

  /** Switches protocols with this proof of having understood. */
  async function switching(proof: (key: string) => string): Promise<RawServer> {
    return await startRawServer(async (connection) => {
      const head = (await connection.readUntil("\r\n\r\n")).toString("latin1");
      const key = /^sec-websocket-key: (.*)\r$/im.exec(head)?.[1] ?? "";
      const fields = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${proof(key)}\r\n\r\n`;
      await connection.write(`HTTP/1.1 101 Switching Protocols\r\n${fields}`);
      await connection.collect(20_000);
    });
  }

  test("RFC 8441: an upstream that does not prove that it understood is a broken one", async () => {
    await using right = await switching((key) =>
      createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64"),
    );
    await using wrong = await switching(() => "bm8gcHJvb2Y=");
    for (const [port, status] of [
      [right.port, 200],
      [wrong.port, 502],
    ] as const) {
      await using behind = await startGateway({ ...serving("api", [port]), routes: [proxied("api")] });
      await using client = await http2Client(behind.port());
      // A key of the client's own does not count.
      const stream = client.session.request({ ...CONNECT, "sec-websocket-key": "bm9ib2R5J3Mga2V5IGlzIGhlcmU=" });
      stream.on("error", () => undefined);
      const [head] = (await once(stream, "response")) as [Record<string, number>];
      assert.equal(head[":status"], status);
      stream.close(8);
    }
  });

  test("RFC 8441: a stop lets a WebSocket over HTTP/2 go on for the time of grace", async () => {
    const { port } = origin.address() as AddressInfo;
    const document = { gateway: { shutdown_timeout_ms: 300 }, ...serving("api", [port]), routes: [proxied("api")] };
    const stopping = await startGateway(document);
    await using client = await http2Client(stopping.port());
    const stream = client.session.request(CONNECT);
    await once(stream, "response");
    const arrived = arriving(stream);
    const stopped = stopping[Symbol.asyncDispose]();
    await once(client.session, "goaway");
    stream.write(frameOf(TEXT, "still here"));
    await waitUntil(() => arrived().includes("still here"));
    await Promise.all([stopped, once(stream, "close")]);
  });
});
