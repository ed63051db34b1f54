import assert from "node:assert/strict";
import { createServer } from "node:net";
import { after, test } from "node:test";
import { proxyClient, rawClient, startOrigin, startRawServer, waitForEvent, credentials } from "@headworks/testkit";
import type { Origin, RawServer } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { InternalClient } from "#connection/internal-client.ts";
import { stageTimings } from "#exchange/exchange.ts";
import type { ExchangeView } from "#exchange/exchange.ts";
import type { ProxyAddress } from "#upstream/proxy-failure.ts";
import type { ProxyChoices } from "#upstream/proxy-route.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine, EngineOptions } from "./engine-harness.ts";
import { startHttpProxy, startSocksProxy } from "./proxy-peer.ts";

const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

const originCa = CertificateAuthority.create({ commonName: "Origins" });

async function kept<T extends AsyncDisposable>(starting: Promise<T>): Promise<T> {
  const thing = await starting;
  cleanups.push(() => thing[Symbol.asyncDispose]());
  return thing;
}

async function engineBy(
  proxy: Pick<ProxyAddress, "protocol" | "port"> & Partial<ProxyChoices> & { host?: string },
  options: EngineOptions = {},
): Promise<Engine> {
  const engine = await startEngine({
    upstreamRoots: originCa.certificatePem,
    ...options,
    upstreamProxy: { host: "127.0.0.1", ...proxy },
  });
  cleanups.push(() => engine.stop());
  return engine;
}

const plainOrigin = (): Promise<Origin> => kept(startOrigin({ handler: (_, response) => response.end("plain") }));
const secureOrigin = (): Promise<Origin> =>
  kept(startOrigin({ tls: { authority: originCa }, handler: (_, response) => response.end("secure") }));

/** Names of tests stand for this machine, which only the proxies know. */
const toThisMachine = (port: number) => (): { host: string; port: number } => ({ host: "127.0.0.1", port });

const failureOf = (exchange: ExchangeView | undefined): string =>
  exchange?.state.step === "failed" ? exchange.state.failure.code : "none";

function client(engine: Engine): ReturnType<typeof proxyClient> {
  return proxyClient(engine.port, { ca: [engine.ca.certificatePem, originCa.certificatePem] });
}

test("an http proxy gets plain requests in absolute form with its credentials, and the origin never sees them", async () => {
  const origin = await plainOrigin();
  const proxy = await kept(startHttpProxy({ resolve: toThisMachine(origin.port) }));
  const engine = await engineBy({
    protocol: "http",
    port: proxy.port,
    credentials: { username: "Aladdin", password: "open sésame" },
  });
  const response = await client(engine).fetch({
    url: "http://origin.test/path?q=1",
    headers: [["Proxy-Authorization", "Basic c2VjcmV0OmZvciB3ZWly"]],
  });
  assert.equal(response.body.toString(), "plain");
  const [head = ""] = proxy.asked;
  assert.ok(head.startsWith("GET http://origin.test/path?q=1 HTTP/1.1\r\n"), head);
  const expected = Buffer.from("Aladdin:open sésame").toString("base64");
  assert.deepEqual(head.match(/^Proxy-Authorization:.*$/gim), [`Proxy-Authorization: Basic ${expected}`]);
  const [exchange] = await engine.waitFor(1);
  assert.ok(exchange);
  assert.equal(exchange.request.path, "/path?q=1");
  assert.ok(!exchange.request.fields.some((text) => text.includes(expected)), "credentials stand on no entry");
  assert.equal(exchange.serverAddress, `127.0.0.1:${proxy.port}`);
});

