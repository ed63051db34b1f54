import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, test } from "node:test";
import { DeadlineSweep } from "@headworks/sockets";
import { CertificateAuthority } from "@headworks/tls-authority";
import {
  heapGrowthBytes,
  RawConnection,
  readResponse,
  secure,
  startRawServer,
  waitUntil,
  type RawResponse,
  type RawServer,
} from "@headworks/testkit";
import { newGauges } from "#exchange/gauges.ts";
import { ConnectionHistory, IdleOrigins, machineOf } from "#upstream/idle-origins.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine, EngineOptions } from "./engine-harness.ts";

/** Which connection to an origin the next client goes on with: decision 027. */
const originCa = CertificateAuthority.create({ commonName: "Origins" });
const leaf = originCa.issueLeaf({ dns: ["localhost", "other.localhost"], ip: ["127.0.0.1"] });
const tls = { key: leaf.keyPem, cert: leaf.chainPem };

const stops: (() => Promise<void>)[] = [];
after(async () => {
  for (const stop of stops) await stop();
});

async function engine(options: EngineOptions = {}): Promise<Engine> {
  const started = await startEngine({ upstreamRoots: originCa.certificatePem, keepAliveMs: 60_000, ...options });
  stops.push(async () => await started.stop());
  return started;
}

/** Answers with the number of its connection, and as the path says. */
async function numbered(connection: RawConnection, index: number): Promise<void> {
  for (;;) {
    const head = await connection.readUntil("\r\n\r\n", 60_000).catch(() => undefined);
    if (head === undefined) return;
    const [method = "", path = ""] = head.toString("latin1").split(" ", 2);
    const lengthBytes = Number(/content-length: (\d+)/iu.exec(head.toString("latin1"))?.[1] ?? 0);
    if (lengthBytes > 0) await connection.read(lengthBytes);
    const body = `connection ${index}`;
    const status = path === "/demands" ? "401 Unauthorized" : "200 OK";
    const more = path === "/short" ? "Keep-Alive: timeout=1\r\n" : "";
    const version = path === "/old" ? "HTTP/1.0" : "HTTP/1.1";
    const written = `${version} ${status}\r\n${more}Connection: keep-alive\r\nContent-Length: ${body.length}\r\n\r\n`;
    await connection.write(method === "HEAD" ? written : written + body);
    if (path === "/then-surplus") {
      // Not in one piece with the answer: the connection is idle, and its client gone, when it comes.
      const at = unsolicited.push(connection) - 1;
      await unsolicitedWanted[at]?.promise;
    }
  }
}

const unsolicited: RawConnection[] = [];
const unsolicitedWanted: PromiseWithResolvers<void>[] = [];

interface Asked {
  readonly path?: string;
  readonly method?: string;
  readonly fields?: readonly string[];
  readonly body?: string;
  /** The client's own address. */
  readonly from?: string;
  /** By TLS, with this name. */
  readonly servername?: string;
  /** The origin's address as the target writes it. */
  readonly host?: string;
  /** By CONNECT, with these fields. */
  readonly connectFields?: readonly string[];
}

/** A client that asks once, waits for the answer and is gone. */
async function ask(proxy: Engine, origin: RawServer, asked: Asked = {}): Promise<RawResponse> {
  const { path = "/", method = "GET", fields = ["User-Agent: browser/1"], body = "", from = "127.0.0.1" } = asked;
  const place = `${asked.host ?? "127.0.0.1"}:${origin.port}`;
  const socket = connect({ port: proxy.port, host: "127.0.0.1", localAddress: from, allowHalfOpen: true });
  let client = new RawConnection(socket);
  let target = `http://${place}${path}`;
  const { servername, connectFields } = asked;
  if (servername !== undefined || connectFields !== undefined) {
    const lines = [`CONNECT ${place} HTTP/1.1`, `Host: ${place}`, ...(connectFields ?? [])];
    await client.write(`${lines.join("\r\n")}\r\n\r\n`);
    await client.readUntil("\r\n\r\n");
    target = path;
  }
  if (servername !== undefined) client = await secure(socket, { servername, ca: proxy.ca.certificatePem });
  const lines = [`${method} ${target} HTTP/1.1`, `Host: ${place}`, ...fields];
  if (body !== "") lines.push(`Content-Length: ${body.length}`);
  const before = proxy.finished.length;
  await client.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
  const response = await readResponse(client, method);
  client.end();
  await client[Symbol.asyncDispose]();
  await proxy.waitFor(before + 1);
  await waitUntil(() => proxy.services.gauges.activeConnections === 0);
  return response;
}

const textOf = ({ body }: RawResponse): string => body.toString("latin1");

