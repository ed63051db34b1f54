import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { rawClient, readResponse, startOrigin, startRawServer, waitUntil } from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { RejectedDocumentError } from "#gateway.ts";
import { serving, startGateway, type TestRequest } from "./gateway-rig.ts";

type RouteInput = NonNullable<DocumentInput["routes"]>[number];

const proxied = (name: string, prefix = "/", more: Partial<RouteInput> = {}): RouteInput => ({
  name,
  service: name,
  match: { path: { type: "prefix", value: prefix } },
  action: { type: "proxy" },
  ...more,
});

test("a request is proxied with its path, query, fields and body, and the answer comes back", async () => {
  await using origin = await startOrigin({
    handler: (request, response) => {
      const pieces: Buffer[] = [];
      request.on("data", (piece: Buffer) => pieces.push(piece));
      request.on("end", () => {
        response.writeHead(201, { "X-Answer": "yes", "X-RateLimit-Limit": "7" });
        response.end(Buffer.concat(pieces));
      });
    },
  });
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
  const response = await gateway.send({
    method: "POST",
    path: "/a//b%2fc?x=%41&y",
    fields: [
      "X-Custom: One",
      "x-custom: two",
      "Connection: keep-alive, X-Drop",
      "X-Drop: gone",
      "X-Request-Id: mine-1",
    ],
    body: "the body",
  });
  assert.deepEqual([response.status, response.body.toString()], [201, "the body"]);
  assert.equal(response.header("x-answer"), "yes");
  assert.equal(response.header("x-ratelimit-limit"), undefined, "an upstream's limits are not the client's");
  assert.equal(response.header("x-request-id"), "mine-1");
  const [seen] = origin.requests;
  assert.deepEqual([seen?.method, seen?.url], ["POST", "/a//b%2fc?x=%41&y"]);
  const fields = pairs(seen?.rawHeaders ?? []);
  assert.deepEqual(
    fields.filter(([name]) => /^x-custom$/i.test(name)),
    [
      ["X-Custom", "One"],
      ["x-custom", "two"],
    ],
  );
  for (const [name, value] of [
    ["Host", `127.0.0.1:${origin.port}`],
    ["X-Forwarded-For", "127.0.0.1"],
    ["X-Forwarded-Proto", "http"],
    ["X-Forwarded-Host", "gateway.test"],
    ["X-Real-IP", "127.0.0.1"],
    ["X-Request-Id", "mine-1"],
    ["X-Drop", undefined],
    ["Connection", "keep-alive"],
  ] as const) {
    assert.equal(fields.find(([found]) => found === name)?.[1], name === "Connection" ? undefined : value, name);
  }
});

test("another spelling of a path is the same path, for its route and for its upstream", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    consumers: [{ name: "acme", credentials: [{ type: "api_key", key: "key-of-acme" }] }],
    routes: [
      proxied("closed", "/auth", { service: "api", auth_required: true }),
      proxied("french", "/caf%c3%a9", { service: "api", action: { type: "proxy", rewrite: { type: "strip_prefix" } } }),
      proxied("api"),
    ],
  });
  for (const path of ["/auth/x", "/%61uth/x", "/au%74%68/x"]) {
    assert.equal((await gateway.send({ path })).status, 401, path);
  }
  assert.equal(origin.requests.length, 0);
  await gateway.send({ path: "/%61uth/%7e%2f?q=%61", fields: ["X-API-Key: key-of-acme"] });
  await gateway.send({ path: "/caf%C3%A9/menu" });
  assert.deepEqual(
    origin.requests.map(({ url }) => url),
    ["/auth/~%2f?q=%61", "/menu"],
  );
});

test("what a client says about itself is removed first and set last, underscore spellings included", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
  await gateway.send({
    path: "/",
    fields: [
      "X-Consumer-Name: admin",
      "X_Consumer_Name: admin",
      "X-Forwarded-For: 6.6.6.6",
      "X_Forwarded_For: 6.6.6.6",
      "X-Real-IP: 6.6.6.6",
      "Forwarded: for=6.6.6.6",
      "Connection: X-Forwarded-For, Host",
    ],
  });
  const names = pairs(origin.requests[0]?.rawHeaders ?? []);
  assert.deepEqual(
    names.filter(([, value]) => value.includes("6.6.6.6") || value === "admin"),
    [],
  );
  assert.equal(names.find(([name]) => name === "X-Forwarded-For")?.[1], "127.0.0.1");
});

