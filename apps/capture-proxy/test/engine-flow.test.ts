import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import type { IncomingMessage, RequestListener } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { connect } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { after, test } from "node:test";
import { connect as connectTls } from "node:tls";
import type { TLSSocket } from "node:tls";
import { rawClient, waitUntil } from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import type { Verdict } from "#exchange/phases.ts";
import { startEngine } from "./engine-harness.ts";
import type { Engine, EngineOptions } from "./engine-harness.ts";

const cleanups: (() => unknown)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
});

const originCa = CertificateAuthority.create({ commonName: "Origins" });
const leaf = originCa.issueLeaf({ dns: ["localhost"], ip: ["127.0.0.1"] });

async function engine(options: EngineOptions = {}): Promise<Engine> {
  const started = await startEngine({ upstreamRoots: originCa.certificatePem, ...options });
  cleanups.push(() => started.stop());
  return started;
}

async function listening<T extends Server>(server: T): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => {
    server.close();
    (server as unknown as { closeAllConnections?: () => void }).closeAllConnections?.();
  });
  return (server.address() as AddressInfo).port;
}

const plainOrigin = (listener: RequestListener): Promise<number> => listening(createServer(listener));
const secureOrigin = (listener: RequestListener, certificate = leaf): Promise<number> =>
  listening(createSecureServer({ key: certificate.keyPem, cert: certificate.chainPem }, listener));

