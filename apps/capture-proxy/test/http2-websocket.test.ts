import assert from "node:assert/strict";
import { once } from "node:events";
import { createSecureServer } from "node:http2";
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";
import { createServer } from "node:https";
import type { Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { test } from "node:test";
import { waitUntil, websocketFields } from "@headworks/testkit";
import { WebSocketServer } from "ws";
import type { WebSocket } from "ws";
import { clientOf, http2Engine, originCa, secureTunnelTo } from "./http2-rig.ts";

const leaf = originCa.issueLeaf({ dns: ["localhost"], ip: ["127.0.0.1"] });
const tls = { key: leaf.keyPem, cert: leaf.chainPem };

interface WebSocketOrigin extends AsyncDisposable {
  readonly port: number;
  /** Heads of WebSockets that began on streams. */
  readonly streams: IncomingHttpHeaders[];
}

/** Echoes messages over HTTP/1.1; streams over HTTP/2 echo bytes, where the origin says that it takes them. */
async function startOrigin(protocol: "1.1" | "2 without WebSockets" | "2"): Promise<WebSocketOrigin> {
  const streams: IncomingHttpHeaders[] = [];
  const sockets = new Set<Socket>();
  const server =
    protocol === "1.1"
      ? createServer(tls, (_request, response) => response.end("an answer"))
      : createSecureServer({ ...tls, allowHTTP1: true, settings: { enableConnectProtocol: protocol === "2" } });
  const webSockets = new WebSocketServer({
    server: server as Server,
    handleProtocols: (offered) => [...offered][0] ?? false,
  });
  webSockets.on("connection", (socket: WebSocket) => {
    socket.on("message", (data: Buffer, isBinary) => {
      if (data.toString() === "bye") socket.close(4001, "as you wish");
      else socket.send(data, { binary: isBinary });
    });
  });
  server.on("connection", (socket: Socket) => void sockets.add(socket.on("error", () => undefined)));
  server.on("stream", (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on("error", () => undefined);
    if (headers[":method"] !== "CONNECT") {
      stream.respond({ ":status": 200 });
      return void stream.end("an answer");
    }
    streams.push(headers);
    stream.respond({ ":status": headers[":path"] === "/refused" ? 403 : 200, "sec-websocket-protocol": "chat" });
    if (headers[":path"] === "/refused") stream.end("no");
    else stream.pipe(stream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    streams,
    [Symbol.asyncDispose]: async () => {
      webSockets.close();
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** A client's frame: whole, masked with zeros (RFC 6455, 5.2). */
function frameOf(opcode: number, text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  assert.ok(bytes.length < 126);
  return Buffer.concat([Buffer.from([0x80 | opcode, 0x80 | bytes.length]), Buffer.alloc(4), bytes]);
}

const TEXT = 1;

/** Begins a WebSocket on a stream. */
function begin(session: ClientHttp2Session | undefined, port: number, path = "/chat"): ClientHttp2Stream {
  assert.ok(session);
  const stream = session.request(
    { ...websocketFields("https", `localhost:${port}`, path), "sec-websocket-protocol": "chat" },
    { endStream: false },
  );
  return stream.on("error", () => undefined);
}

function arriving(stream: ClientHttp2Stream): () => string {
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => void pieces.push(piece));
  return () => Buffer.concat(pieces).toString("latin1");
}

for (const protocol of ["1.1", "2 without WebSockets"] as const) {
  test(`a WebSocket on a stream becomes an upgrade towards an origin over HTTP/${protocol}`, async () => {
    await using origin = await startOrigin(protocol);
    await using proxy = await http2Engine();
    await using client = await clientOf("2", proxy, origin.port);
    await client.fetch();
    assert.equal(client.session?.remoteSettings.enableConnectProtocol, true);
    const stream = begin(client.session, origin.port);
    const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders];
    assert.equal(headers[":status"], 200);
    assert.equal(headers["sec-websocket-protocol"], "chat");
    assert.equal(headers["sec-websocket-accept"], undefined);
    assert.equal(headers["upgrade"], undefined);
    const text = arriving(stream);
    stream.write(frameOf(TEXT, "over here"));
    await waitUntil(() => text().endsWith("over here"));
    stream.write(frameOf(TEXT, "bye"));
    await waitUntil(() => text().includes("as you wish"));
    stream.end(frameOf(8, "\x0f\xa1"));
    await once(stream, "close");
    const [, exchange] = await proxy.waitFor(2);
    assert.equal(exchange?.state.step, "completed");
    assert.deepEqual([exchange.request.scheme, exchange.response?.status], ["wss", 101]);
    assert.ok(exchange.requestBody.sizeBytes > 0);
  });
}

test("a WebSocket on a stream stays one towards an origin that takes them so, the first request of all or a later one", async () => {
  await using origin = await startOrigin("2");
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, origin.port);
  for (const round of [1, 2]) {
    if (round === 2) await client.fetch();
    const stream = begin(client.session, origin.port);
    const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders];
    assert.equal(headers[":status"], 200);
    const text = arriving(stream);
    stream.write("any bytes");
    await waitUntil(() => text() === "any bytes");
    stream.end(" at all");
    await once(stream, "close");
    assert.equal(text(), "any bytes at all");
    assert.equal(stream.rstCode, 0);
  }
  assert.equal(origin.streams.length, 2);
  for (const headers of origin.streams) {
    assert.equal(headers[":protocol"], "websocket");
    assert.equal(headers["sec-websocket-version"], "13");
    assert.equal(headers["sec-websocket-key"], undefined);
    assert.equal(headers["connection"], undefined);
  }
});

test("a WebSocket that the origin refuses is an answer like any other", async () => {
  await using origin = await startOrigin("2");
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, origin.port);
  const stream = begin(client.session, origin.port, "/refused");
  const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders];
  const text = arriving(stream);
  await once(stream, "end");
  assert.deepEqual([headers[":status"], text()], [403, "no"]);
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.response?.status, 403);
});