const RESPONSES: readonly (readonly [string, TestRequest, number, string])[] = [
  ["no route", { path: "/nothing" }, 404, "no_route"],
  ["a dot segment", { path: "/api/../x" }, 400, "bad_request"],
  ["an encoded dot segment", { path: "/api/%2e%2e/x" }, 400, "bad_request"],
  ["a backslash", { path: "/api\\x" }, 400, "bad_request"],
  ["two Host fields", { path: "/api", fields: ["Host: a", "Host: b"] }, 400, "bad_request"],
  [
    "both framings",
    { path: "/api", fields: ["Content-Length: 1", "Transfer-Encoding: chunked"] },
    400,
    "ambiguous_framing",
  ],
  ["an unknown coding", { path: "/api", fields: ["Transfer-Encoding: gzip, chunked"] }, 501, "unknown_transfer_coding"],
  ["too large a head", { path: "/api", fields: [`X: ${"x".repeat(66_000)}`] }, 431, "request_headers_too_large"],
  [
    "too many fields",
    { path: "/api", fields: Array.from({ length: 101 }, (_, at) => `X-${at}: 1`) },
    431,
    "request_headers_too_large",
  ],
  ["an upstream that refuses", { path: "/dead" }, 502, "upstream_unavailable"],
];
for (const [what, request, status, code] of RESPONSES) {
  test(`${what} is answered with ${status} ${code} in the error envelope`, async () => {
    await using origin = await startOrigin();
    const { upstreams, services } = serving("api", [origin.port]);
    const dead = serving("dead", [1]);
    await using gateway = await startGateway({
      upstreams: [...upstreams, ...dead.upstreams],
      services: [...services, ...dead.services],
      routes: [proxied("api", "/api"), proxied("dead", "/dead")],
    });
    const response = await gateway.send(request);
    const { error } = JSON.parse(response.body.toString()) as { error: Record<string, string> };
    assert.deepEqual([response.status, error["code"]], [status, code]);
    assert.equal(response.header("content-type"), "application/json");
    assert.equal(response.header("x-request-id"), error["request_id"]);
    assert.ok((error["message"] ?? "").length > 0);
    assert.equal(origin.requests.length, 0);
  });
}

test("one connection carries many requests, pipelined ones too, and the upstream connection is used again", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
  await using client = await rawClient(gateway.port());
  const one = "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n";
  await client.write(one + one.replace("/1", "/2") + one.replace("/1", "/missing/../x"));
  const responses = [await readResponse(client), await readResponse(client), await readResponse(client)];
  assert.deepEqual(
    responses.map(({ status }) => status),
    [200, 200, 400],
  );
  await client.write(one);
  assert.equal((await readResponse(client)).status, 200);
  assert.equal(origin.connectionCount, 1);
});

