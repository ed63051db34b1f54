import assert from "node:assert/strict";
import { once } from "node:events";
import { after, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { proxyClient, rawClient, startOrigin, startRawServer, waitUntil } from "@headworks/testkit";
import type { RawConnection } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import type { Interceptor } from "#exchange/phases.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine, EngineOptions } from "./engine-harness.ts";

// Faults that real clients and hostile peers have shown, each kept from coming back.

const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

const originCa = CertificateAuthority.create({ commonName: "Origins" });

async function engine(options: EngineOptions = {}): Promise<Engine> {
  const started = await startEngine({ upstreamRoots: originCa.certificatePem, ...options });
  cleanups.push(() => started.stop());
  return started;
}

const codeOf = (error: NodeJS.ErrnoException | undefined): string | undefined => error?.code;

test("an entry names the origin's certificate on a resumed TLS session too", async () => {
  const origin = await startOrigin({ tls: { authority: originCa } });
  cleanups.push(() => origin.close());
  const proxy = await engine();
  const client = proxyClient(proxy.port, { ca: proxy.ca.certificatePem });
  for (let round = 0; round < 3; round += 1) await client.fetch(`https://localhost:${origin.port}/${round}`);
  const exchanges = await proxy.waitFor(3);
  assert.equal(origin.connectionCount, 3);
  for (const { upstreamTls } of exchanges) {
    assert.equal(upstreamTls?.verified, true);
    assert.match(upstreamTls?.issuer ?? "", /CN=Origins/);
    assert.match(upstreamTls?.subject ?? "", /CN=localhost/);
    assert.ok((upstreamTls?.validToMs ?? 0) > Date.now());
  }
});

test("a client that resets the connection right after TLS counts as one that refused the certificate", async () => {
  const proxy = await engine();
  const client = proxyClient(proxy.port);
  const { connection } = await client.tunnel("localhost:443");
  const socket = connection.detach();
  const secure = connectTls({ socket, servername: "localhost", rejectUnauthorized: false });
  await once(secure, "secureConnect");
  socket.resetAndDestroy();
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.request.method, "CONNECT");
  assert.equal(exchange?.state.step === "failed" && exchange.state.failure.code, "CLIENT_CERTIFICATE_REFUSED");
  assert.equal(proxy.finished.length, 1);
});

test("a connection that a trusting client leaves unused is no refusal of the certificate, but for another host it is", async () => {
  const origin = await startOrigin({ tls: { authority: originCa } });
  cleanups.push(() => origin.close());
  const proxy = await engine();
  const browser = proxyClient(proxy.port, { ca: proxy.ca.certificatePem, proxyHeaders: [["User-Agent", "browser"]] });
  const used = await browser.secureTunnel("localhost", origin.port);
  const unused = await browser.secureTunnel("localhost", origin.port);
  await used.write(`HEAD / HTTP/1.1\r\nHost: localhost:${origin.port}\r\n\r\n`);
  await used.readUntil("\r\n\r\n");
  unused.end();
  await once(unused.socket, "close");
  (await browser.secureTunnel("pinned.test", origin.port)).end();
  const outcomes = (await proxy.waitFor(2)).map(({ request, state }) => [request.host, state.step]);
  assert.deepEqual(outcomes, [
    ["localhost", "completed"],
    ["pinned.test", "failed"],
  ]);
});

test("messages about a place at an IPv6 address name it in brackets", async () => {
  const origin = await startRawServer(async (connection) => void (await connection.readUntil("\r\n\r\n")), {
    host: "::1",
  });
  cleanups.push(() => origin.close());
  const proxy = await engine({ host: "::1" });
  const client = proxyClient(proxy.port, { host: "::1" });
  for (const port of [origin.port, proxy.port]) await client.fetch(`http://[::1]:${port}/`);
  assert.deepEqual(
    (await proxy.waitFor(2)).map(({ state }) => state.step === "failed" && state.failure.message),
    [
      `[::1]:${origin.port} closed the connection without a response`,
      `[::1]:${proxy.port} is this proxy itself ([::1]:${proxy.port}); the request would loop forever`,
    ],
  );
});

test("an answer without framing that breaks off is a reset for the client, never a regular end", async () => {
  const origin = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write("HTTP/1.1 200 OK\r\n\r\npart");
    await told.promise;
    connection.reset();
  });
  cleanups.push(() => origin.close());
  const told = Promise.withResolvers<void>();
  const proxy = await engine();
  const client = await rawClient(proxy.port);
  await client.write(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await client.readUntil("part");
  told.resolve();
  assert.equal(codeOf(await client.closed), "ECONNRESET");
});

