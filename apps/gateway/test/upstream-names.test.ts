import assert from "node:assert/strict";
import dns from "node:dns";
import { createServer, type Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";
import { after, mock, test } from "node:test";
import { once } from "node:events";
import { rawClient, readResponse, waitUntil } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

type UpstreamInput = NonNullable<DocumentInput["upstreams"]>[number];

/** The address that `svc.test` has now. */
let address = "127.0.0.1";
let lookups = 0;
const systemLookup = dns.lookup;
mock.method(dns, "lookup", (name: string, options: dns.LookupAllOptions, callback: (...result: unknown[]) => void) => {
  if (name !== "svc.test") return (systemLookup as (...input: unknown[]) => void)(name, options, callback);
  lookups += 1;
  return process.nextTick(callback, null, options.all ? [{ address, family: 4 }] : address, 4);
});
after(() => mock.restoreAll());

interface TwoAddresses extends AsyncDisposable {
  readonly port: number;
  readonly connections: { readonly [address: string]: number };
}

/** Two servers with one port, on 127.0.0.1 and 127.0.0.2; each responds with its address, `/slow` after a second. */
async function twoAddresses(isHttp2 = false, keepAliveMs = 60_000): Promise<TwoAddresses> {
  const connections: Record<string, number> = { "127.0.0.1": 0, "127.0.0.2": 0 };
  const sockets = new Set<Socket>();
  const start = async (host: string, port: number): Promise<Server> => {
    const server = (isHttp2 ? createHttp2Server() : createServer({ keepAliveTimeout: keepAliveMs })) as Server;
    server.on("connection", (socket) => {
      sockets.add(socket);
      connections[host] = (connections[host] ?? 0) + 1;
    });
    server.on("request", ({ url }, response) => setTimeout(() => response.end(host), url === "/slow" ? 1000 : 0));
    server.listen(port, host);
    await once(server, "listening");
    return server;
  };
  const first = await start("127.0.0.1", 0);
  const { port } = first.address() as AddressInfo;
  const second = await start("127.0.0.2", port);
  return {
    port,
    connections,
    [Symbol.asyncDispose]: async () => {
      const closed = Promise.all([once(first, "close"), once(second, "close")]);
      for (const server of [first, second]) server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function gatewayFor(port: number, more: Partial<UpstreamInput> = {}): Promise<TestGateway> {
  return await startGateway({
    ...serving("api", [], { endpoints: [{ address: "svc.test", port }], ...more }),
    routes: [
      { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
    ],
  });
}

const bodyOf = async (gateway: TestGateway, path = "/"): Promise<string> =>
  (await gateway.send({ path })).body.toString();

for (const protocol of ["http1", "h2c"] as const) {
  test(`max_connection_age_ms: a changed name is followed while requests go on, and a slow one ends whole (${protocol})`, async () => {
    address = "127.0.0.1";
    await using servers = await twoAddresses(protocol === "h2c");
    await using gateway = await gatewayFor(servers.port, { protocol, max_connection_age_ms: 300 });
    assert.equal(await bodyOf(gateway), "127.0.0.1");
    const slow = bodyOf(gateway, "/slow");
    await waitUntil(() => (servers.connections["127.0.0.1"] ?? 0) > 0);
    address = "127.0.0.2";
    const startedMs = performance.now();
    await waitUntil(async () => (await bodyOf(gateway)) === "127.0.0.2", { what: "the new address" });
    assert.ok(performance.now() - startedMs < 1000, "before the slow response ended");
    assert.equal(await slow, "127.0.0.1");
  });

  test(`max_connection_age_ms: 0 keeps a connection as long as it is used (${protocol})`, async () => {
    address = "127.0.0.1";
    await using servers = await twoAddresses(protocol === "h2c");
    await using gateway = await gatewayFor(servers.port, { protocol, max_connection_age_ms: 0 });
    lookups = 0;
    for (let at = 0; at < 10; at += 1) {
      assert.equal(await bodyOf(gateway), "127.0.0.1");
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
    assert.deepEqual([servers.connections["127.0.0.1"], lookups], [1, 1]);
  });
}

test("max_connection_age_ms: a WebSocket goes on beyond it", async () => {
  const server = createTcpServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
      socket.on("data", (piece) => socket.write(piece));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  address = "127.0.0.1";
  await using gateway = await gatewayFor((server.address() as AddressInfo).port, { max_connection_age_ms: 100 });
  await using client = await rawClient(gateway.port());
  await client.write(
    "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
  );
  assert.equal((await readResponse(client)).status, 101);
  await new Promise((resolve) => setTimeout(resolve, 300));
  await client.write("still");
  assert.equal((await client.read(5)).toString(), "still");
  server.close();
});

test("Keep-Alive: a connection is not used again when the endpoint announced to close it by then", async () => {
  address = "127.0.0.1";
  // Node announces `timeout=1`, of which a margin of a second is taken: it is used for nothing else.
  await using servers = await twoAddresses(false, 1000);
  await using gateway = await gatewayFor(servers.port);
  for (let at = 0; at < 3; at += 1) {
    const response = await gateway.send({ method: "POST", path: "/", body: "x" });
    assert.equal(response.status, 200);
  }
  assert.equal(servers.connections["127.0.0.1"], 3);
});

test("/readyz says 503 while the name of an upstream without other endpoints was never found", async () => {
  const discovery = { hostname: "never.invalid", port: 80 };
  for (const [endpoints, status] of [
    [[], 503],
    [[{ address: "127.0.0.1", port: 9 }], 200],
  ] as const) {
    await using gateway = await startGateway({
      ...serving("api", [], { endpoints: [...endpoints], dns_discovery: discovery }),
      routes: [],
    });
    assert.equal((await gateway.send({ path: "/readyz" })).status, status);
  }
});