/** CONNECT through the proxy; resolves to the raw socket once it answered 200, or to the status line. */
async function tunnel(proxyPort: number, authority: string): Promise<{ socket: Socket; status: string }> {
  const socket = connect(proxyPort, "127.0.0.1");
  await once(socket, "connect");
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`);
  const [first] = (await once(socket, "data")) as [Buffer];
  return { socket, status: first.toString("latin1").split("\r\n")[0] ?? "" };
}

async function secureTunnel(proxy: Engine, authority: string, servername: string): Promise<TLSSocket> {
  const { socket } = await tunnel(proxy.port, authority);
  const secure = connectTls({ socket, servername, ca: proxy.ca.certificatePem });
  await once(secure, "secureConnect");
  return secure;
}

async function exchangeOver(socket: Socket, head: string, body?: Buffer): Promise<IncomingMessage & { text: string }> {
  const request = httpRequest({ createConnection: () => socket, ...parseHead(head) });
  request.end(body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let text = "";
  response.setEncoding("utf8");
  for await (const piece of response) text += piece;
  return Object.assign(response, { text });
}

function parseHead(head: string): { method: string; path: string; headers: Record<string, string> } {
  const [method = "GET", path = "/", host = "localhost"] = head.split(" ");
  return { method, path, headers: { host } };
}

test("an intercepted request is recorded whole, with both sides' TLS", async () => {
  const port = await secureOrigin((request, response) => response.end(`you asked for ${request.url}`));
  const proxy = await engine();
  const secure = await secureTunnel(proxy, `localhost:${port}`, "localhost");
  const certificate = secure.getPeerX509Certificate();
  assert.ok(certificate?.checkHost("localhost"));
  const { text } = await exchangeOver(secure, `GET /hello localhost:${port}`);
  assert.equal(text, "you asked for /hello");
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.request.scheme, "https");
  assert.equal(exchange?.request.port, port);
  assert.equal(exchange?.client.tls?.version, "TLSv1.3");
  assert.equal(exchange?.client.sni, "localhost");
  assert.equal(exchange?.upstreamTls?.verified, true);
  assert.equal(Buffer.concat([...(exchange?.responseBody.pieces ?? [])]).toString(), "you asked for /hello");
  secure.destroy();
});

test("the leaf is for the name in SNI even when CONNECT named another host", async () => {
  const port = await secureOrigin((_request, response) => response.end("fronted"));
  const proxy = await engine();
  const { socket } = await tunnel(proxy.port, `127.0.0.1:${port}`);
  const secure = connectTls({ socket, servername: "localhost", ca: proxy.ca.certificatePem });
  await once(secure, "secureConnect");
  const { text } = await exchangeOver(secure, "GET / localhost");
  assert.equal(text, "fronted");
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.serverAddress, `127.0.0.1:${port}`);
  secure.destroy();
});

test("without SNI the leaf carries the address as an IP name", async () => {
  const port = await secureOrigin((_request, response) => response.end("by address"));
  const proxy = await engine();
  const { socket } = await tunnel(proxy.port, `127.0.0.1:${port}`);
  const secure = connectTls({ socket, host: "127.0.0.1", ca: proxy.ca.certificatePem });
  await once(secure, "secureConnect");
  assert.ok(secure.getPeerX509Certificate()?.checkIP("127.0.0.1"));
  assert.equal((await exchangeOver(secure, `GET / 127.0.0.1:${port}`)).text, "by address");
  secure.destroy();
});

test("an origin with an unknown certificate gets no request byte, and the client a page that says why", async () => {
  const stranger = CertificateAuthority.create({ commonName: "Stranger" }).issueLeaf({ dns: ["localhost"] });
  let requests = 0;
  const port = await secureOrigin((_request, response) => {
    requests += 1;
    response.end();
  }, stranger);
  const proxy = await engine();
  const secure = await secureTunnel(proxy, `localhost:${port}`, "localhost");
  const response = await exchangeOver(secure, `GET / localhost:${port}`);
  assert.equal(response.statusCode, 502);
  assert.equal(response.headers["x-weir-error"], "UPSTREAM_CERTIFICATE");
  assert.equal(requests, 0);
  secure.destroy();
});

test("a host whose verification is switched off works and is marked as not verified", async () => {
  const stranger = CertificateAuthority.create({ commonName: "Stranger" }).issueLeaf({ dns: ["localhost"] });
  const port = await secureOrigin((_request, response) => response.end("trusted anyway"), stranger);
  const proxy = await engine({ insecureHosts: ["localhost"] });
  const secure = await secureTunnel(proxy, `localhost:${port}`, "localhost");
  assert.equal((await exchangeOver(secure, `GET / localhost:${port}`)).text, "trusted anyway");
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.upstreamTls?.verified, false);
  secure.destroy();
});

test("a client that does not trust the CA leaves an entry that says so", async () => {
  const port = await secureOrigin((_request, response) => response.end());
  const proxy = await engine();
  const { socket } = await tunnel(proxy.port, `localhost:${port}`);
  const secure = connectTls({ socket, servername: "localhost", ca: originCa.certificatePem });
  const [error] = (await once(secure, "error")) as [NodeJS.ErrnoException];
  assert.match(error.code ?? "", /SELF_SIGNED|UNABLE_TO_VERIFY/);
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.request.method, "CONNECT");
  assert.equal(exchange?.response?.status, 502);
  assert.equal(exchange?.state.step === "failed" && exchange.state.failure.code, "CLIENT_CERTIFICATE_REFUSED");
});

test("with interception off, TLS is relayed and only counted", async () => {
  const port = await secureOrigin((_request, response) => response.end("relayed"));
  const proxy = await engine({ policy: { interceptsTls: false } });
  const { socket, status } = await tunnel(proxy.port, `localhost:${port}`);
  assert.match(status, /^HTTP\/1\.1 200 /);
  const secure = connectTls({ socket, servername: "localhost", ca: originCa.certificatePem });
  await once(secure, "secureConnect");
  assert.equal((await exchangeOver(secure, "GET / localhost")).text, "relayed");
  secure.end();
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.passthrough, true);
  assert.ok((exchange?.responseBody.sizeBytes ?? 0) > 500);
  assert.equal(exchange?.responseBody.storedBytes, 0);
  assert.equal(exchange?.response?.status, 200);
});

test("a passthrough domain is recognised by SNI too", async () => {
  const port = await secureOrigin((_request, response) => response.end("pinned"));
  const proxy = await engine({ policy: { passesThrough: (host) => host === "localhost" } });
  const { socket } = await tunnel(proxy.port, `127.0.0.1:${port}`);
  const secure = connectTls({ socket, servername: "localhost", ca: originCa.certificatePem });
  await once(secure, "secureConnect");
  assert.equal((await exchangeOver(secure, "GET / localhost")).text, "pinned");
  secure.destroy();
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.passthrough, true);
});

test("CONNECT to nowhere with interception off is answered with the failure", async () => {
  const proxy = await engine({ policy: { interceptsTls: false } });
  const { status } = await tunnel(proxy.port, "nope.invalid:443");
  assert.match(status, /^HTTP\/1\.1 502 /);
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.response?.status, 502);
});

test("a slice's answer takes the origin's place, body of the request included in the record", async () => {
  const body = Buffer.from("blocked here");
  const proxy = await engine({
    interceptors: [
      {
        name: "blocklist",
        onRequestHead: () => ({
          kind: "respond",
          response: { status: 403, fields: ["Content-Type", "text/plain"], body },
        }),
      },
    ],
  });
  const socket = connect(proxy.port, "127.0.0.1");
  const response = await exchangeOver(socket, "POST http://nowhere.invalid/x nowhere.invalid", Buffer.from("sent"));
  assert.equal(response.statusCode, 403);
  assert.equal(response.text, "blocked here");
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.source, "slice");
  assert.equal(Buffer.concat([...(exchange?.requestBody.pieces ?? [])]).toString(), "sent");
  socket.destroy();
});

test("an interceptor may take its time over the request and over the answer", async () => {
  const port = await plainOrigin((request, response) => request.pipe(response));
  const later = async (): Promise<{ kind: "continue" }> => {
    await new Promise((resolve) => setImmediate(resolve));
    return { kind: "continue" };
  };
  const proxy = await engine({ interceptors: [{ name: "blocklist", onRequestHead: later, onResponseHead: later }] });
  const socket = connect(proxy.port, "127.0.0.1");
  const sent = "x".repeat(200_000);
  const response = await exchangeOver(socket, `POST http://127.0.0.1:${port}/ 127.0.0.1:${port}`, Buffer.from(sent));
  assert.equal(response.text, sent);
  socket.destroy();
});