test("a tunnel whose origin resets it is reset for the client too", async () => {
  const told = Promise.withResolvers<void>();
  const origin = await startRawServer(async (connection) => {
    await connection.write("220 ready\r\n");
    await told.promise;
    connection.reset();
  });
  cleanups.push(() => origin.close());
  const proxy = await engine();
  const { connection } = await proxyClient(proxy.port).tunnel(`127.0.0.1:${origin.port}`);
  await connection.readUntil("220 ready");
  told.resolve();
  assert.equal(codeOf(await connection.closed), "ECONNRESET");
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.state.step === "failed" && exchange.state.failure.code, "UPSTREAM_RESET");
});

test("a handshake outlives the eviction of its certificate", async () => {
  for (const maxVersion of ["TLSv1.2", "TLSv1.3"] as const) {
    const proxy = await engine();
    const { connection } = await proxyClient(proxy.port).tunnel("weir:443");
    const socket = connection.detach();
    const secure = connectTls({ socket, servername: "evicted.example", ca: proxy.ca.certificatePem, maxVersion });
    while (proxy.services.gauges.tlsHandshakesTotal === 0) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(secure.getProtocol() === null || !secure.authorized, true, "the handshake is not over yet");
    for (let index = 0; index < 1100; index += 1) proxy.services.leafContexts.get(`h${index}.example`);
    assert.equal(proxy.services.leafContexts.size, 1000);
    await once(secure, "secureConnect");
    secure.write("GET / HTTP/1.1\r\nHost: weir\r\n\r\n");
    const [response] = (await once(secure, "data")) as [Buffer];
    assert.match(response.toString(), /own page/);
    secure.destroy();
    socket.destroy();
  }
});

test("a client that keeps its side open behind a refused CONNECT is let go of in time", async () => {
  const rules: Interceptor = {
    name: "blocklist",
    onTarget: () => ({ kind: "respond", response: { status: 403, fields: [], body: Buffer.from("no") } }),
  };
  const proxy = await engine({ policy: { interceptsTls: false }, interceptors: [rules] });
  const open = await engine({ policy: { interceptsTls: false } });
  const gone = await startOrigin();
  await gone.close();
  const clients: RawConnection[] = [];
  for (const [{ port }, target, status] of [
    [proxy, "no-port.example", 400],
    [proxy, "blocked.example:443", 403],
    [open, `127.0.0.1:${gone.port}`, 502],
  ] as const) {
    const { response, connection } = await proxyClient(port).tunnel(target);
    assert.equal(response.status, status);
    clients.push(connection);
  }
  for (const { services } of [proxy, open]) {
    await waitUntil(() => services.gauges.activeConnections === 0, {
      timeoutMs: 5000,
      what: "the end of the connections",
    });
  }
  for (const client of clients) client.destroy();
});

