import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { after, test } from "node:test";
import { rawClient, waitUntil } from "@headworks/testkit";
import { startEngine } from "./engine-harness.ts";
import type { Engine } from "./engine-harness.ts";

const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

interface Rig {
  readonly engine: Engine;
  readonly port: number;
  /** Every connection the origin saw. */
  readonly connections: Socket[];
  /** Sends one request on a client connection of its own; gives the answer's text. */
  readonly send: (method: string, fields?: string, from?: string) => Promise<string>;
}

async function setUp(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Rig> {
  const engine = await startEngine();
  const connections: Socket[] = [];
  const origin = createServer(answer).on("connection", (socket) => connections.push(socket));
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  cleanups.push(async () => {
    await engine.stop();
    origin.closeAllConnections();
    origin.close();
  });
  const { port } = origin.address() as AddressInfo;
  const send = async (method: string, fields = "", from = "127.0.0.1"): Promise<string> => {
    const client = await rawClient(engine.port, { localAddress: from });
    await client.write(`${method} http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields}\r\n`);
    const text = (await client.readUntil("done")).toString("latin1");
    const before = engine.services.gauges.activeConnections;
    client.destroy();
    await waitUntil(() => engine.services.gauges.activeConnections < before, { what: "the client to be gone" });
    return text;
  };
  return { engine, port, connections, send };
}

const done = (_request: IncomingMessage, response: ServerResponse): void => void response.end("done");

test("a client's next connection takes over the idle connection to the origin that its last one left", async () => {
  const { connections, send, engine } = await setUp(done);
  for (let round = 0; round < 5; round += 1) assert.match(await send("GET"), /^HTTP\/1\.1 200 /);
  assert.equal(connections.length, 1);
  assert.equal(engine.services.gauges.upstreamConnections, 1);
});

test("no connection crosses clients", async () => {
  const { connections, send } = await setUp(done);
  await send("GET", "", "127.0.0.1");
  await send("GET", "", "127.0.0.2");
  assert.equal(connections.length, 2);
});

const NOT_SHARED: readonly (readonly [string, string, string])[] = [
  ["that may change something", "POST", "Content-Length: 0\r\n"],
  ["with a method that says nothing about that", "REPORT", ""],
  ["with a body", "GET", "Content-Length: 2\r\n\r\nhi"],
];
for (const [what, method, fields] of NOT_SHARED) {
  test(`a request ${what} is sent on a connection of its own`, async () => {
    const { connections, send } = await setUp(done);
    await send("GET");
    await send(method, fields);
    assert.equal(connections.length, 2);
  });
}

for (const scheme of ["NTLM TlRMTVNTUAAB", "Negotiate YII=", "Unheard-of x"]) {
  test(`a connection that carried ${scheme.split(" ")[0]} authentication serves no later client connection`, async () => {
    const { connections, send } = await setUp(done);
    await send("GET", `Authorization: ${scheme}\r\n`);
    await send("GET");
    assert.equal(connections.length, 2);
  });
}

test("a connection whose origin asked for authentication serves no later client connection", async () => {
  const { connections, send } = await setUp((_request, response) => {
    response.writeHead(401, { "www-authenticate": "NTLM" });
    response.end("done");
  });
  await send("GET");
  await send("GET");
  assert.equal(connections.length, 2);
});

test("Basic, Bearer and Digest speak for one request only", async () => {
  const { connections, send } = await setUp(done);
  for (const scheme of ["Basic YTpi", "bearer abc", "Digest username=a"]) {
    await send("GET", `Authorization: ${scheme}\r\n`);
  }
  assert.equal(connections.length, 1);
});

test("a kept connection that the origin closed is not noticed by the client", async () => {
  const { connections, send } = await setUp(done);
  await send("GET");
  connections[0]?.destroy();
  assert.match(await send("GET"), /^HTTP\/1\.1 200 /);
  assert.equal(connections.length, 2);
});

test("kept connections end by themselves, and at once when the settings change or the proxy stops", async () => {
  const { connections, send, engine } = await setUp(done);
  await send("GET");
  const [first] = connections;
  assert(first);
  await waitUntil(() => first.destroyed, { what: "the idle connection to end", timeoutMs: 8000 });
  await send("GET");
  engine.services.originPool.clear();
  await waitUntil(() => connections[1]?.destroyed === true, { what: "the kept connection to end" });
  assert.equal(engine.services.gauges.upstreamConnections, 0);
});