test("Expect: 100-continue waits for the origin's word, and its refusal arrives", async () => {
  const server = createServer((request, response) => request.pipe(response));
  server.on("checkContinue", (request: IncomingMessage, response) => {
    if (request.url === "/no") {
      response.writeHead(417).end("too big");
      return;
    }
    response.writeContinue();
    request.pipe(response);
  });
  const port = await listening(server);
  const proxy = await engine();
  for (const [path, status] of [
    ["/yes", 200],
    ["/no", 417],
  ] as const) {
    const request = httpRequest({
      host: "127.0.0.1",
      port: proxy.port,
      method: "POST",
      path: `http://127.0.0.1:${port}${path}`,
      headers: { expect: "100-continue", "content-length": "4" },
    });
    request.on("continue", () => request.end("body"));
    request.flushHeaders();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    assert.equal(response.statusCode, status);
    response.resume();
    await once(response, "end");
    request.destroy();
  }
});

test("a large upload and a large download pass with flat memory, and the record is cut at max_body_size", async () => {
  const totalBytes = 96 * 1024 * 1024;
  const piece = Buffer.alloc(65_536, 7);
  const port = await plainOrigin((request, response) => {
    let received = 0;
    request.on("data", (chunk: Buffer) => (received += chunk.length));
    request.on("end", () => {
      assert.equal(received, totalBytes);
      response.writeHead(200, { "content-length": totalBytes });
      let sent = 0;
      const write = (): void => {
        while (sent < totalBytes) {
          sent += piece.length;
          if (!response.write(piece)) return void response.once("drain", write);
        }
        response.end();
      };
      write();
    });
  });
  const proxy = await engine({ policy: { maxBodyBytes: 1_000_000 } });
  const request = httpRequest({
    host: "127.0.0.1",
    port: proxy.port,
    method: "PUT",
    path: `http://127.0.0.1:${port}/big`,
    headers: { "content-length": totalBytes },
  });
  let peakBytes = 0;
  const sampler = setInterval(() => (peakBytes = Math.max(peakBytes, process.memoryUsage().rss)), 50);
  const startBytes = process.memoryUsage().rss;
  for (let sent = 0; sent < totalBytes; sent += piece.length) if (!request.write(piece)) await once(request, "drain");
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  let received = 0;
  for await (const chunk of response) received += (chunk as Buffer).length;
  clearInterval(sampler);
  assert.equal(received, totalBytes);
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.responseBody.state, "truncated");
  assert.equal(exchange?.responseBody.storedBytes, 1_000_000);
  assert.equal(exchange?.requestBody.sizeBytes, totalBytes);
  // Origin, proxy and client share this process; what is bounded is their sum.
  assert.ok(peakBytes - startBytes < 150_000_000, `memory grew by ${peakBytes - startBytes} bytes`);
});