for (const servername of [undefined, "localhost"]) {
  const how = servername === undefined ? "plain" : "over TLS";
  test(`a client that comes again goes on with the connection that it left, ${how}`, async () => {
    await using origin = await startRawServer(numbered, servername === undefined ? {} : { tls });
    const proxy = await engine();
    const asked = servername === undefined ? {} : { servername };
    for (let count = 0; count < 3; count += 1) {
      assert.equal(textOf(await ask(proxy, origin, asked)), "connection 0");
    }
    assert.equal(origin.connections.length, 1);
    assert.equal(proxy.services.gauges.upstreamConnections, 1);
    const [first, second] = proxy.finished;
    assert.equal(second?.serverAddress, first?.serverAddress);
    assert.deepEqual(second?.upstreamTls, first?.upstreamTls);
    assert.ok((first?.moments.upstreamReady ?? 0) > 0);
    assert.equal(second?.moments.upstreamReady, 0, "it did not connect");
  });
}

const strangers: Readonly<Record<string, readonly [Asked, Asked]>> = {
  "another program": [{}, { fields: ["User-Agent: tool/2"] }],
  "a program without a name": [{}, { fields: [] }],
  "a request with a body": [{}, { method: "POST", body: "a=b" }],
  "a request that changes something": [{}, { method: "DELETE" }],
  "credentials that may prove a connection": [{}, { fields: ["User-Agent: browser/1", "Authorization: NTLM abc"] }],
  "who comes after a request with a body": [{ method: "POST", body: "a=b" }, {}],
  "who comes after such credentials": [{ fields: ["User-Agent: browser/1", "Authorization: Negotiate abc"] }, {}],
  "who comes after a demand for credentials": [{ path: "/demands" }, {}],
  "who comes after a client that wanted it closed": [{ fields: ["User-Agent: browser/1", "Connection: close"] }, {}],
  "who comes after an answer in HTTP/1.0": [{ path: "/old" }, {}],
  "who comes when the origin waits no longer": [{ path: "/short" }, {}],
};

for (const [who, [first, second]] of Object.entries(strangers)) {
  test(`${who} gets a connection of its own`, async () => {
    await using origin = await startRawServer(numbered);
    const proxy = await engine();
    assert.equal(textOf(await ask(proxy, origin, first)), "connection 0");
    assert.equal(textOf(await ask(proxy, origin, second)), "connection 1");
  });
}

test("all loopback addresses are one machine; clients of another machine get connections of their own", async () => {
  await using origin = await startRawServer(numbered);
  const proxy = await engine();
  assert.equal(textOf(await ask(proxy, origin)), "connection 0");
  assert.equal(textOf(await ask(proxy, origin, { from: "127.0.0.2" })), "connection 0");
  const destination = { host: "127.0.0.1", port: origin.port, secure: false, serverName: undefined };
  const request = { method: "GET", fields: ["User-Agent", "browser/1"], hasBody: false, upgrade: undefined };
  const take = (clientAddress: string | undefined): unknown =>
    proxy.services.idleOrigins.take(destination, machineOf(clientAddress), request, () => true);
  assert.equal(take("192.0.2.1:5000"), undefined);
  assert.equal(take("[2001:db8::1]:5000"), undefined);
  assert.equal(take(undefined), undefined, "requests of Weir's own");
  assert.notEqual(take("[::1]:5000"), undefined);
});

test("who asks for another name by SNI gets a connection of its own", async () => {
  await using origin = await startRawServer(numbered, { tls });
  const proxy = await engine();
  assert.equal(textOf(await ask(proxy, origin, { servername: "localhost" })), "connection 0");
  assert.equal(textOf(await ask(proxy, origin, { servername: "other.localhost" })), "connection 1");
  assert.equal(textOf(await ask(proxy, origin, { servername: "localhost" })), "connection 0");
});

test("two clients that come together share nothing, and the one that left last is followed first", async () => {
  await using origin = await startRawServer(numbered);
  const proxy = await engine();
  const [one, other] = await Promise.all([
    ask(proxy, origin, { fields: ["User-Agent: a"] }),
    ask(proxy, origin, { fields: ["User-Agent: b"] }),
  ]);
  assert.notEqual(textOf(one), textOf(other));
  assert.equal(textOf(await ask(proxy, origin, { fields: ["User-Agent: a"] })), textOf(one));
  assert.equal(textOf(await ask(proxy, origin, { fields: ["User-Agent: b"] })), textOf(other));
});

test("with upstream_keep_alive_ms 0 each client has connections of its own", async () => {
  await using origin = await startRawServer(numbered);
  const proxy = await engine({ keepAliveMs: 0 });
  await ask(proxy, origin);
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
  assert.equal(textOf(await ask(proxy, origin)), "connection 1");
});

test("an unused connection is closed when its idle time ends", async () => {
  await using origin = await startRawServer(numbered);
  const proxy = await engine({ keepAliveMs: 200 });
  await ask(proxy, origin);
  assert.equal(proxy.services.gauges.upstreamConnections, 1);
  assert.equal(proxy.services.gauges.idleUpstreamConnections, 1);
  await origin.connections[0]?.closed;
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
});