test("a client that takes no answers is asked for no more requests, and gets all of them once it reads", async () => {
  // So small that each comes in one piece: a larger one is held back by itself.
  const body = Buffer.alloc(8000, "x");
  const origin = await startOrigin({ handler: (_request, response) => void response.end(body) });
  cleanups.push(() => origin.close());
  const proxy = await engine();
  const client = await rawClient(proxy.port);
  client.socket.pause();
  const requests = 5000;
  await client.write(`GET ${origin.url}/ HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(requests));
  // The buffers of the system take some answers. That no more is asked for shows only in time that passes.
  let seen = -1;
  for (let stillFor = 0; stillFor < 3; stillFor = origin.requests.length === seen ? stillFor + 1 : 0) {
    seen = origin.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  assert.ok(seen < requests / 2, `${seen} of ${requests} requests went on`);
  let receivedBytes = 0;
  client.socket.on("data", (piece: Buffer) => {
    receivedBytes += piece.length;
  });
  client.socket.resume();
  await waitUntil(() => receivedBytes > requests * body.length, { what: "all answers", timeoutMs: 60_000 });
  client.destroy();
});

async function failureOf(proxy: Engine): Promise<string | undefined> {
  const [exchange] = await proxy.waitFor(1);
  return exchange?.state.step === "failed" ? exchange.state.failure.code : undefined;
}

test("an answer whose head cannot be written is a page that says so", async () => {
  const origin = await startOrigin();
  cleanups.push(() => origin.close());
  const rules: Interceptor = {
    name: "rewrites",
    onResponseHead: (exchange) => {
      exchange.changeResponse()?.fields.push("X-Broken", "a\r\nb");
      return { kind: "continue" };
    },
  };
  const proxy = await engine({ interceptors: [rules] });
  const { status, body } = await proxyClient(proxy.port).fetch(`http://127.0.0.1:${origin.port}/`);
  assert.equal(status, 502);
  assert.match(body.toString(), /a field that cannot be forwarded/);
  assert.equal(await failureOf(proxy), "UPSTREAM_PROTOCOL");
});

test("a defect behind a verdict that took its time ends the exchange, not the process", async () => {
  const later = async (): Promise<never> => ({ kind: "respond", response: undefined }) as never;
  const cases: readonly Interceptor[] = [
    { name: "mocks", onRequestHead: later },
    { name: "rewrites", onResponseHead: later },
  ];
  const origin = await startOrigin();
  cleanups.push(() => origin.close());
  for (const rules of cases) {
    const proxy = await engine({ interceptors: [rules] });
    const { status } = await proxyClient(proxy.port).fetch(`http://127.0.0.1:${origin.port}/`);
    assert.equal(status, 500, rules.name);
    assert.equal(await failureOf(proxy), "INTERNAL", rules.name);
  }
  const proxy = await engine({
    interceptors: [{ name: "blocklist", onTarget: later }],
    policy: { interceptsTls: false },
  });
  const client = await rawClient(proxy.port);
  await client.write(`CONNECT 127.0.0.1:${origin.port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.equal((await client.collect()).length, 0);
  client.destroy();
});

test("an internal error at the end of a response ends the exchange", async () => {
  const origin = await startOrigin({ handler: (_request, response) => void response.end("body") });
  cleanups.push(() => origin.close());
  const rules: Interceptor = {
    name: "capture",
    onRequestHead: (exchange) => {
      const onResponseEnd = (): never => {
        throw new Error("a defect");
      };
      Object.assign(exchange, { onResponseEnd });
      return { kind: "continue" };
    },
  };
  const proxy = await engine({ interceptors: [rules] });
  const client = await rawClient(proxy.port);
  await client.write(`GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  assert.equal(await failureOf(proxy), "INTERNAL");
  await client.collect();
  client.destroy();
});

test("a CONNECT behind another request is answered behind it", async () => {
  const origin = await startOrigin({ handler: (_request, response) => void response.end("first") });
  cleanups.push(() => origin.close());
  const host = `127.0.0.1:${origin.port}`;
  for (const before of [`http://${host}/`, "http://weir/"]) {
    const proxy = await engine();
    const client = await rawClient(proxy.port);
    await client.write(`GET ${before} HTTP/1.1\r\nHost: x\r\n\r\nCONNECT ${host} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const text = (await client.readUntil("Connection established\r\n\r\n")).toString();
    assert.match(
      text,
      /^HTTP\/1\.1 200 OK\r\n[^]*(?:first|own page \/)HTTP\/1\.1 200 Connection established\r\n\r\n$/,
      before,
    );
    client.destroy();
  }
});

test("a client is not blamed for the silence of an origin that it waits for", async () => {
  const held = new Set<RawConnection>();
  const origin = await startRawServer(async (connection) => {
    held.add(connection);
    await connection.readUntil("\r\n\r\n");
    connection.socket.pause();
    await connection.closed;
  });
  cleanups.push(() => origin.close());
  const cases = {
    "an upload that the origin does not read": ["Content-Length: 100000000", Buffer.alloc(20_000_000)],
    "a body that waits for a 100": ["Content-Length: 5\r\nExpect: 100-continue", Buffer.alloc(0)],
  } as const;
  for (const [what, [fields, body]] of Object.entries(cases)) {
    const proxy = await engine({ policy: { idleTimeoutMs: 400 } });
    const client = await rawClient(proxy.port);
    client.socket.write(`PUT http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\n${fields}\r\n\r\n`);
    client.socket.write(body);
    assert.match((await client.readUntil("\r\n\r\n")).toString(), /^HTTP\/1\.1 504 /, what);
    assert.equal(await failureOf(proxy), "UPSTREAM_TIMEOUT", what);
    client.destroy();
  }
  for (const connection of held) connection.destroy();
});