test("a client that stops reading holds the origin back instead of filling memory", async () => {
  let written = 0;
  const piece = Buffer.alloc(65_536);
  const port = await plainOrigin((_request, response) => {
    response.on("error", () => undefined);
    const write = (): void => {
      while (written < 512 * 1024 * 1024) {
        written += piece.length;
        if (!response.write(piece)) return void response.once("drain", write);
      }
    };
    write();
  });
  const proxy = await engine();
  const socket = connect(proxy.port, "127.0.0.1");
  await once(socket, "connect");
  socket.pause();
  socket.write(`GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  let before = -1;
  while (written !== before || written === 0) {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  assert.ok(written < 64 * 1024 * 1024, `the origin could write ${written} bytes`);
  socket.destroy();
  const [exchange] = await proxy.waitFor(1);
  assert.equal(exchange?.state.step === "failed" && exchange.state.failure.code, "CLIENT_ABORTED");
});

test("a client abort ends the origin's connection", async () => {
  const closed = Promise.withResolvers<void>();
  const port = await plainOrigin((request, response) => {
    response.write("first");
    request.on("close", () => closed.resolve());
  });
  const proxy = await engine();
  const socket = connect(proxy.port, "127.0.0.1");
  socket.write(`GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await once(socket, "data");
  socket.destroy();
  await closed.promise;
  await proxy.waitFor(1);
  await waitUntil(() => proxy.services.gauges.upstreamConnections === 0);
  assert.equal(proxy.services.gauges.activeExchanges, 0);
});

test("a graceful stop lets the exchange in flight end", async () => {
  const reply = Promise.withResolvers<void>();
  const port = await plainOrigin((_request, response) => {
    void reply.promise.then(() => response.end("late but whole"));
  });
  const proxy = await startEngine();
  const socket = connect(proxy.port, "127.0.0.1");
  const response = exchangeOver(socket, `GET http://127.0.0.1:${port}/ 127.0.0.1`);
  while (proxy.services.gauges.activeExchanges === 0) await new Promise((resolve) => setImmediate(resolve));
  const stopped = proxy.stop(5000);
  reply.resolve();
  assert.equal((await response).text, "late but whole");
  await stopped;
});

test("a stop does not wait for idle clients that never look", { timeout: 10_000 }, async () => {
  const port = await plainOrigin((_request, response) => response.end("first"));
  const secure = await secureOrigin((_request, response) => response.end("second"));
  const proxy = await startEngine({ upstreamRoots: originCa.certificatePem });
  const silent = connect({ port: proxy.port, host: "127.0.0.1", allowHalfOpen: true });
  await once(silent, "connect");
  const used = connect({ port: proxy.port, host: "127.0.0.1", allowHalfOpen: true });
  used.write(`GET http://127.0.0.1:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`);
  await once(used, "data");
  const intercepted = await secureTunnel(proxy, `localhost:${secure}`, "localhost");
  intercepted.allowHalfOpen = true;
  intercepted.write(`GET / HTTP/1.1\r\nHost: localhost:${secure}\r\n\r\n`);
  await once(intercepted, "data");
  await proxy.waitFor(2);
  await proxy.stop(60_000);
  for (const client of [silent, used, intercepted]) client.destroy();
});

test("an answer that is still leaving when the proxy stops arrives whole, whatever its client sends meanwhile", async () => {
  const body = Buffer.alloc(16_777_216, "x");
  const reply = (): Verdict => ({
    kind: "respond",
    response: { status: 200, fields: ["Content-Length", String(body.length)], body },
  });
  const proxy = await startEngine({ interceptors: [{ name: "mocks", onRequestHead: reply }] });
  const idle = connect({ port: proxy.port, host: "127.0.0.1", allowHalfOpen: true });
  const client = await rawClient(proxy.port);
  client.socket.pause();
  await client.write("GET http://example.test/ HTTP/1.1\r\nHost: x\r\n\r\n");
  await proxy.waitFor(1);
  const stopped = proxy.stop(60_000);
  await client.write("GET http://example.test/next HTTP/1.1\r\nHost: x\r\n\r\n");
  await waitUntil(() => proxy.services.gauges.activeConnections === 1);
  client.socket.resume();
  await client.readUntil("\r\n\r\n");
  assert.equal((await client.collect()).length, body.length);
  await stopped;
  idle.destroy();
});