test("a reset of a WebSocket's stream ends it at its other end, either way", async () => {
  await using origin = await startOrigin("1.1");
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, origin.port);
  const stream = begin(client.session, origin.port);
  await once(stream, "response");
  stream.close(8);
  const [exchange] = await proxy.waitFor(1);
  assert.ok(exchange);
  await waitUntil(() => proxy.services.gauges.activeTunnels === 0 && proxy.services.gauges.upstreamConnections === 0);
});

test("an upgrade over HTTP/1.1 reaches an origin that prefers HTTP/2 over HTTP/1.1", async () => {
  await using origin = await startOrigin("2");
  await using proxy = await http2Engine();
  const secure = await secureTunnelTo(proxy, origin.port, ["http/1.1"]);
  secure.write(
    `GET /chat HTTP/1.1\r\nHost: localhost:${origin.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  let text = "";
  secure.on("data", (piece: Buffer) => (text += piece.toString("latin1")));
  await waitUntil(() => text.includes("\r\n\r\n"));
  assert.match(text, /^HTTP\/1\.1 101 /);
  assert.match(text, /s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/);
  secure.write(frameOf(TEXT, "hello"));
  await waitUntil(() => text.endsWith("hello"));
  secure.destroy();
  await proxy.waitFor(1);
});

test("CONNECT inside a tunnel leads nowhere", async () => {
  await using origin = await startOrigin("2");
  await using proxy = await http2Engine();
  await using client = await clientOf("2", proxy, origin.port);
  const { session } = client;
  assert.ok(session);
  const stream = session.request({ ":method": "CONNECT", ":authority": "elsewhere.test:443" }, { endStream: false });
  stream.on("error", () => undefined);
  const [headers] = (await once(stream, "response")) as [IncomingHttpHeaders];
  assert.equal(headers[":status"], 501);
  stream.close();
  assert.equal((await client.fetch()).body, "an answer");
});
