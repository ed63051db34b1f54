import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test, type TestContext } from "node:test";
import { DeadlineSweep } from "@headworks/sockets";
import {
  rawClient,
  readResponse,
  startOrigin,
  startHttp2Origin,
  startRawServer,
  temporaryDirectory,
  waitUntil,
  type RawConnection,
} from "@headworks/testkit";
import type { DocumentInput, Upstream } from "@headworks/gateway-contract";
import { EndpointPools } from "#upstream/endpoint-pools.ts";
import type { ExchangeWaiter, UpstreamExchange, UpstreamFailure } from "#upstream/upstream-exchange.ts";
import { UpstreamRegistry } from "#upstream/upstream-registry.ts";
import { serving, startGateway } from "./gateway-rig.ts";

const ROUTES: NonNullable<DocumentInput["routes"]> = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
];

const isFinished = (connection: RawConnection | undefined): boolean =>
  connection !== undefined && (connection.socket.destroyed || connection.socket.readableEnded);

/** Pools of one upstream, and waiters that note what they get. */
function rig(context: TestContext, port: number, more: Partial<Upstream> = {}, address = "127.0.0.1") {
  const deadlines = new DeadlineSweep(10);
  const pools = new EndpointPools(deadlines, assert.ifError);
  context.after(() => {
    pools.stop();
    deadlines.stop();
  });
  const registry = new UpstreamRegistry({ nowMs: () => performance.now(), emit: () => undefined });
  const publish = (document: Partial<Upstream>): void => {
    registry.published([{ name: "u", endpoints: [{ address, port }], ...document }]);
    pools.published(registry.all);
  };
  publish(more);
  const group = registry.get("u");
  assert.ok(group);
  const acquire = () => {
    const [endpoint] = group.endpoints;
    assert.ok(endpoint);
    const got: { exchange?: UpstreamExchange; failure?: UpstreamFailure } = {};
    const waiter: ExchangeWaiter = {
      onExchange: (exchange) => (got.exchange = exchange),
      onUnavailable: (failure) => (got.failure = failure),
    };
    const cancel = pools.poolOf(group, endpoint).acquire(waiter);
    return { got, cancel: () => cancel?.() };
  };
  return { pools, publish, acquire, open: () => pools.openConnections(group.endpoints[0] ?? assert.fail()) };
}

const holding = async () => await startRawServer(async (connection) => void (await connection.closed));

test("connection_cap bounds connections; who waits gets the next free way, in the order of asking", async (context) => {
  await using server = await holding();
  const { acquire, open } = rig(context, server.port, { connection_cap: 2 });
  const waiters = Array.from({ length: 5 }, acquire);
  await waitUntil(() => waiters[1]?.got.exchange, { what: "two ways" });
  assert.deepEqual([open(), waiters[2]?.got], [2, {}]);
  waiters[2]?.cancel();
  waiters[0]?.got.exchange?.abandon();
  await waitUntil(() => waiters[3]?.got.exchange, { what: "a way for the oldest that still waits" });
  assert.deepEqual([waiters[2]?.got, waiters[4]?.got, open()], [{}, {}, 2]);
});

test("max_pending refuses what would wait beyond it, at once", async (context) => {
  await using server = await holding();
  const { acquire } = rig(context, server.port, { connection_cap: 1, max_pending: 1 });
  const [first, second, third] = [acquire(), acquire(), acquire()];
  assert.deepEqual([first.got, second.got, third.got], [{}, {}, { failure: "saturated" }]);
});

test("no request waits without end for a connection: all fail when the endpoint refuses", async (context) => {
  const server = await holding();
  await server.close();
  const { acquire, open } = rig(context, server.port, { connection_cap: 1 });
  const waiters = Array.from({ length: 4 }, acquire);
  await waitUntil(() => waiters.every(({ got }) => got.failure === "connect"), { what: "four failures" });
  assert.equal(open(), 0);
});

test("connect_ms bounds everything up to the end of the TLS handshake", async (context) => {
  await using server = await holding();
  const { acquire } = rig(context, server.port, { protocol: "https", timeouts: { connect_ms: 60 } });
  const { got } = acquire();
  await waitUntil(() => got.failure === "connect-timeout", { what: "the timeout" });
  await waitUntil(() => isFinished(server.connections[0]), { what: "the end of the connection" });
});

test("a name with addresses of both families is reached where only one answers, in turn or side by side", async (context) => {
  await using server = await holding();
  for (const happy_eyeballs_ms of [0, 20, 250]) {
    const { acquire } = rig(context, server.port, { timeouts: { happy_eyeballs_ms } }, "localhost");
    const { got } = acquire();
    await waitUntil(() => got.exchange, { what: `a way with ${happy_eyeballs_ms} ms` });
  }
});