test("the absolute form names ports that are not the usual ones, IPv6 in brackets, and OPTIONS about the server", async () => {
  const proxy = await kept(startHttpProxy({ response: () => "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n" }));
  const engine = await engineBy({ protocol: "http", port: proxy.port });
  for (const [sent, told] of [
    ["GET http://origin.test:8080/", "GET http://origin.test:8080/ HTTP/1.1"],
    ["GET http://[2001:DB8::1]/a", "GET http://[2001:db8::1]/a HTTP/1.1"],
    ["OPTIONS http://origin.test", "OPTIONS http://origin.test HTTP/1.1"],
    ["GET http://origin.test:80?a", "GET http://origin.test/?a HTTP/1.1"],
  ] as const) {
    await using connection = await rawClient(engine.port);
    await connection.write(`${sent} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    await connection.collect();
    assert.equal(proxy.asked.at(-1)?.split("\r\n")[0], told);
  }
});

for (const protocol of ["http", "socks5"] as const) {
  const startProxy = protocol === "http" ? startHttpProxy : startSocksProxy;

  test(`HTTPS is intercepted by way of ${protocol}: the name is the proxy's to resolve, TLS is verified, timings are true`, async () => {
    const origin = await secureOrigin();
    const proxy = await kept(startProxy({ resolve: toThisMachine(origin.port) }));
    const engine = await engineBy({ protocol, port: proxy.port });
    // The certificate is for localhost, so that is the name; the port has no listener.
    const response = await client(engine).fetch("https://localhost:1/");
    assert.equal(response.body.toString(), "secure");
    assert.match(proxy.asked[0] ?? "", protocol === "http" ? /^CONNECT localhost:1 HTTP\/1.1\r\n/ : /^localhost:1$/);
    const [exchange] = await engine.waitFor(1);
    assert.equal(exchange?.upstreamTls?.verified, true);
    assert.equal(exchange.serverAddress, `127.0.0.1:${proxy.port}`);
    const { connectStarted, tunnelStarted, tlsStarted, upstreamReady } = exchange.moments;
    assert.ok(connectStarted <= tunnelStarted && tunnelStarted <= tlsStarted && tlsStarted <= upstreamReady);
    const { dns, connect, tls } = stageTimings(exchange.moments);
    assert.ok(dns === null && connect !== null && tls !== null);
  });

  test(`tunnels and upgrades go by way of ${protocol}, bytes that come with the answer included`, async () => {
    const origin = await kept(
      startRawServer(async (connection) => {
        await connection.write("hello\n");
        const line = (await connection.readUntil("\n")).toString();
        await connection.write(`you said ${line}`);
      }),
    );
    const proxy = await kept(startProxy({ resolve: toThisMachine(origin.port) }));
    const engine = await engineBy({ protocol, port: proxy.port }, { policy: { interceptsTls: false } });
    const { response, connection } = await client(engine).tunnel("mail.test:25");
    assert.equal(response.status, 200);
    assert.equal((await connection.readUntil("\n")).toString(), "hello\n");
    await connection.write("ehlo\n");
    assert.equal((await connection.collect()).toString(), "you said ehlo\n");
    connection.destroy();
  });

  test(`a WebSocket goes through a tunnel of ${protocol}`, async () => {
    const origin = await kept(
      startRawServer(async (connection) => {
        await connection.readUntil("\r\n\r\n");
        await connection.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x-echo\r\n\r\n");
        await connection.write(await connection.readSome());
      }),
    );
    const proxy = await kept(startProxy({ resolve: toThisMachine(origin.port) }));
    const engine = await engineBy({ protocol, port: proxy.port });
    await using connection = await rawClient(engine.port);
    await connection.write(
      "GET http://ws.test/ HTTP/1.1\r\nHost: ws.test\r\nConnection: upgrade\r\nUpgrade: x-echo\r\n\r\n",
    );
    assert.match((await connection.readUntil("\r\n\r\n")).toString(), /^HTTP\/1.1 101 /);
    await connection.write("echo");
    assert.equal((await connection.read(4)).toString(), "echo");
    assert.match(proxy.asked[0] ?? "", protocol === "http" ? /^CONNECT ws.test:80 / : /^ws.test:80$/);
  });

  test(`an origin behind ${protocol} with a bad certificate is the origin's failure, not the proxy's`, async () => {
    const origin = await kept(startOrigin({ tls: true }));
    const proxy = await kept(startProxy({ resolve: toThisMachine(origin.port) }));
    const engine = await engineBy({ protocol, port: proxy.port });
    const response = await client(engine).fetch("https://localhost:1/");
    assert.equal(response.status, 502);
    const exchange = (await engine.waitFor(1)).at(-1);
    assert.ok(exchange?.state.step === "failed");
    assert.equal(exchange.state.failure.code, "UPSTREAM_CERTIFICATE");
    assert.equal(exchange.state.failure.stage, "tls");
  });
}

test("socks5 carries plain HTTP too, with a user name and password where they are asked for", async () => {
  const origin = await plainOrigin();
  const accepts = ({ username, password }: { username: Uint8Array; password: Uint8Array }): boolean =>
    Buffer.from(username).toString() === "user" && Buffer.from(password).toString() === "pässword";
  const proxy = await kept(startSocksProxy({ accepts, resolve: toThisMachine(origin.port) }));
  const engine = await engineBy({
    protocol: "socks5",
    port: proxy.port,
    credentials: { username: "user", password: "pässword" },
  });
  assert.equal((await client(engine).fetch("http://origin.test/")).body.toString(), "plain");
  assert.deepEqual(proxy.asked, ["origin.test:80"]);
  assert.equal(origin.requests[0]?.url, "/");
});

test("requests that Weir sends itself, as replays are, go by way of the proxy like all others", async () => {
  const origin = await plainOrigin();
  const proxy = await kept(startHttpProxy({ resolve: toThisMachine(origin.port) }));
  const sender: InternalClient = new InternalClient(() => engine.services);
  const engine: Engine = await engineBy({ protocol: "http", port: proxy.port }, { observers: [sender] });
  cleanups.push(() => sender.close());
  const outcome = await sender.send({
    method: "GET",
    scheme: "http",
    host: "origin.test",
    port: 80,
    path: "/replayed",
    fields: [],
    body: undefined,
  });
  assert.equal(outcome.kind, "responded");
  assert.ok(proxy.asked[0]?.startsWith("GET http://origin.test/replayed HTTP/1.1\r\n"), proxy.asked[0]);
});

test("an https proxy gets plain requests over TLS, and everything that needs a tunnel is refused, never sent directly", async () => {
  const origin = await plainOrigin();
  const secure = await secureOrigin();
  const { key, cert } = credentials(originCa);
  const proxy = await kept(startHttpProxy({ tls: { key, cert }, resolve: toThisMachine(origin.port) }));
  const engine = await engineBy({ protocol: "https", port: proxy.port });
  assert.equal((await client(engine).fetch("http://origin.test/a")).body.toString(), "plain");
  assert.ok(proxy.asked[0]?.startsWith("GET http://origin.test/a HTTP/1.1\r\n"));
  const intercepted = await client(engine).fetch(`https://localhost:${secure.port}/`);
  assert.equal(intercepted.status, 502);
  assert.match(intercepted.body.toString(), /UPSTREAM_PROXY_CANNOT_TUNNEL/);
  await using upgrade = await rawClient(engine.port);
  await upgrade.write(
    `GET http://127.0.0.1:${origin.port}/ HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n`,
  );
  assert.match((await upgrade.readUntil("\r\n\r\n")).toString(), /^HTTP\/1.1 502 /);
  const exchanges = await engine.waitFor(3);
  assert.deepEqual(exchanges.slice(1).map(failureOf), ["UPSTREAM_PROXY_CANNOT_TUNNEL", "UPSTREAM_PROXY_CANNOT_TUNNEL"]);
  const tunnels = await engineBy({ protocol: "https", port: proxy.port }, { policy: { interceptsTls: false } });
  const { response, connection } = await client(tunnels).tunnel(`localhost:${secure.port}`);
  assert.equal(response.status, 502);
  connection.destroy();
  assert.equal(failureOf((await tunnels.waitFor(1))[0]), "UPSTREAM_PROXY_CANNOT_TUNNEL");
  assert.equal(secure.connectionCount, 0);
  assert.equal(origin.requests.length, 1);
});

test("an https proxy must prove its name", async () => {
  const { key, cert } = credentials(CertificateAuthority.create());
  const proxy = await kept(startHttpProxy({ tls: { key, cert } }));
  const engine = await engineBy({ protocol: "https", port: proxy.port });
  assert.equal((await client(engine).fetch("http://origin.test/")).status, 502);
  const [exchange] = await engine.waitFor(1);
  assert.equal(failureOf(exchange), "UPSTREAM_PROXY_TLS");
  assert.deepEqual(proxy.asked, []);
});

test("hosts on the bypass list are reached directly, in every spelling, and what the list says applies at once", async () => {
  const origin = await plainOrigin();
  const proxy = await kept(startHttpProxy({ response: () => "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n" }));
  const engine = await engineBy({ protocol: "http", port: proxy.port });
  const isDirect = async (host: string): Promise<boolean> =>
    (await client(engine).fetch(`http://${host}:${origin.port}/`)).status === 200;
  assert.equal(await isDirect("localhost"), false, "an empty list bypasses nothing");
  for (const [entry, host] of [
    ["localhost", "LOCALHOST"],
    ["LocalHost", "localhost"],
    ["localhost.", "localhost"],
    [".localhost", "localhost"],
    ["*.localhost", "localhost"],
    ["127.0.0.1", "127.0.0.1"],
    ["127.0.0.0/8", "127.0.0.1"],
  ] as const) {
    engine.routes.update({ credentials: undefined, bypass: ["example.com", entry] });
    assert.equal(await isDirect(host), true, `${entry} ${host}`);
    engine.routes.update({ credentials: undefined, bypass: ["example.com", "10.0.0.0/8", "fd00::/8", "host"] });
    assert.equal(await isDirect(host), false, `${entry} is gone`);
  }
});

test("new credentials apply to the next connection", async () => {
  const proxy = await kept(startHttpProxy({ response: () => "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n" }));
  const engine = await engineBy({ protocol: "http", port: proxy.port });
  const sent = async (): Promise<string | undefined> => {
    await client(engine).fetch("http://origin.test/");
    return /^Proxy-Authorization: Basic (.*)$/m.exec(proxy.asked.at(-1) ?? "")?.[1];
  };
  assert.equal(await sent(), undefined);
  engine.routes.update({ credentials: { username: "a", password: "b" }, bypass: [] });
  assert.equal(await sent(), Buffer.from("a:b").toString("base64"));
});

test("a proxy that is this proxy itself is refused, and so is this proxy by way of another on this machine", async () => {
  const socks = await kept(startSocksProxy());
  const first = await engineBy({ protocol: "socks5", port: socks.port });
  for (const host of ["127.0.0.1", "localhost", "LOCALHOST.", "127.1", "[::ffff:127.0.0.1]", "0.0.0.0"]) {
    const response = await client(first).fetch({ url: `http://${host}:${first.port}/`, headers: [["Host", "x"]] });
    assert.equal(response.status, 508, host);
  }
  assert.deepEqual(socks.asked, []);
  for (const protocol of ["http", "https", "socks5"] as const) {
    const engine = await engineBy({ protocol, port: 1 });
    const itself = await startEngine({ upstreamProxy: { protocol, host: "127.0.0.1", port: engine.port } });
    cleanups.push(() => itself.stop());
    itself.own.add("127.0.0.1", engine.port);
    assert.equal((await client(itself).fetch("http://origin.test/")).status, 508);
    assert.equal(failureOf((await itself.waitFor(1))[0]), "LOOP");
    assert.deepEqual(engine.finished, []);
  }
});

const CLOSED = Symbol("closes at once");
const SILENT = Symbol("says nothing");

const connectResponses: readonly [string, string | typeof CLOSED | typeof SILENT, string, number][] = [
  ["407", "HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n", "AUTH", 502],
  ["401", "HTTP/1.1 401 Who?\r\nContent-Length: 0\r\n\r\n", "AUTH", 502],
  ["403", "HTTP/1.1 403 No\r\nContent-Length: 4\r\n\r\nno\r\n", "DENIED", 502],
  ["405", "HTTP/1.0 405 Not allowed\r\n\r\n", "DENIED", 502],
  ["302", "HTTP/1.1 302 Found\r\nLocation: http://login/\r\n\r\n", "DENIED", 502],
  ["502", "HTTP/1.1 502 Bad Gateway\r\n\r\n<h1>origin unreachable</h1>", "CONNECT", 502],
  ["503", "HTTP/1.1 503 Unavailable\r\n\r\n", "CONNECT", 502],
  ["504", "HTTP/1.1 504 Gateway Timeout\r\n\r\n", "TIMEOUT", 504],
  ["garbage", "SSH-2.0-OpenSSH_9.2\r\n", "PROTOCOL", 502],
  ["SOCKS5", "\x05\xff", "PROTOCOL", 502],
  ["an oversized head", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(1_000_000)}\r\n\r\n`, "PROTOCOL", 502],
  ["endless fields", `HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(100_000)}\r\n`, "PROTOCOL", 502],
  ["half a head", "HTTP/1.1 200 OK\r\nX: ", "CLOSED", 502],
  ["nothing", CLOSED, "CLOSED", 502],
  ["silence", SILENT, "TIMEOUT", 504],
];

const socksResponses: readonly [string, string | typeof CLOSED | typeof SILENT, string, number][] = [
  ["no acceptable method", "\x05\xff", "AUTH", 502],
  ["a wish for a password", "\x05\x02", "AUTH", 502],
  ["a method that was not offered", "\x05\x01", "PROTOCOL", 502],
  ["HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n", "PROTOCOL", 502],
  ["reply 1", "\x05\x00\x05\x01\x00\x01\x00\x00\x00\x00\x00\x00", "CONNECT", 502],
  ["reply 2", "\x05\x00\x05\x02\x00\x01\x00\x00\x00\x00\x00\x00", "DENIED", 502],
  ["reply 4", "\x05\x00\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00", "CONNECT", 502],
  ["reply 5", "\x05\x00\x05\x05\x00\x01\x00\x00\x00\x00\x00\x00", "CONNECT", 502],
  ["reply 6", "\x05\x00\x05\x06\x00\x01\x00\x00\x00\x00\x00\x00", "TIMEOUT", 504],
  ["reply 200", "\x05\x00\x05\xc8", "CONNECT", 502],
  ["an unknown address type", "\x05\x00\x05\x00\x00\x07", "PROTOCOL", 502],
  ["half a reply", "\x05\x00\x05\x00\x00\x01", "CLOSED", 502],
  ["nothing", CLOSED, "CLOSED", 502],
  ["silence", SILENT, "TIMEOUT", 504],
];

for (const [protocol, responses] of [
  ["http", connectResponses],
  ["socks5", socksResponses],
] as const) {
  for (const [name, bytes, code, status] of responses) {
    test(`${name} of a ${protocol} proxy is UPSTREAM_PROXY_${code} and ${status}, and nothing of the credentials is told`, async () => {
      const proxy: RawServer = await startRawServer(async (connection) => {
        if (bytes === CLOSED) return;
        if (bytes === SILENT) return void (await connection.closed);
        await connection.readSome();
        await connection.write(bytes).catch(() => undefined);
      });
      cleanups.push(() => proxy.close().catch(() => undefined));
      const engine = await engineBy(
        { protocol, port: proxy.port, ...(name === "a wish for a password" ? {} : { credentials: SECRET }) },
        { connectTimeoutMs: bytes === SILENT ? 150 : 5000, policy: { interceptsTls: false } },
      );
      const { response, connection } = await client(engine).tunnel("origin.test:443");
      connection.destroy();
      assert.equal(response.status, status);
      const [exchange] = await engine.waitFor(1);
      assert.ok(exchange?.state.step === "failed");
      const { failure } = exchange.state;
      assert.equal(failure.code, `UPSTREAM_PROXY_${code}`, failure.message);
      assert.equal(failure.stage, "proxy-handshake");
      assert.ok(failure.message.includes(`${protocol}://127.0.0.1:${proxy.port}`), failure.message);
      const told = `${failure.message} ${response.body.toString()}`;
      for (const secret of [SECRET.username, SECRET.password, Buffer.from("hush:hush!").toString("base64")]) {
        assert.ok(!told.includes(secret), told);
      }
    });
  }
}

