import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, test } from "node:test";
import { COMMAND, METHOD, REPLY } from "@headworks/socks5";
import { rawClient, startOrigin, startRawServer, waitForEvent, waitUntil } from "@headworks/testkit";
import type { RawConnection } from "@headworks/testkit";
import { SocksClient } from "socks";
import { ProxyListener, serveSocks5 } from "#connection/listener.ts";
import { BodyCapture } from "#exchange/body.ts";
import { BandwidthLimiter } from "#exchange/bandwidth-limiter.ts";
import type { Interceptor } from "#exchange/phases.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine, EngineOptions } from "./engine-harness.ts";
import { startSocksEngine } from "./socks-engine.ts";
import type { SocksEngine } from "./socks-engine.ts";

const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

async function socksEngine(options: EngineOptions = {}, login?: readonly [string, string]): Promise<SocksEngine> {
  const engine = await startSocksEngine(options, login);
  cleanups.push(() => engine.stop());
  return engine;
}

const named = (host: string, port: number, command: number = COMMAND.connect): Buffer =>
  Buffer.concat([
    Buffer.from([5, command, 0, 3, Buffer.byteLength(host)]),
    Buffer.from(host),
    Buffer.from([port >> 8, port & 255]),
  ]);
const ipv4 = (octets: readonly number[], port: number): Buffer =>
  Buffer.from([5, 1, 0, 1, ...octets, port >> 8, port & 255]);

/** Greets without credentials and asks; gives the connection and the reply code. */
async function ask(port: number, request: Buffer): Promise<{ client: RawConnection; code: number }> {
  const client = await rawClient(port);
  cleanups.push(() => client.destroy());
  await client.write(Buffer.concat([Buffer.from([5, 1, METHOD.none]), request]));
  assert.deepEqual([...(await client.read(2))], [5, 0]);
  const reply = await client.read(10);
  return { client, code: reply[1] ?? -1 };
}

async function bodyOf(engine: Engine, count = 1): Promise<string> {
  const exchange = (await engine.waitFor(count)).at(-1);
  const content = exchange?.responseBody;
  assert.ok(content instanceof BodyCapture);
  return Buffer.concat(content.pieces).toString("utf8");
}

