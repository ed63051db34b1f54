import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { waitUntil } from "@headworks/testkit";
import { WebSocket, WebSocketServer, type ClientOptions } from "ws";
import { certificates, Cleanups, servingAll, startSluice, type Certificates, type Sluice } from "./sluice-rig.ts";

const cleanups = new Cleanups();
let sluice: Sluice;
let files: Certificates;
let origin: WebSocketServer;

/** Echoes messages; `bye` closes with a reason. */
function echoing(socket: WebSocket): void {
  socket.on("message", (data: Buffer, isBinary) => {
    if (!isBinary && data.toString() === "bye") socket.close(4001, "as you wish");
    else socket.send(data, { binary: isBinary });
  });
}

before(async () => {
  files = cleanups.use(await certificates());
  origin = new WebSocketServer({ port: 0, host: "127.0.0.1", handleProtocols: (offered) => [...offered][0] ?? false });
  await once(origin, "listening");
  cleanups.use({
    [Symbol.asyncDispose]: async () => {
      for (const client of origin.clients) client.terminate();
      await new Promise((closed) => origin.close(closed));
    },
  });
  origin.on("connection", echoing);
  sluice = cleanups.use(await startSluice(await documentOf("origin")));
});
after(() => cleanups.run());

async function documentOf(name: string) {
  const tls = await files.issue("server", ["localhost"]);
  return servingAll((origin.address() as AddressInfo).port, {
    listeners: [
      { name: "plain", address: "127.0.0.1", port: 0 },
      { name: "secure", address: "127.0.0.1", port: 0, protocol: "https", tls },
    ],
    services: [{ name, upstream: "origin" }],
    routes: [{ name, service: name, match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } }],
  });
}

async function open(listener: "plain" | "secure", options: ClientOptions = {}, protocols: string[] = []) {
  const scheme = listener === "secure" ? "wss" : "ws";
  const socket = new WebSocket(`${scheme}://localhost:${sluice.port(listener)}/socket`, protocols, {
    ca: readFileSync(files.caFile),
    ...options,
  });
  await once(socket, "open");
  return socket;
}

async function response(socket: WebSocket, message: string | Buffer): Promise<string | Buffer> {
  const got = once(socket, "message") as Promise<[Buffer, boolean]>;
  socket.send(message);
  const [data, isBinary] = await got;
  return isBinary ? data : data.toString();
}

for (const listener of ["plain", "secure"] as const) {
  test(`WebSocket over ${listener} TCP: text, bytes, compressed messages and a megabyte are echoed`, async () => {
    const socket = await open(listener, { perMessageDeflate: true }, ["chat.v2", "chat.v1"]);
    assert.equal(socket.protocol, "chat.v2");
    assert.equal(await response(socket, "grüße"), "grüße");
    const bytes = Buffer.from([0, 255, 13, 10, 128]);
    assert.deepEqual(await response(socket, bytes), bytes);
    const large = Buffer.alloc(1_048_576, "0123456789abcdef");
    assert.deepEqual(await response(socket, large), large);
    socket.terminate();
  });

  test(`WebSocket over ${listener} TCP: pings get pongs, and the reason of a close is forwarded`, async () => {
    const socket = await open(listener);
    const pong = once(socket, "pong") as Promise<[Buffer]>;
    socket.ping("are you there");
    assert.equal((await pong)[0].toString(), "are you there");
    const closed = once(socket, "close") as Promise<[number, Buffer]>;
    socket.send("bye");
    const [code, reason] = await closed;
    assert.deepEqual([code, reason.toString()], [4001, "as you wish"]);
    await waitUntil(() => origin.clients.size === 0, { what: "the end at the origin" });
  });
}

test("a client that disconnects without a close frame ends its connection at the origin", async () => {
  const socket = await open("plain");
  await waitUntil(() => origin.clients.size === 1);
  socket.terminate();
  await waitUntil(() => origin.clients.size === 0, { what: "the end at the origin" });
});

test("200 concurrent WebSockets each get their own messages back", async () => {
  const sockets = await Promise.all(Array.from({ length: 200 }, async () => await open("plain")));
  const responses = await Promise.all(sockets.map(async (socket, at) => await response(socket, `message ${at}`)));
  assert.deepEqual(
    responses,
    sockets.map((_socket, at) => `message ${at}`),
  );
  for (const socket of sockets) socket.terminate();
  await waitUntil(() => origin.clients.size === 0, { what: "the end of all at the origin" });
});

test("a reload keeps an open WebSocket, and SIGTERM lets it send its last messages", async () => {
  const before = sluice.countOf("config_published");
  const socket = await open("secure");
  assert.equal(await response(socket, "before"), "before");
  await sluice.write(await documentOf("renamed"));
  process.kill(sluice.pid, "SIGHUP");
  await waitUntil(
    async () => {
      const text = await (await fetch(`${sluice.adminUrl}/routes`)).text();
      return text.includes("renamed");
    },
    { what: `another generation than the first ${before}` },
  );
  assert.equal(await response(socket, "after"), "after");
  process.kill(sluice.pid, "SIGTERM");
  await waitUntil(
    async () => {
      const late = new WebSocket(`ws://localhost:${sluice.port("plain")}/socket`);
      // A connection that arrives before the signal is accepted, and its errors are ignored.
      const opened = once(late, "open").then(() => undefined);
      const error = await opened.catch((reason: NodeJS.ErrnoException) => reason);
      late.on("error", () => undefined).terminate();
      return error?.code === "ECONNREFUSED";
    },
    { what: "the end of the listener" },
  );
  assert.equal(await response(socket, "still"), "still");
  const closed = once(socket, "close") as Promise<[number, Buffer]>;
  socket.send("bye");
  assert.equal((await closed)[0], 4001);
  assert.equal((await sluice.process.exited).code, 0);
});