test("HEAD, 204 and 304 have no body and keep the connection", async () => {
  await using origin = await startOrigin({
    handler: (request, response) => {
      if (request.url === "/204") response.writeHead(204).end();
      else if (request.url === "/304") response.writeHead(304, { ETag: '"x"' }).end();
      else response.writeHead(200, { "Content-Length": "1234" }).end();
    },
  });
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
  await using client = await rawClient(gateway.port());
  for (const [method, path, status] of [
    ["HEAD", "/", 200],
    ["GET", "/204", 204],
    ["GET", "/304", 304],
    ["HEAD", "/none/..", 400],
    ["HEAD", "/", 200],
  ] as const) {
    await client.write(`${method} ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
    const response = await readResponse(client, method);
    assert.equal(response.status, status);
    if (method === "HEAD" && status === 200) assert.equal(response.header("content-length"), "1234");
  }
});

test("30 MB each way pass unchanged", async () => {
  const size = 30 * 1024 * 1024;
  await using origin = await startOrigin({ handler: (request, response) => void request.pipe(response) });
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
  const sent = Buffer.alloc(size);
  for (let at = 0; at < size; at += 4) sent.writeUInt32LE(at, at);
  const response = await fetch(`http://127.0.0.1:${gateway.port()}/`, { method: "POST", body: sent });
  assert.ok(Buffer.from(await response.arrayBuffer()).equals(sent));
});

test("an upstream that takes nothing holds the client back", async () => {
  await using server = await startRawServer(async (connection) => {
    connection.socket.pause();
    await connection.closed;
  });
  await using gateway = await startGateway({ ...serving("api", [server.port]), routes: [proxied("api")] });
  await using client = await rawClient(gateway.port());
  await client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n");
  const piece = Buffer.alloc(1024 * 1024);
  while (client.socket.write(piece)) await new Promise((resolve) => setImmediate(resolve));
  for (let at = 0; at < 40; at += 1) client.socket.write(piece);
  await new Promise((resolve) => setTimeout(resolve, 200));
  const taken = client.socket.bytesWritten - client.socket.writableLength;
  assert.ok(taken < 30 * 1024 * 1024, `${taken} bytes were taken`);
  client.destroy();
});

test("a client that goes away ends its request at the upstream", async () => {
  const gone = Promise.withResolvers<void>();
  await using server = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    connection.socket.once("end", gone.resolve);
    await gone.promise;
  });
  await using gateway = await startGateway({ ...serving("api", [server.port]), routes: [proxied("api")] });
  await using client = await rawClient(gateway.port());
  await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await waitUntil(() => server.connections.length === 1, { what: "the upstream's connection" });
  client.socket.resetAndDestroy();
  await gone.promise;
});

for (const [what, bytes, status] of [
  ["closes without an answer", "", 502],
  ["answers with garbage", "hello\r\n\r\n", 502],
  ["closes in the middle of its head", "HTTP/1.1 200 OK\r\nX: ", 502],
  ["sends both framings", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 502],
] as const) {
  test(`an upstream that ${what} gives ${status}`, async () => {
    await using server = await startRawServer(bytes);
    await using gateway = await startGateway({ ...serving("api", [server.port]), routes: [proxied("api")] });
    assert.equal((await gateway.send({ path: "/" })).status, status);
  });
}

test("an answer that breaks off is cut for the client, never ended", async () => {
  await using server = await startRawServer("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
  await using gateway = await startGateway({ ...serving("api", [server.port]), routes: [proxied("api")] });
  await assert.rejects(gateway.send({ path: "/" }));
});

test("no answer within read_ms is 504 upstream_response_timeout", async () => {
  await using server = await startRawServer(async (connection) => void (await connection.closed));
  await using gateway = await startGateway({
    ...serving("api", [server.port], { timeouts: { read_ms: 50 } }),
    routes: [proxied("api")],
  });
  const response = await gateway.send({ path: "/" });
  assert.equal(response.status, 504);
  assert.match(response.body.toString(), /upstream_response_timeout/);
});

test("WebSocket upgrades are spliced, other upgrades are not followed", async () => {
  await using server = await startRawServer(async (connection) => {
    const head = (await connection.readUntil("\r\n\r\n")).toString();
    if (/upgrade: websocket/i.test(head)) {
      await connection.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhi");
      const ping = await connection.read(4);
      await connection.write(Buffer.concat([Buffer.from("got "), ping]));
    } else await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nplain");
  });
  await using gateway = await startGateway({ ...serving("api", [server.port]), routes: [proxied("api")] });
  await using client = await rawClient(gateway.port());
  await client.write(
    "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\nping",
  );
  const response = await readResponse(client);
  assert.equal(response.status, 101);
  assert.equal((await client.read(10)).toString(), "higot ping");
  const h2c = await gateway.send({
    path: "/",
    fields: ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: x"],
  });
  assert.equal(h2c.body.toString(), "plain");
});

test("a generation that is published takes new requests; one in flight ends with its own", async () => {
  await using slow = await startOrigin({
    handler: (_request, response) => void setTimeout(() => response.end("old"), 150),
  });
  await using fast = await startOrigin({ handler: (_request, response) => void response.end("new") });
  await using gateway = await startGateway({ ...serving("api", [slow.port]), routes: [proxied("api")] });
  const first = gateway.send({ path: "/" });
  await waitUntil(() => slow.requests.length === 1, { what: "the first request" });
  const outcome = await gateway.reload({ ...serving("api", [fast.port]), routes: [proxied("api")] });
  assert.equal(outcome.outcome, "published");
  assert.equal((await gateway.send({ path: "/" })).body.toString(), "new");
  assert.equal((await first).body.toString(), "old");
});

test("a document with errors is not published, and the running generation keeps serving", async () => {
  await using origin = await startOrigin({ handler: (_request, response) => void response.end("here") });
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
  assert.equal((await gateway.reload("routes: [{name: 1}]")).outcome, "rejected");
  assert.equal((await gateway.send({ path: "/" })).body.toString(), "here");
  await assert.rejects(startGateway("nonsense: true"), RejectedDocumentError);
});

test("stop lets requests in flight end and takes no new ones", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => void setTimeout(() => response.end("done"), 100),
  });
  const gateway = await startGateway({ ...serving("api", [origin.port]), routes: [proxied("api")] });
  const port = gateway.port();
  const response = gateway.send({ path: "/" });
  await waitUntil(() => origin.requests.length === 1, { what: "the request" });
  await gateway[Symbol.asyncDispose]();
  assert.equal((await response).body.toString(), "done");
  const late = rawClient(port);
  await assert.rejects(late.then(async (client) => void (await once(client.socket, "connect"))));
});

