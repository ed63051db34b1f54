import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { StreamFrame, StreamSummary, WsConnection, WsMessage } from "@headworks/capture-contract";
import { peer, proxyClient, runProcess, waitUntil } from "@headworks/testkit";
import type { RawConnection } from "@headworks/testkit";
import { WebSocketServer } from "ws";
import { Cleanups, LOCAL_NAMES, originAuthority, startWeir, workDirectory } from "./rig.ts";
import type { Weir } from "./rig.ts";

// Data that was acknowledged or shown before kill -9; all tests share one killed Weir.

const curl = peer("curl");
const cleanups = new Cleanups();
const events = Promise.withResolvers<ServerResponse>();
/** Weir, restarted with the data of the killed one. */
let again: Weir;
let streamId = "";

before(async () => {
  const port = await startSite();
  const directory = await workDirectory(cleanups);
  const dataDir = directory.file("data");
  const first = await startWeir({ dataDir });
  const client = proxyClient(first.proxyPort, { ca: first.caPem });
  const reader = await client.secureTunnel("localhost", port);
  await reader.write("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const talker = await client.secureTunnel("localhost", port);
  await talker.write(
    "GET /echo HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  assert.match((await talker.readUntil("\r\n\r\n")).toString(), /^HTTP\/1.1 101 /);
  await waitUntil(async () => (await first.entries("/echo")).length === 1, { what: "the entry of the WebSocket" });
  await Promise.all([showEvent(first), echo(first, talker), postRule(first)]);
  await first.process.stop("SIGKILL");
  for (const connection of [reader, talker]) connection.destroy();
  again = cleanups.use(await startWeir({ dataDir }));
  await first[Symbol.asyncDispose]();
});
after(() => cleanups.run());

/** Keeps the response to `/events` open, and echoes WebSocket messages. */
async function startSite(): Promise<number> {
  const leaf = originAuthority.issueLeaf(LOCAL_NAMES);
  const site = createServer({ cert: leaf.chainPem, key: leaf.keyPem }, (_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    events.resolve(response);
  });
  const sockets = new WebSocketServer({ server: site });
  sockets.on("connection", (socket) =>
    socket.on("error", () => undefined).on("message", (data) => socket.send(data, { binary: false })),
  );
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
  cleanups.use({
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets.clients) socket.terminate();
      site.closeAllConnections();
      await new Promise((closed) => site.close(closed));
    },
  });
  return (site.address() as AddressInfo).port;
}

const streamOf = async (weir: Weir): Promise<StreamSummary | undefined> =>
  (await weir.get<StreamSummary[]>("/streams?session_id=all")).find(({ path }) => path === "/events");

async function showEvent(weir: Weir): Promise<void> {
  (await events.promise).write("data: kept\n\n");
  ({ id: streamId } = await waitUntil(() => streamOf(weir), { what: "the stream" }));
  await waitUntil(async () => (await weir.get<StreamFrame[]>(`/streams/${streamId}/frames`)).length === 1);
}

const connectionOf = async (weir: Weir): Promise<WsConnection | undefined> =>
  (await weir.get<WsConnection[]>("/ws-traffic/connections")).find(({ path }) => path === "/echo");

async function echo(weir: Weir, talker: RawConnection): Promise<void> {
  // A masked text frame with a zero mask.
  await talker.write("\x81\x84\0\0\0\0kept");
  assert.equal((await talker.read(6)).toString("latin1"), "\x81\x04kept");
  await waitUntil(async () => (await connectionOf(weir))?.messages_received === 1, { what: "the echo" });
}

async function postRule(weir: Weir): Promise<void> {
  const response = await fetch(`${weir.apiUrl}/api/mocks`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "kept", url_pattern: "*kept*", status_code: 200, body: "still here" }),
  });
  assert.equal(response.status, 201);
}

test("displayed messages of a stream survive kill -9", async () => {
  const frames = await again.get<StreamFrame[]>(`/streams/${streamId}/frames`);
  assert.deepEqual(
    frames.map(({ text }) => text),
    ["kept"],
  );
  assert.equal((await streamOf(again))?.state, "closed");
});

test("WebSocket frames survive kill -9", async () => {
  const connection = await connectionOf(again);
  assert.equal(connection?.state, "closed");
  const list = await again.get<WsMessage[]>(`/ws-traffic/messages?connection_id=${connection.id}`);
  assert.deepEqual(
    list.map(({ direction, payload }) => [direction, payload.text]),
    [
      ["send", "kept"],
      ["receive", "kept"],
    ],
  );
});

test("rules survive kill -9", { skip: curl.skip }, async () => {
  const { stdout } = await runProcess(curl.path, ["-sS", "-x", again.proxyUrl, "http://kept.invalid/"]);
  assert.equal(stdout, "still here");
});