test("what was made by other settings is not used any more, neither idle nor once its client has left", async () => {
  await using origin = await startRawServer(numbered);
  const proxy = await engine();
  await ask(proxy, origin);
  proxy.services.idleOrigins.forget();
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
  const place = `127.0.0.1:${origin.port}`;
  const client = new RawConnection(connect(proxy.port, "127.0.0.1"));
  await client.write(`GET http://${place}/ HTTP/1.1\r\nHost: ${place}\r\nUser-Agent: browser/1\r\n\r\n`);
  assert.equal(textOf(await readResponse(client)), "connection 1");
  proxy.services.idleOrigins.forget();
  client.end();
  await client[Symbol.asyncDispose]();
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
  assert.equal(textOf(await ask(proxy, origin)), "connection 2");
});

test("T18: unsolicited bytes of an origin are no response", async () => {
  await using origin = await startRawServer(numbered);
  const proxy = await engine();
  unsolicitedWanted.push(Promise.withResolvers());
  await ask(proxy, origin, { path: "/then-surplus" });
  assert.equal(proxy.services.gauges.upstreamConnections, 1);
  await unsolicited[0]?.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
  unsolicitedWanted[0]?.resolve();
  assert.equal(textOf(await ask(proxy, origin)), "connection 1");
});

test("a connection that its origin closes is left alone, and one that closes under a request is replaced", async () => {
  // The first connection ends while it is idle; the second takes the next request and hangs up without a word.
  await using origin = await startRawServer(async (connection, index) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write(`HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nconnection ${index}`);
    if (index === 1) await connection.readUntil("\r\n\r\n");
    connection.destroy();
  });
  const proxy = await engine();
  assert.equal(textOf(await ask(proxy, origin)), "connection 0");
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
  assert.equal(textOf(await ask(proxy, origin)), "connection 1");
  assert.equal(textOf(await ask(proxy, origin)), "connection 2");
  assert.equal(proxy.finished.at(-1)?.state.step, "completed");
});

test("a client that goes away in the middle of its response leaves no connection behind", async () => {
  await using origin = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    await connection.readSome(60_000).catch(() => undefined);
  });
  const proxy = await engine();
  const client = new RawConnection(connect(proxy.port, "127.0.0.1"));
  await client.write(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await client.readUntil("half");
  client.socket.resetAndDestroy();
  await origin.connections[0]?.closed;
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
});

test("at most 64 connections wait; the one that waits longest makes room", async () => {
  await using origin = await startRawServer(numbered);
  const proxy = await engine();
  for (let at = 0; at <= 64; at += 1) await ask(proxy, origin, { fields: [`User-Agent: program ${at}`] });
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 64);
  assert.equal(textOf(await ask(proxy, origin, { fields: ["User-Agent: program 1"] })), "connection 1");
  assert.equal(textOf(await ask(proxy, origin, { fields: ["User-Agent: program 0"] })), "connection 65");
});

test("closing connections are bounded and are not reused", () => {
  const deadlines = new DeadlineSweep();
  const gauges = newGauges();
  const idle = new IdleOrigins({ deadlines, gauges, keepMs: () => 60_000 });
  const destination = { host: "shop.example", port: 80, secure: false, serverName: undefined };
  const request = { method: "GET", fields: ["User-Agent", "browser/1"], hasBody: false, upgrade: undefined };
  const destroyed: number[] = [];
  for (let at = 0; at < 200; at += 1) {
    const history = new ConnectionHistory(0);
    history.requestSent(request);
    // It never says that it is gone.
    idle.keep({ destination, history, mayRest: true, rest: () => undefined, destroy: () => destroyed.push(at) }, "one");
  }
  assert.equal(gauges.upstreamConnections, 64);
  assert.deepEqual(
    destroyed,
    Array.from({ length: 136 }, (_, at) => at),
  );
  idle.forget();
  assert.equal(destroyed.length, 200);
  assert.equal(
    idle.take(destination, "one", request, () => true),
    undefined,
  );
  assert.equal(gauges.upstreamConnections, 0);
  deadlines.stop();
});

test("a stop closes what waits", async () => {
  await using origin = await startRawServer(numbered);
  const proxy = await startEngine({ keepAliveMs: 60_000 });
  await ask(proxy, origin);
  await proxy.stop();
  await origin.connections[0]?.closed;
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
});

for (const isTunnelled of [false, true]) {
  const how = isTunnelled ? "in tunnels" : "without a tunnel";
  test(`what waits holds on to nothing of the heads that it carried, ${how}`, async () => {
    await using origin = await startRawServer(numbered);
    const proxy = await engine();
    // Long enough to be a piece of its head and no copy.
    const host = "[::ffff:127.0.0.1]";
    const filling = `X-Filling: ${"x".repeat(50_000)}`;
    const askAll = async (names: string): Promise<void> => {
      for (let at = 0; at < 30; at += 1) {
        const fields = [`User-Agent: a program nobody knows ${names} ${at}`, filling];
        await ask(proxy, origin, { host, fields, ...(isTunnelled ? { connectFields: [filling] } : {}) });
      }
      proxy.finished.splice(0);
    };
    await askAll("warming up");
    const grownBytes = await heapGrowthBytes(async () => await askAll("counted"));
    assert.equal(proxy.services.gauges.upstreamConnections, 60);
    const each = grownBytes / 30;
    assert.ok(each < 35_000, `${Math.round(each)} bytes for each connection, after heads of 50000`);
  });
}