const SECRET = { username: "hush", password: "hush!" };

test("a forwarding proxy that wants credentials is told from the origin, and the client is not asked for its own", async () => {
  const proxy = await kept(
    startHttpProxy({
      response: () => "HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic realm=x\r\nContent-Length: 5\r\n\r\nlogin",
    }),
  );
  const engine = await engineBy({ protocol: "http", port: proxy.port });
  const response = await client(engine).fetch("http://origin.test/");
  assert.equal(response.status, 502);
  assert.match(response.body.toString(), /UPSTREAM_PROXY_AUTH/);
  assert.equal(failureOf((await engine.waitFor(1))[0]), "UPSTREAM_PROXY_AUTH");
});

test("a forwarding proxy that hangs up without an answer is the one that is blamed", async () => {
  const proxy = await kept(startRawServer(async (connection) => void (await connection.readUntil("\r\n\r\n"))));
  const engine = await engineBy({ protocol: "http", port: proxy.port });
  assert.equal((await client(engine).fetch("http://origin.test/")).status, 502);
  assert.equal(failureOf((await engine.waitFor(1))[0]), "UPSTREAM_PROXY_CLOSED");
});

test("what a forwarding proxy answers otherwise passes unchanged, since its sender is unknown", async () => {
  for (const status of [403, 502, 504]) {
    const proxy = await kept(
      startHttpProxy({
        response: () => `HTTP/1.1 ${status} Said so\r\nContent-Length: 2\r\nConnection: close\r\n\r\nxy`,
      }),
    );
    const engine = await engineBy({ protocol: "http", port: proxy.port });
    const response = await client(engine).fetch("http://origin.test/");
    assert.deepEqual([response.status, response.body.toString()], [status, "xy"]);
    assert.equal(failureOf((await engine.waitFor(1))[0]), "none");
  }
});

test("a proxy that is not there, or whose name is not, is told from an origin that is not", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await waitForEvent(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await waitForEvent(server, "close");
  for (const [host, stage] of [
    ["127.0.0.1", "connect"],
    ["no-such-proxy.invalid", "resolve"],
  ] as const) {
    const engine = await engineBy({ protocol: "http", port, host });
    assert.equal((await client(engine).fetch("http://origin.test/")).status, 502);
    const [exchange] = await engine.waitFor(1);
    assert.ok(exchange?.state.step === "failed");
    assert.equal(exchange.state.failure.code, "UPSTREAM_PROXY_UNREACHABLE");
    assert.equal(exchange.state.failure.stage, stage);
    assert.match(exchange.state.failure.message, /^The upstream proxy http:/);
  }
});

test("a name that SOCKS5 cannot carry is refused with a sentence", async () => {
  const proxy = await kept(startSocksProxy());
  const engine = await engineBy({
    protocol: "socks5",
    port: proxy.port,
    credentials: { username: "x".repeat(256), password: "" },
  });
  assert.equal((await client(engine).fetch("http://origin.test/")).status, 502);
  assert.equal(failureOf((await engine.waitFor(1))[0]), "UPSTREAM_PROXY_PROTOCOL");
});
