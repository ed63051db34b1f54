import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { writeFile } from "node:fs/promises";
import { describe, test } from "node:test";
import {
  http2Client,
  rawClient,
  type RawConnection,
  readResponse,
  secure,
  startOrigin,
  temporaryDirectory,
  waitUntil,
} from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import type { DocumentInput } from "@headworks/gateway-contract";
import { errorCode } from "./error-code.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";

type ListenerInput = NonNullable<DocumentInput["listeners"]>[number];

const routes = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/" } }, action: { type: "proxy" } },
] as const;
const publicListener = (more: Partial<ListenerInput> = {}): ListenerInput => ({
  name: "public",
  address: "127.0.0.1",
  port: 0,
  metrics: true,
  ...more,
});
const documentFor = (originPort: number, more: Partial<ListenerInput> = {}): DocumentInput => ({
  listeners: [publicListener(more)],
  ...serving("api", [originPort]),
  routes: [...routes],
});

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const HEALTH = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";

/** Switches to a protocol in which everything is sent back. */
async function startSwitching(): Promise<{ port: number; server: Server } & AsyncDisposable> {
  const server = createServer();
  server.on("upgrade", (_request, socket) => {
    socket.on("error", () => undefined);
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    socket.pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    server,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function webSocket(port: number): Promise<RawConnection> {
  const client = await rawClient(port);
  await client.write(
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  assert.equal((await readResponse(client)).status, 101);
  return client;
}

async function echoed(client: RawConnection, text: string): Promise<void> {
  await client.write(text);
  assert.equal((await client.read(text.length)).toString(), text);
}

// First bytes

const V2_HEADER = Buffer.from("0d0a0d0a000d0a515549540a2111000cc0000207c0000201d43101bb", "hex");
const SOURCES: readonly (readonly [string, Buffer, string])[] = [
  ["version 1", Buffer.from("PROXY TCP4 192.0.2.7 192.0.2.1 54321 443\r\n"), "192.0.2.7"],
  ["version 2", V2_HEADER, "192.0.2.7"],
  ["UNKNOWN", Buffer.from("PROXY UNKNOWN\r\n"), "127.0.0.1"],
  ["LOCAL", Buffer.from("0d0a0d0a000d0a515549540a20000000", "hex"), "127.0.0.1"],
];
for (const [what, header, source] of SOURCES) {
  test(`PROXY protocol, ${what}: the client is ${source}, also byte by byte`, async () => {
    await using origin = await startOrigin();
    await using gateway = await startGateway(documentFor(origin.port, { proxy_protocol: true }));
    for (const step of [header.length + GET.length, 1]) {
      await using client = await rawClient(gateway.port());
      const bytes = Buffer.concat([header, Buffer.from(GET)]);
      for (let at = 0; at < bytes.length; at += step) await client.write(bytes.subarray(at, at + step));
      assert.equal((await readResponse(client)).status, 200);
    }
    for (const { rawHeaders } of origin.requests) {
      assert.equal(rawHeaders[rawHeaders.indexOf("X-Real-IP") + 1], source);
    }
  });
}

test("PROXY protocol: what is malformed, or missing, is answered 400 and closed", async () => {
  await using gateway = await startGateway({ listeners: [publicListener({ proxy_protocol: true })], routes: [] });
  for (const bytes of [HEALTH, "PROXY TCP4 x y 1 2\r\n", `PROXY UNKNOWN ${"x".repeat(200)}`]) {
    await using client = await rawClient(gateway.port());
    await client.write(bytes);
    const response = await readResponse(client);
    assert.deepEqual([response.status, response.header("connection")], [400, "close"]);
    assert.equal(errorCode(response), "bad_request");
    assert.equal((await client.collect()).length, 0);
  }
});

test("PROXY protocol: a header that does not come is waited for as long as for a head", async () => {
  const listeners = [publicListener({ proxy_protocol: true, header_timeout_ms: 300 })];
  await using gateway = await startGateway({ listeners, routes: [] });
  await using client = await rawClient(gateway.port());
  await client.write("PROXY TCP4 ");
  assert.equal((await client.collect(5000)).length, 0);
});

test("PROXY protocol: without the setting its header is no request", async () => {
  await using gateway = await startGateway({ routes: [] });
  await using client = await rawClient(gateway.port());
  await client.write(`PROXY UNKNOWN\r\n${HEALTH}`);
  assert.equal((await readResponse(client)).status, 400);
});

/** Writes a certificate for localhost into a directory of its own. */
async function certificate(): Promise<{ ca: string; tls: { cert_file: string; key_file: string } } & AsyncDisposable> {
  const directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  const leaf = authority.issueLeaf({ dns: ["localhost"], ip: [] });
  const tls = { cert_file: directory.file("a.pem"), key_file: directory.file("a.key") };
  await writeFile(tls.cert_file, leaf.chainPem);
  await writeFile(tls.key_file, leaf.keyPem);
  return { ca: authority.certificatePem, tls, [Symbol.asyncDispose]: async () => await directory.remove() };
}

test("PROXY protocol: its header comes before TLS, and garbage instead closes without a word", async () => {
  await using origin = await startOrigin();
  await using files = await certificate();
  const { tls } = files;
  await using gateway = await startGateway(documentFor(origin.port, { protocol: "https", tls, proxy_protocol: true }));
  const port = gateway.port();
  const plain = await rawClient(port);
  await plain.write(V2_HEADER);
  await using client = await secure(plain.detach(), { ca: files.ca, servername: "localhost" });
  await client.write(GET);
  assert.equal((await readResponse(client)).status, 200);
  const { rawHeaders = [] } = origin.requests[0] ?? {};
  assert.equal(rawHeaders[rawHeaders.indexOf("X-Real-IP") + 1], "192.0.2.7");
  await using bad = await rawClient(port);
  await bad.write(HEALTH);
  assert.equal((await bad.collect()).length, 0);
});

test("the first bytes tell HTTP/1.1 from HTTP/2, however they are cut; with http2 false there is only HTTP/1.1", async () => {
  await using gateway = await startGateway({
    listeners: [publicListener(), publicListener({ name: "old", http2: false })],
    routes: [],
  });
  for (const listener of ["public", "old"]) {
    await using client = await rawClient(gateway.port(listener));
    for (const letter of `POST /healthz HTTP/1.1\r\nHost: a\r\n\r\n`) await client.write(letter);
    assert.equal((await readResponse(client, "POST")).status, 200);
  }
  const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  const empty = Buffer.from("000000040000000000", "hex");
  await using cut = await rawClient(gateway.port());
  for (const letter of preface) await cut.write(letter);
  await cut.write(empty);
  assert.deepEqual((await cut.read(9)).subarray(3, 4), Buffer.from([4]), "the answer begins with SETTINGS");
  await using old = await rawClient(gateway.port("old"));
  await old.write(preface);
  assert.equal((await readResponse(old)).status, 505);
  await using close = await rawClient(gateway.port());
  await close.write("PRI * HTTP/2.0\r\n\r\nSX\r\n\r\n");
  assert.equal((await readResponse(close)).status, 505);
});

// Reload

test("reload: connections of all kinds stay where the listener stays, and speak under the new routes", async () => {
  await using origin = await startOrigin();
  await using switching = await startSwitching();
  const { upstreams, services } = serving("api", [origin.port]);
  const tunnels = serving("ws", [switching.port]);
  const document = (prefix: string): DocumentInput => ({
    upstreams: [...upstreams, ...tunnels.upstreams],
    services: [...services, ...tunnels.services],
    routes: [
      { name: "ws", service: "ws", match: { path: { type: "exact", value: "/" } }, action: { type: "proxy" } },
      { name: "api", service: "api", match: { path: { type: "prefix", value: prefix } }, action: { type: "proxy" } },
    ],
  });
  await using gateway = await startGateway(document("/one"));
  const port = gateway.port();
  await using keepAlive = await rawClient(port);
  await using tunnel = await webSocket(port);
  await using client = await http2Client(port);
  assert.equal((await client.fetch({ ":path": "/one" })).status, 200);
  await keepAlive.write(HEALTH);
  await readResponse(keepAlive);
  assert.equal((await gateway.reload(document("/two"))).outcome, "published");
  assert.equal(gateway.port(), port);
  await keepAlive.write("GET /two HTTP/1.1\r\nHost: a\r\n\r\n");
  assert.equal((await readResponse(keepAlive)).status, 200);
  assert.equal((await client.fetch({ ":path": "/two" })).status, 200);
  assert.equal((await client.fetch({ ":path": "/one" })).status, 404);
  await echoed(tunnel, "still here");
});

test("reload: fifty of them under load lose no request", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway(documentFor(origin.port));
  let isFinished = false;
  let answered = 0;
  const load = async (): Promise<void> => {
    await using client = await rawClient(gateway.port());
    while (!isFinished) {
      await client.write(GET);
      assert.equal((await readResponse(client)).status, 200);
      answered += 1;
    }
  };
  const loading = Promise.all(Array.from({ length: 8 }, load));
  for (let round = 0; round < 50; round++) {
    const outcome = await gateway.reload(documentFor(origin.port, { idle_timeout_ms: 30_000 + round }));
    // The watch of the file may have been faster.
    assert.notEqual(outcome.outcome, "rejected");
  }
  isFinished = true;
  await loading;
  assert.ok(answered >= 50, String(answered));
});

test("reload: settings of a listener change for new connections, open ones stay", async () => {
  await using gateway = await startGateway({ listeners: [publicListener()], routes: [] });
  await using open = await http2Client(gateway.port());
  await open.fetch({ ":path": "/healthz" });
  await gateway.reload({ listeners: [publicListener({ http2: false })], routes: [] });
  await waitUntil(async () => {
    await using fresh = await rawClient(gateway.port());
    await fresh.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    return (await fresh.readSome()).toString("latin1").startsWith("HTTP/1.1 505");
  });
  assert.equal((await open.fetch({ ":path": "/healthz" })).status, 200);
});

test("reload: connections that would be let in in another way now are drained", async () => {
  await using gateway = await startGateway({ listeners: [publicListener()], routes: [] });
  await using open = await rawClient(gateway.port());
  await open.write(HEALTH);
  await readResponse(open);
  await gateway.reload({ listeners: [publicListener({ proxy_protocol: true })], routes: [] });
  assert.equal((await open.collect(5000)).length, 0);
});

test("reload: a listener that is gone finishes what it has and takes nothing new; a new one is there", async () => {
  const began = Promise.withResolvers<() => void>();
  await using origin = await startOrigin({
    handler: (_request, response) => began.resolve(() => void response.end("late")),
  });
  const second = publicListener({ name: "second" });
  await using gateway = await startGateway({ ...documentFor(origin.port), listeners: [publicListener(), second] });
  const port = gateway.port("second");
  await using busy = await rawClient(port);
  await busy.write(GET);
  const response = await began.promise;
  await gateway.reload({
    ...documentFor(origin.port),
    listeners: [publicListener(), publicListener({ name: "third" })],
  });
  await waitUntil(() => gateway.gateway.addresses.some(({ name }) => name === "third"));
  await assert.rejects(rawClient(port), "nothing listens there any more");
  response();
  assert.equal((await readResponse(busy)).body.toString(), "late");
  assert.equal((await gateway.send({ path: "/healthz", listener: "third" })).status, 200);
});

test("reload: a document may name the port that the system gave: the listener stays with its connections", async () => {
  await using gateway = await startGateway({ listeners: [publicListener()], routes: [] });
  const port = gateway.port();
  await using open = await rawClient(port);
  await open.write(HEALTH);
  await readResponse(open);
  for (const next of [publicListener({ port }), publicListener({ port, name: "renamed" })]) {
    assert.equal((await gateway.reload({ listeners: [next], routes: [] })).outcome, "published");
    await waitUntil(() => gateway.gateway.addresses[0]?.name === next.name);
    assert.deepEqual(gateway.gateway.addresses, [{ name: next.name, address: "127.0.0.1", port }]);
    assert.equal((await gateway.send({ path: "/healthz", listener: next.name })).status, 200);
    await open.write(HEALTH);
    assert.equal((await readResponse(open)).status, 200);
  }
  assert.deepEqual(
    gateway.log.filter(({ code }) => code === "listener_failed"),
    [],
  );
});

// Stop

/** Begins to stop, and waits until nothing new is accepted. */
async function stopping(gateway: TestGateway, graceMs: number): Promise<{ done: Promise<void>; tookMs: () => number }> {
  const port = gateway.port();
  const startedMs = performance.now();
  let endedMs = 0;
  const done = gateway.gateway.stop(graceMs).then(() => {
    endedMs = performance.now();
  });
  const isOpen = async (): Promise<boolean> => {
    const client = await rawClient(port).catch(() => undefined);
    client?.destroy();
    return client !== undefined;
  };
  await waitUntil(async () => !(await isOpen()));
  return { done, tookMs: () => endedMs - startedMs };
}

describe("stopping", { concurrency: 12 }, () => {
  test("stop: idle connections of HTTP/1.1 and HTTP/2 close at once, the latter with GOAWAY", async () => {
    const gateway = await startGateway({ routes: [] });
    await using idle = await rawClient(gateway.port());
    await using silent = await rawClient(gateway.port());
    await idle.write(HEALTH);
    await readResponse(idle);
    await using client = await http2Client(gateway.port());
    await client.fetch({ ":path": "/healthz" });
    const goaway = once(client.session, "goaway");
    const { done, tookMs } = await stopping(gateway, 10_000);
    assert.equal((await goaway)[0], 0);
    await Promise.all([idle.collect(), silent.collect(), done]);
    assert.ok(tookMs() < 3000, `${tookMs()} ms`);
    await gateway.directory.remove();
  });

  test("stop: requests under way are answered, over HTTP/1.1 with close, over HTTP/2 with GOAWAY behind them", async () => {
    const held: (() => void)[] = [];
    await using origin = await startOrigin({
      handler: (_request, response) => void held.push(() => response.end("done")),
    });
    const gateway = await startGateway(documentFor(origin.port));
    await using client = await rawClient(gateway.port());
    await client.write(GET);
    await using multiplexed = await http2Client(gateway.port());
    const responses = [multiplexed.fetch({ ":path": "/a" }), multiplexed.fetch({ ":path": "/b" })];
    await waitUntil(() => held.length === 3);
    const { done } = await stopping(gateway, 10_000);
    for (const response of held) response();
    const response = await readResponse(client);
    assert.deepEqual([response.body.toString(), response.header("connection")], ["done", "close"]);
    for (const { status, body } of await Promise.all(responses)) {
      assert.deepEqual([status, body.toString()], [200, "done"]);
    }
    await done;
    await gateway.directory.remove();
  });

  test("stop: WebSockets go on for the time of grace, then everything left is ended", async () => {
    await using switching = await startSwitching();
    const gateway = await startGateway(documentFor(switching.port));
    await using tunnel = await webSocket(gateway.port());
    const { done, tookMs } = await stopping(gateway, 700);
    await echoed(tunnel, "still here");
    await Promise.all([tunnel.collect(), done]);
    assert.ok(tookMs() >= 690 && tookMs() < 5000, `${tookMs()} ms`);
    await gateway.directory.remove();
  });

  test("stop: a WebSocket that ends by itself does not use up the time of grace", async () => {
    await using switching = await startSwitching();
    const gateway = await startGateway(documentFor(switching.port));
    await using tunnel = await webSocket(gateway.port());
    const { done, tookMs } = await stopping(gateway, 20_000);
    await echoed(tunnel, "last words");
    tunnel.destroy();
    await done;
    assert.ok(tookMs() < 5000, `${tookMs()} ms`);
    await gateway.directory.remove();
  });

  test("a request that is on its way when the service begins to stop is answered, and is the connection's last", async () => {
    const gateway = await startGateway({ listeners: [publicListener()], routes: [] });
    await using open = await rawClient(gateway.port());
    await open.write(HEALTH);
    await readResponse(open);
    const stopped = gateway[Symbol.asyncDispose]();
    await open.write(HEALTH);
    const response = await readResponse(open);
    assert.deepEqual([response.status, response.header("connection")], [200, "close"]);
    assert.equal((await open.collect(5000)).length, 0);
    await stopped;
  });

  test("stop: a request whose head is half there when idle connections are closed is answered, and is the connection's last", async () => {
    const gateway = await startGateway({ listeners: [publicListener()], routes: [] });
    await using open = await rawClient(gateway.port());
    await using idle = await rawClient(gateway.port());
    for (const client of [open, idle]) {
      await client.write(HEALTH);
      await readResponse(client);
    }
    await open.write(HEALTH.slice(0, -2));
    await waitUntil(async () => (await gateway.send({ path: "/healthz" })).status === 200);
    const stopped = gateway[Symbol.asyncDispose]();
    assert.equal((await idle.collect(5000)).length, 0);
    await open.write(HEALTH.slice(-2));
    const response = await readResponse(open);
    assert.deepEqual([response.status, response.header("connection")], [200, "close"]);
    await stopped;
  });
});

test("a request whose body breaks is answered, told of and counted once, as the request that it is", async () => {
  await using upstream = await startOrigin();
  await using gateway = await startGateway({
    listeners: [publicListener()],
    upstreams: [{ name: "u", endpoints: [{ address: "127.0.0.1", port: upstream.port }] }],
    services: [{ name: "s", upstream: "u" }],
    routes: [{ name: "r", service: "s", match: { path: { type: "prefix", value: "/x" } }, action: { type: "proxy" } }],
  });
  await using client = await rawClient(gateway.port());
  await client.write("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nZZ\r\n");
  const response = await readResponse(client);
  assert.deepEqual([response.status, response.header("connection")], [400, "close"]);
  const lines = (): unknown[] =>
    gateway.log
      .filter((one) => one["target"] === "gateway::access")
      .map((one) => [one["request_id"], one["method"], one["path"], one["route"], one["status"], one["code"]]);
  await waitUntil(() => lines().length > 0);
  assert.equal((await client.collect(5000)).length, 0);
  assert.deepEqual(lines(), [[response.header("x-request-id"), "POST", "/x", "r", 400, "bad_request"]]);
  const metrics = (await gateway.send({ path: "/metrics" })).body.toString();
  assert.deepEqual(metrics.match(/^requests_total.* [1-9][0-9]*$/gm), [
    'requests_total{route="r",listener="public",status_class="4xx"} 1',
  ]);
});

test("bytes that are no request have an access line and are counted, like requests", async () => {
  await using gateway = await startGateway({ listeners: [publicListener()], routes: [] });
  const cases = [
    ["GET / HTTP/1.1\r\n\r\n", 400],
    ["POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400],
    [`GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(70_000)}\r\n\r\n`, 431],
    ["GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505],
  ] as const;
  for (const [bytes, status] of cases) {
    await using client = await rawClient(gateway.port());
    await client.write(bytes);
    const response = await readResponse(client);
    assert.equal(response.status, status);
    const line = await waitUntil(() =>
      gateway.log.find((one) => one["request_id"] === response.header("x-request-id")),
    );
    assert.deepEqual(
      [line["target"], line["status"], line["route"], line["method"], line["path"], line["client"]],
      ["gateway::access", status, "unrouted", "", "", "127.0.0.1"],
    );
    assert.equal(typeof line["code"], "string");
  }
  const metrics = (await gateway.send({ path: "/metrics" })).body.toString();
  assert.match(metrics, /^requests_total\{route="unrouted",listener="public",status_class="4xx"\} 3$/m);
  assert.match(metrics, /^requests_total\{route="unrouted",listener="public",status_class="5xx"\} 1$/m);
});