/** A port without a listener. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await waitForEvent(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await waitForEvent(server, "close");
  return port;
}

test("bytes go both ways untouched, and the entry says SOCKS5, the place and the counts, and nothing else", async () => {
  const origin = await startRawServer(async (connection) => {
    await connection.readUntil("ping");
    await connection.write("pong");
  });
  cleanups.push(() => origin.close());
  const engine = await socksEngine();
  const { client, code } = await ask(engine.socksPort, ipv4([127, 0, 0, 1], origin.port));
  assert.equal(code, REPLY.succeeded);
  await client.write("ping");
  assert.equal((await client.collect()).toString(), "pong");
  client.end();
  const [exchange] = await engine.waitFor(1);
  assert.ok(exchange);
  assert.deepEqual(
    {
      method: exchange.request.method,
      scheme: exchange.request.scheme,
      host: exchange.request.host,
      port: exchange.request.port,
      path: exchange.request.path,
      version: exchange.request.version,
      fields: exchange.request.fields,
      status: exchange.response?.status,
      responseVersion: exchange.response?.version,
      responseFields: exchange.response?.fields,
      passthrough: exchange.passthrough,
      sent: exchange.requestBody.sizeBytes,
      received: exchange.responseBody.sizeBytes,
      state: exchange.state.step,
      server: exchange.serverAddress,
    },
    {
      method: "CONNECT",
      scheme: "tcp",
      host: "127.0.0.1",
      port: origin.port,
      path: "/",
      version: "SOCKS5",
      fields: [],
      status: 200,
      responseVersion: "SOCKS5",
      responseFields: [],
      passthrough: true,
      sent: 4,
      received: 4,
      state: "completed",
      server: `127.0.0.1:${origin.port}`,
    },
  );
});

test("a name, an address written as a name, and IPv6 reach their origin; the reply has our own end of the way", async () => {
  const origin = await startRawServer("HTTP/1.1 204 No Content\r\n\r\n");
  const origin6 = await startRawServer("HTTP/1.1 204 No Content\r\n\r\n", { host: "::1" });
  cleanups.push(
    () => origin.close(),
    () => origin6.close(),
  );
  const engine = await socksEngine();
  const hosts: readonly [string, number, string][] = [
    ["localhost", origin.port, "localhost"],
    ["LocalHost", origin.port, "localhost"],
    ["127.0.0.1", origin.port, "127.0.0.1"],
    ["::1", origin6.port, "::1"],
  ];
  for (const [index, [host, port, recorded]] of hosts.entries()) {
    const { socket } = await SocksClient.createConnection({
      proxy: { host: "127.0.0.1", port: engine.socksPort, type: 5 },
      command: "connect",
      destination: { host, port },
    });
    socket.write("GET / HTTP/1.1\r\n\r\n");
    socket.resume();
    await waitForEvent(socket, "close");
    const exchange = (await engine.waitFor(index + 1)).at(-1);
    assert.equal(exchange?.request.host, recorded);
    assert.equal(exchange?.response?.status, 200);
  }
  const { client, code } = await ask(engine.socksPort, named("[::1]", origin6.port));
  assert.equal(code, 0);
  await client.write("\r\n\r\n");
  await client.collect();
});

test("the bound address of a reply is our end of the connection to the origin", async () => {
  const origin = await startRawServer(async (connection) => {
    await connection.write(String(connection.socket.remotePort));
  });
  cleanups.push(() => origin.close());
  const engine = await socksEngine();
  const client = await rawClient(engine.socksPort);
  cleanups.push(() => client.destroy());
  await client.write(Buffer.concat([Buffer.from([5, 1, 0]), ipv4([127, 0, 0, 1], origin.port)]));
  await client.read(2);
  const reply = await client.read(10);
  assert.deepEqual([...reply.subarray(0, 8)], [5, 0, 0, 1, 127, 0, 0, 1]);
  assert.equal((await client.collect()).toString(), String(reply.readUInt16BE(8)));
});

test("a tunnel to port 443 is shown as https", async () => {
  const engine = await socksEngine({ interceptors: [blocking("nowhere.test")] });
  await ask(engine.socksPort, named("nowhere.test", 443));
  const [exchange] = await engine.waitFor(1);
  assert.equal(exchange?.request.scheme, "https");
});

const blocking = (host: string): Interceptor => ({
  name: "blocklist",
  onTarget: (target) =>
    target.host === host
      ? { kind: "respond", response: { status: 451, fields: [], body: Buffer.alloc(0) } }
      : { kind: "continue" },
});

test("what goes wrong has its reply code, its status, and an entry that says both", async () => {
  const refusedPort = await freePort();
  const engine = await socksEngine({ interceptors: [blocking("blocked.test")] });
  const cases: readonly [Buffer, number, number, string][] = [
    [named("no-such-name.invalid", 80), REPLY.hostUnreachable, 502, "DNS_NOT_FOUND"],
    [ipv4([127, 0, 0, 1], refusedPort), REPLY.refused, 502, "UPSTREAM_REFUSED"],
    [named("blocked.test", 80), REPLY.notAllowed, 502, "BLOCKED"],
    [ipv4([127, 0, 0, 1], engine.socksPort), REPLY.notAllowed, 502, "LOOP"],
    [named("localhost", engine.port), REPLY.notAllowed, 502, "LOOP"],
    [named("a\0b.test", 80), REPLY.hostUnreachable, 502, "DNS_NOT_FOUND"],
    [named("a b\r\nHost: x", 80), REPLY.hostUnreachable, 502, "DNS_NOT_FOUND"],
    [named("\xff\xfe", 80), REPLY.hostUnreachable, 502, "DNS_NOT_FOUND"],
    [named("name.test:80", 80), REPLY.hostUnreachable, 502, "DNS_NOT_FOUND"],
    [ipv4([127, 0, 0, 1], 0), REPLY.generalFailure, 502, "UPSTREAM_UNREACHABLE"],
    [named("localhost", 0), REPLY.generalFailure, 502, "UPSTREAM_UNREACHABLE"],
  ];
  for (const [index, [request, code, status, failureCode]] of cases.entries()) {
    const response = await ask(engine.socksPort, request);
    assert.equal(response.code, code, `${index} ${failureCode}`);
    assert.equal((await response.client.collect()).length, 0, "the connection ends with the reply");
    response.client.destroy();
    const exchange = (await engine.waitFor(index + 1)).at(-1);
    assert.equal(exchange?.response?.status, status);
    assert.ok(exchange?.state.step === "failed");
    assert.equal(exchange.state.failure.code, failureCode);
    assert.match(exchange.request.host, /^[a-z0-9.%:_-]+$/i);
    const text = await bodyOf(engine, index + 1);
    assert.ok(text.startsWith(`SOCKS5 reply ${code} (`), text);
    assert.ok(text.includes(exchange.state.failure.message), text);
  }
});

test("what does not answer in time is 504 and TTL expired", async () => {
  const silent = await startRawServer(async (connection) => void (await connection.closed));
  cleanups.push(() => silent.close());
  const engine = await socksEngine({
    connectTimeoutMs: 100,
    upstreamProxy: { protocol: "socks5", host: "127.0.0.1", port: silent.port },
  });
  const { code } = await ask(engine.socksPort, named("origin.test", 80));
  assert.equal(code, REPLY.expired);
  const [exchange] = await engine.waitFor(1);
  assert.equal(exchange?.response?.status, 504);
  assert.match(
    await bodyOf(engine),
    /^SOCKS5 reply 6 \(TTL expired\)\nUPSTREAM_PROXY_TIMEOUT: The upstream proxy socks5:/,
  );
});

test("BIND, UDP ASSOCIATE and unknown commands are answered 7, without an entry", async () => {
  const engine = await socksEngine();
  for (const command of [COMMAND.bind, COMMAND.associate, 0, 9, 255]) {
    const { client, code } = await ask(engine.socksPort, named("origin.test", 80, command));
    assert.equal(code, REPLY.commandNotSupported);
    assert.equal((await client.collect()).length, 0);
  }
  assert.deepEqual(engine.finished, []);
});

test("with credentials set, only who gives both right is let in", async () => {
  const origin = await startRawServer(async (connection) => {
    await connection.readUntil("x");
    await connection.write("y");
  });
  cleanups.push(() => origin.close());
  const engine = await socksEngine({}, ["user", "pass:wörd"]);
  const login = (username: string, password: string): Buffer =>
    Buffer.concat([
      Buffer.from([1, Buffer.byteLength(username)]),
      Buffer.from(username),
      Buffer.from([Buffer.byteLength(password)]),
      Buffer.from(password),
    ]);
  const refusals: readonly [Buffer, readonly number[]][] = [
    [Buffer.from([5, 1, METHOD.none]), [5, METHOD.unacceptable]],
    [Buffer.from([5, 2, METHOD.none, 1]), [5, METHOD.unacceptable]],
    [Buffer.concat([Buffer.from([5, 1, 2]), login("user", "pass")]), [5, 2, 1, 1]],
    [Buffer.concat([Buffer.from([5, 1, 2]), login("user", "")]), [5, 2, 1, 1]],
    [Buffer.concat([Buffer.from([5, 1, 2]), login("", "pass:wörd")]), [5, 2, 1, 1]],
    [Buffer.concat([Buffer.from([5, 1, 2]), login("User", "pass:wörd")]), [5, 2, 1, 1]],
    [Buffer.concat([Buffer.from([5, 1, 2]), login("user", "pass:wörd\0")]), [5, 2, 1, 1]],
  ];
  for (const [bytes, response] of refusals) {
    const client = await rawClient(engine.socksPort);
    await client.write(Buffer.concat([bytes, ipv4([127, 0, 0, 1], origin.port)]));
    assert.deepEqual([...(await client.collect())], response, "nothing but the refusal comes, then the end");
    client.destroy();
  }
  assert.equal(origin.connections.length, 0);
  assert.deepEqual(engine.finished, []);
  const client = await rawClient(engine.socksPort);
  await client.write(
    Buffer.concat([Buffer.from([5, 2, 0, 2]), login("user", "pass:wörd"), ipv4([127, 0, 0, 1], origin.port)]),
  );
  assert.deepEqual([...(await client.read(4))], [5, 2, 1, 0]);
  assert.equal((await client.read(10))[1], 0);
  await client.write("x");
  assert.equal((await client.collect()).toString(), "y");
  client.destroy();
});

test("what is not SOCKS5 is hung up on, without an entry", async () => {
  const engine = await socksEngine();
  const hostile: readonly (string | Buffer)[] = [
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "\x04\x01\x00\x50\x7f\x00\x00\x01\x00",
    "\x16\x03\x01\x02\x00\x01\x00",
    "\x05\x00",
    "\x05\x01\x00\x05\x01\x00\x02",
    "\x05\x01\x00\x05\x01\xff\x01",
    "\x05\x01\x00\x05\x01\x00\x03\x00\x00\x50",
    Buffer.alloc(100_000),
  ];
  for (const bytes of hostile) {
    const client = await rawClient(engine.socksPort);
    await client.write(bytes).catch(() => undefined);
    const response = await client.collect();
    assert.ok(response.length <= 12, response.toString("hex"));
    client.destroy();
  }
  assert.deepEqual(engine.finished, []);
});

test("a client that does not finish its handshake in time is hung up on", async () => {
  const engine = await socksEngine({ policy: { headTimeoutMs: 100 } });
  const client = await rawClient(engine.socksPort);
  await client.write("\x05\x01\x00\x05\x01");
  assert.deepEqual([...(await client.collect())], [5, 0]);
  client.destroy();
});

test("when as many clients are there as may be, others are turned away until one has gone", async () => {
  const engine = await startEngine();
  const listener = new ProxyListener(engine.services, serveSocks5(undefined), 2);
  const { port } = await listener.listen(0, "127.0.0.1");
  cleanups.push(async () => {
    await listener.close(0);
    await engine.stop();
  });
  const connectionPreface = async (): Promise<RawConnection> => {
    const client = await rawClient(port);
    cleanups.push(() => client.destroy());
    await client.write("\x05\x01\x00").catch(() => undefined);
    return client;
  };
  const first = await connectionPreface();
  await first.read(2);
  await (await connectionPreface()).read(2);
  assert.equal((await (await connectionPreface()).collect()).length, 0);
  first.destroy();
  await waitUntil(() => engine.services.gauges.activeConnections < 2, { what: "the first client gone" });
  assert.equal((await (await connectionPreface()).read(2)).length, 2);
});

test("a client that is not allowed is hung up on before a byte is read", async () => {
  const engine = await socksEngine({ policy: { allowsClient: () => false } });
  const client = await rawClient(engine.socksPort);
  assert.equal((await client.collect()).length, 0);
  client.destroy();
});

test("bytes sent ahead of the reply reach the origin, and half-closes are carried over", async () => {
  const origin = await startRawServer(async (connection) => {
    const all = await connection.collect();
    await connection.write(`${all.length}`);
  });
  cleanups.push(() => origin.close());
  const engine = await socksEngine();
  const client = await rawClient(engine.socksPort);
  cleanups.push(() => client.destroy());
  await client.write(
    Buffer.concat([Buffer.from([5, 1, 0]), ipv4([127, 0, 0, 1], origin.port), Buffer.alloc(300_000, 1)]),
  );
  client.end();
  await client.read(12);
  assert.equal((await client.collect()).toString(), "300000");
  const [exchange] = await engine.waitFor(1);
  assert.equal(exchange?.requestBody.sizeBytes, 300_000);
});

test("a client that leaves while its origin is dialled costs an entry that says so, and no connection", async () => {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const engine = await socksEngine({
    interceptors: [{ name: "throttle", onTarget: () => promise.then(() => ({ kind: "continue" })) }],
  });
  const client = await rawClient(engine.socksPort);
  await client.write(Buffer.concat([Buffer.from([5, 1, 0]), named("localhost", 1)]));
  await client.read(2);
  client.reset();
  await client.closed;
  resolve(undefined);
  const second = await rawClient(engine.socksPort);
  await second.write("\x05\x01\x00");
  assert.equal((await second.read(2)).length, 2, "others are served");
  second.destroy();
});

test("a tunnel goes over the line that a slice gives it", async () => {
  const origin = await startOrigin();
  cleanups.push(() => origin.close());
  const clock = { monotonic: () => performance.now(), after: () => () => undefined };
  const pace = { up: new BandwidthLimiter(clock), down: new BandwidthLimiter(clock) };
  const engine = await socksEngine({
    interceptors: [
      {
        name: "throttle",
        onTarget: (target) => {
          target.pace = pace;
          return { kind: "continue" };
        },
      },
    ],
  });
  const { client, code } = await ask(engine.socksPort, ipv4([127, 0, 0, 1], origin.port));
  assert.equal(code, 0);
  await client.write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const response = await client.collect();
  assert.equal(pace.down.carriedBytes, response.length);
  assert.ok(pace.up.carriedBytes > 30);
});

test("stopping ends tunnels after the time they get, and their entries say why", async () => {
  const origin = await startRawServer(async (connection) => void (await connection.closed));
  cleanups.push(() => origin.close());
  const engine = await startEngine();
  const listener = new ProxyListener(engine.services, serveSocks5(undefined));
  const { port } = await listener.listen(0, "127.0.0.1");
  const { client } = await ask(port, ipv4([127, 0, 0, 1], origin.port));
  await listener.close(10);
  await client.closed;
  const [exchange] = await engine.waitFor(1);
  assert.ok(exchange?.state.step === "failed");
  assert.equal(exchange.state.failure.code, "SHUTDOWN");
  await engine.stop();
});