test("an answer that the end of a drain cuts is broken off, not ended", async () => {
  await using upstream = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write("HTTP/1.1 200 OK\r\n\r\nbegun");
    await connection.collect(20_000);
  });
  await using gateway = await startGateway({
    ...serving("api", [upstream.port]),
    gateway: { shutdown_timeout_ms: 100 },
    routes: [proxied("api")],
  });
  await using client = await rawClient(gateway.port());
  await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await client.readUntil("begun");
  client.socket.once("end", () => client.socket.destroy());
  const stopped = gateway.gateway.stop();
  const error: NodeJS.ErrnoException | undefined = await client.closed;
  assert.equal(error?.code, "ECONNRESET");
  await stopped;
});

test("liveness and readiness are answered before any route", async () => {
  await using gateway = await startGateway({
    routes: [
      { name: "all", match: { path: { type: "prefix", value: "/" } }, action: { type: "respond", status: 418 } },
    ],
  });
  for (const [path, code] of [
    ["/healthz", "ok"],
    ["/readyz", "ready"],
  ] as const) {
    const response = await gateway.send({ path });
    assert.deepEqual(
      [response.status, (JSON.parse(response.body.toString()) as { error: { code: string } }).error.code],
      [200, code],
    );
  }
  assert.equal((await gateway.send({ path: "/x" })).status, 418);
});

function pairs(raw: readonly string[]): [string, string][] {
  const found: [string, string][] = [];
  for (let at = 0; at < raw.length; at += 2) found.push([raw[at] ?? "", raw[at + 1] ?? ""]);
  return found;
}

test("request_id_header names the field of the id, from clients, to upstreams, and on every answer", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => response.writeHead(200, { "X-Correlation-Id": "of the upstream" }).end(),
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    request_id_header: "X-Correlation-Id",
    routes: [
      { name: "r", service: "api", match: { path: { type: "prefix", value: "/r" } }, action: { type: "proxy" } },
    ],
  });
  const response = await gateway.send({ path: "/r", fields: ["X-Correlation-Id: mine-1", "X-Request-Id: other"] });
  const values = response.headers
    .filter(([name]) => name.toLowerCase() === "x-correlation-id")
    .map(([, value]) => value);
  assert.deepEqual([values, response.header("x-request-id")], [["mine-1"], undefined]);
  const seen = origin.requests[0]?.rawHeaders ?? [];
  assert.deepEqual(
    ["X-Correlation-Id", "X-Request-Id"].map((name) => seen[seen.indexOf(name) + 1]),
    ["mine-1", "other"],
  );
  const none = await gateway.send({ path: "/none" });
  assert.equal(
    none.header("x-correlation-id"),
    (JSON.parse(none.body.toString()) as { error: { request_id: string } }).error.request_id,
  );
  const malformed = await gateway.send({ path: "/r", fields: ["Content-Length: x"] });
  assert.match(malformed.header("x-correlation-id") ?? "", /^req-/);
  assert.equal((await gateway.reload({ request_id_header: "Host", routes: [] })).outcome, "rejected");
});