test("a retired pool closes what is idle, and finishes what is under way", async () => {
  const isSlowDone = Promise.withResolvers<void>();
  await using server = await startRawServer(async (connection) => {
    for (;;) {
      const head = (await connection.readUntil("\r\n\r\n").catch(() => undefined))?.toString();
      if (head === undefined) return;
      if (head.startsWith("GET /slow")) await isSlowDone.promise;
      connection.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  const document = (cap: number) => ({ ...serving("api", [server.port], { connection_cap: cap }), routes: ROUTES });
  await using gateway = await startGateway(document(5));
  const slow = gateway.send({ path: "/slow" });
  await waitUntil(() => server.connections.length === 1);
  await gateway.send({ path: "/" });
  assert.equal(server.connections.length, 2);
  await gateway.reload(document(6));
  await waitUntil(() => isFinished(server.connections[1]), { what: "the end of the idle connection" });
  isSlowDone.resolve();
  assert.equal((await slow).body.toString(), "ok");
  await waitUntil(() => isFinished(server.connections[0]), { what: "the end of the busy one behind its answer" });
});

test("when one idle connection turns out closed, the others are not tried one after the other", async () => {
  let isRestarted = false;
  await using server = await startRawServer(async (connection) => {
    for (;;) {
      const head = await connection.readUntil("\r\n\r\n").catch(() => undefined);
      if (head === undefined) return;
      if (isRestarted && server.connections.indexOf(connection) < 4) return connection.destroy();
      await new Promise((resolve) => setTimeout(resolve, 30));
      connection.socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  await using gateway = await startGateway({ ...serving("api", [server.port]), routes: ROUTES });
  await Promise.all(Array.from({ length: 4 }, async () => await gateway.send({ path: "/" })));
  assert.equal(server.connections.length, 4);
  isRestarted = true;
  assert.equal((await gateway.send({ path: "/" })).status, 200);
});

test("an upstream over TLS is trusted by its own CA only; a missing CA file trusts no certificate", async (context) => {
  await using origin = await startOrigin({ tls: true, handler: (_request, response) => void response.end("secure") });
  await using directory = await temporaryDirectory();
  const caFile = directory.file("ca.pem");
  await writeFile(caFile, origin.caPem ?? "");
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { protocol: "https", tls: { trusted_ca_file: caFile } }),
    routes: ROUTES,
  });
  assert.equal((await gateway.send({ path: "/" })).body.toString(), "secure");
  await using stranger = await startGateway({
    ...serving("api", [origin.port], { protocol: "https" }),
    routes: ROUTES,
  });
  assert.equal((await stranger.send({ path: "/" })).status, 502);
  const gone = rig(context, origin.port, { protocol: "https", tls: { trusted_ca_file: directory.file("gone.pem") } });
  assert.deepEqual(gone.acquire().got, { failure: "misconfigured" });
  await writeFile(caFile, "-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n");
  const broken = rig(context, origin.port, { protocol: "https", tls: { trusted_ca_file: caFile } });
  assert.deepEqual(broken.acquire().got, { failure: "misconfigured" });
});

test("max_pending: a saturated upstream is 503 upstream_saturated, which is not retried and does not concern the breaker", async () => {
  await using server = await holding();
  await using gateway = await startGateway({
    ...serving("api", [server.port], {
      connection_cap: 1,
      max_pending: 1,
      breaker: { consecutive_failures: 1 },
      retries: { attempts: 3 },
    }),
    routes: ROUTES,
  });
  const clients = [await rawClient(gateway.port()), await rawClient(gateway.port())];
  for (const client of clients) await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await waitUntil(() => server.connections.length === 1);
  for (let at = 0; at < 5; at++) {
    await using client = await rawClient(gateway.port());
    await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    const response = await readResponse(client);
    assert.equal(response.status, 503);
    assert.match(response.body.toString(), /upstream_saturated/);
  }
  for (const client of clients) client.destroy();
});

/** Sends a head to each request, and never the rest. */
async function beginning(isHttp2: boolean) {
  if (isHttp2) {
    return await startHttp2Origin(
      (stream) => {
        stream.respond();
        stream.write("a");
      },
      { maxConcurrentStreams: 1 },
    );
  }
  return await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    await connection.closed;
  });
}

for (const { name, more } of [
  { name: "within read_ms", more: { timeouts: { read_ms: 400 } } },
  { name: "over HTTP/2", more: { protocol: "h2c", timeouts: { read_ms: 400 } } },
] as const) {
  test(`who waited in our queue alone for a connection says nothing about the upstream to the breaker: ${name}`, async () => {
    await using server = await beginning("protocol" in more);
    await using gateway = await startGateway({
      ...serving("api", [server.port], {
        connection_cap: 1,
        breaker: { consecutive_failures: 1 },
        health: { consecutive_failures: 1 },
        ...more,
      }),
      routes: ROUTES,
    });
    await using first = await rawClient(gateway.port());
    await first.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await first.readUntil("HTTP/1.1 200 ");
    assert.equal((await gateway.send({ path: "/" })).status, 504);
    assert.equal((await gateway.send({ path: "/" })).status, 504, "no breaker stands in the way");
  });
}

test("an upstream with which no connection comes about has had its time, and that counts for the breaker", async () => {
  await using server = await holding();
  await using gateway = await startGateway({
    ...serving("api", [server.port], {
      protocol: "https",
      connection_cap: 1,
      breaker: { consecutive_failures: 1 },
      timeouts: { read_ms: 60 },
    }),
    routes: ROUTES,
  });
  assert.equal((await gateway.send({ path: "/" })).status, 504);
  assert.equal((await gateway.send({ path: "/" })).status, 503);
});
