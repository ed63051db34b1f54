import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { posix } from "node:path";
import { test } from "node:test";
import { rawClient, readResponse, startRawServer, waitUntil } from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "../gateway-rig.ts";
import { errorOf, proxied } from "../route-documents.ts";
import { startRecordingUpstream } from "./recording-upstream.ts";

/** Every way to write a path that some server behind a gateway takes for `/admin/x`. */
const ODD_PATHS: readonly string[] = [
  "/v1/../admin/x",
  "/v1/%2e%2e/admin/x",
  "/v1/%2E./admin/x",
  "/v1/.%2e/admin/x",
  "/v1/..;/admin/x",
  "/v1/..;a=b/admin/x",
  "/v1/%2e%2e%3b/admin/x",
  "/v1/..%2fadmin/x",
  "/v1/..%5cadmin/x",
  "/v1\\..\\admin/x",
  "/v1/..\\admin/x",
  "/v1%2f..%2fadmin/x",
  "/v1%2f%2e%2e%2fadmin/x",
  "/v1/./../admin/x",
  "/v1/x/%2e%2e/%2e%2e/admin/x",
  "/v1/..",
  "/v1/%2e%2e",
  "/v1/.",
  "/..",
  "/.;/admin/x",
  "/v1/%c0%ae%c0%ae/admin/x",
  "/v1/%e0%80%ae%e0%80%ae/admin/x",
  "/v1/%c0%afadmin/x",
  "/v1/\xc0\xae\xc0\xae/admin/x",
  "/v1/\xc0\xafadmin/x",
  "/v1/%c0\xaf/admin/x",
  "/v1\xff/admin/x",
  "/%61dmin/x",
  "/admin%2fx",
  "/admin%00/x",
  "/admin\0/x",
  "/ADMIN/x",
  "//admin/x",
  "///admin/x",
  "/v1//admin/x",
  "/v1///..//admin/x",
  "/admin;a=b/x",
  "/admin;/x",
  "/admin./x",
  "/admin%20/x",
  "/admin%",
  "/admin%2",
  "/admin%zz/x",
  "/admin#/x",
  "/v1/x#/../admin/x",
  "/v1?/../admin/x",
  "/v1/x?a=/../../admin/x",
  "/v1;/../admin/x",
  "/v1%3f/../admin/x",
  "/v10/admin/x",
  "/v1x/admin/x",
  "/v1%20/admin/x",
  "/v1%252f..%252fadmin/x",
  "/v1/%252e%252e/admin/x",
  "/v1/x/..%c0%af..%c0%afadmin/x",
  "/v1/\xe2\x80\xa6/admin/x",
  "/v1/\x85/admin/x",
  "http://evil.test/v1/../admin/x",
  "http://evil.test/admin/x",
  "http://evil.test//admin/x",
  "http://evil.test?/admin/x",
  "*",
];

/** What servers that decode once, merge, resolve and ignore letter case may make of a path, in any order. */
function everyReading(target: string): Set<string> {
  const path = target.replace(/\?.*$/s, "");
  const decoded = path.replace(/%([0-9a-f]{2})/gi, (_all, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  const found = new Set([path, decoded]);
  const steps: ((path: string) => string)[] = [
    (text) => text.replaceAll("\\", "/"),
    (text) => text.replace(/;[^/]*/g, ""),
    (text) => text.replace(/\/{2,}/g, "/"),
    (text) => posix.normalize(text),
    (text) => text.toLowerCase(),
  ];
  for (const text of found) {
    for (const step of steps) if (found.size < 500) found.add(step(text));
  }
  return found;
}

/** Octets beyond ASCII reach no route and no upstream as they are. */
function encodedOctet(octet: string): string {
  return `%${octet.charCodeAt(0).toString(16).toUpperCase()}`;
}

async function startVersioned(port: number): Promise<TestGateway> {
  const api = { service: "api" };
  return await startGateway({
    ...serving("api", [port]),
    routes: [
      proxied("v1", "/v1", { ...api, action: { type: "proxy", rewrite: { type: "strip_prefix" } } }),
      proxied("v2", "/v2", {
        ...api,
        action: { type: "proxy", rewrite: { type: "replace_prefix", prefix: "/v2", replacement: "/" } },
      }),
      proxied("plain", "/plain", api),
      proxied("admin", "/admin", { ...api, auth_required: true }),
    ],
  });
}

for (const path of ODD_PATHS) {
  test(`U4: ${JSON.stringify(path)}: what is routed and what the upstream gets are the same bytes`, async () => {
    await using upstream = await startRecordingUpstream();
    await using gateway = await startVersioned(upstream.port);
    for (const prefix of ["/v1", "/v2", "/plain"]) {
      const target = path.replaceAll("/v1", prefix);
      const before = upstream.requests.length;
      const response = await gateway.send({ path: target });
      const seen = upstream.requests.slice(before).map(({ line }) => line.split(" ")[1] ?? "");
      if (response.status !== 200) {
        assert.ok([400, 401, 404].includes(response.status), `${response.status}`);
        assert.deepEqual(seen, [], target);
        continue;
      }
      assert.equal(seen.length, 1);
      const asked = target.replace(/^http:\/\/[^/?]*/, "").replaceAll(/[\x80-\xff]/g, encodedOctet);
      const expected = prefix === "/plain" ? asked : asked.slice(prefix.length);
      assert.ok(
        [expected, `/${expected}`, expected.replace(/^\/+/, "/")].includes(seen[0] ?? ""),
        `${target}: ${seen[0]}`,
      );
      // Below a route that only consumers may use nothing comes out, however the upstream reads the path.
      if (prefix === "/plain") {
        for (const reading of everyReading(seen[0] ?? "")) {
          assert.doesNotMatch(reading, /^\/+admin/, `${target}: ${seen[0]}`);
        }
      }
      assert.doesNotMatch(seen[0] ?? "", /^\/\//, "could be taken for a host");
    }
  });
}

test("U4: a path decides by whole segments: /v10 and /v1x are not below /v1", async () => {
  await using upstream = await startRecordingUpstream();
  await using gateway = await startVersioned(upstream.port);
  for (const path of ["/v10", "/v1x/y", "/v1%2fx", "/V1/x", "//v1/x", "/v1;x/y"]) {
    const response = await gateway.send({ path });
    assert.deepEqual([response.status, errorOf(response).code], [404, "no_route"], path);
  }
  assert.equal(upstream.requests.length, 0);
});

const TRUST_DOCUMENT = (port: number) => ({
  ...serving("api", [port]),
  consumers: [{ name: "acme", credentials: [{ type: "api_key" as const, key: "acme-key" }] }],
  routes: [proxied("api")],
});

const CONSUMER_NAMES = [
  "X-Consumer-Name",
  "x-consumer-name",
  "X_Consumer_Name",
  "X-Consumer_Name",
  "X-CONSUMER-GROUPS",
];
const FORWARDED_NAMES = [
  "X-Forwarded-For",
  "X_Forwarded_For",
  "X-Forwarded-Proto",
  "X_FORWARDED_PROTO",
  "X-Forwarded-Host",
  "X-Forwarded-Port",
  "X-Real-IP",
  "X_Real_IP",
  "Forwarded",
  "X-Forwarded-Prefix",
  "X-Forwarded-Ssl",
  "X-Forwarded-Client-Cert",
  "X.Forwarded.Server",
  "X-Original-URL",
  "X-Rewrite-URL",
  "True-Client-IP",
  "CF-Connecting-IP",
  "X-HTTP-Method-Override",
  "X_HTTP_METHOD_OVERRIDE",
  "X-Envoy-Internal",
  "Client-Cert",
  "Proxy",
  "Proxy-Authorization",
];

for (const connection of ["close", "keep-alive", "X-Consumer-Name, X-Forwarded-For, X-Real-IP, X-Request-Id, Host"]) {
  test(`U5: with Connection: ${connection} no field that names a person or a place comes from the client`, async () => {
    await using upstream = await startRecordingUpstream();
    await using gateway = await startGateway(TRUST_DOCUMENT(upstream.port));
    const lies = [...CONSUMER_NAMES, ...FORWARDED_NAMES].map((name) => `${name}: lie`);
    const response = await gateway.send({
      path: "/",
      fields: [...lies, `Connection: ${connection}`, "X-API-Key: acme-key", "X-Request-Id: mine-1"],
    });
    assert.equal(response.status, 200);
    const [request] = upstream.requests;
    assert.ok(request !== undefined);
    assert.deepEqual(
      request.fields.filter(([name, value]) => name !== "Proxy" && value.includes("lie")),
      [],
    );
    assert.deepEqual(
      ["x-consumer-name", "x-forwarded-for", "x-forwarded-proto", "x-real-ip", "host", "x-request-id"].map((name) =>
        request.values(name),
      ),
      [["acme"], ["127.0.0.1"], ["http"], ["127.0.0.1"], [`127.0.0.1:${upstream.port}`], ["mine-1"]],
    );
    assert.deepEqual(request.values("x-api-key"), []);
  });
}

test("U5: the httpoxy field Proxy does not reach upstreams", async () => {
  await using upstream = await startRecordingUpstream();
  await using gateway = await startGateway(TRUST_DOCUMENT(upstream.port));
  await gateway.send({ path: "/", fields: ["Proxy: http://evil.test:1"] });
  assert.deepEqual(upstream.requests[0]?.values("proxy"), []);
});

test("U5: an anonymous request has no consumer at its upstream, whatever it says", async () => {
  await using upstream = await startRecordingUpstream();
  await using gateway = await startGateway(TRUST_DOCUMENT(upstream.port));
  await gateway.send({ path: "/", fields: CONSUMER_NAMES.map((name) => `${name}: acme`) });
  assert.deepEqual(
    upstream.requests[0]?.fields.filter(([name]) => /consumer/i.test(name)),
    [],
  );
});

test("U5: trailers cannot say who sends a request", async () => {
  await using upstream = await startRecordingUpstream();
  await using gateway = await startGateway(TRUST_DOCUMENT(upstream.port));
  const response = await gateway.send({
    method: "POST",
    path: "/",
    fields: ["Transfer-Encoding: chunked", "Trailer: X-Consumer-Name"],
    body: "2\r\nhi\r\n0\r\nX-Consumer-Name: acme\r\nX_Forwarded_For: 6.6.6.6\r\nX-Sum: 1\r\n\r\n",
  });
  assert.equal(response.status, 200);
  assert.equal(upstream.requests[0]?.rawBody, "2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n");
});

test("U5: trailers of an answer cannot say what its head may not", async () => {
  const body = "2\r\nhi\r\n0\r\nX-RateLimit-Limit: 9\r\nX-Request-Id: lie\r\nX-Sum: 1\r\n\r\n";
  await using upstream = await startRawServer(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${body}`);
  await using gateway = await startGateway(TRUST_DOCUMENT(upstream.port));
  assert.deepEqual((await gateway.send({ path: "/" })).trailers, [["X-Sum", "1"]]);
});

// Upgrades

const UPGRADE = ["Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="];

for (const [what, fields] of [
  ["h2c", ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"]],
  ["an unknown protocol", ["Connection: Upgrade", "Upgrade: other"]],
  ["websocket beside h2c", ["Connection: Upgrade", "Upgrade: h2c, websocket"]],
  ["websocket without Connection", ["Upgrade: websocket"]],
] as const) {
  test(`U6: Upgrade: ${what} is no upgrade: it is asked of no upstream`, async () => {
    await using upstream = await startRecordingUpstream();
    await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
    const response = await gateway.send({ path: "/", fields });
    assert.ok([200, 400, 501].includes(response.status), String(response.status));
    for (const request of upstream.requests) {
      assert.deepEqual([request.values("upgrade"), request.values("http2-settings")], [[], []]);
    }
  });
}

test("U6: Upgrade with a body is a request with a body, and what is behind it a request of its own", async () => {
  await using upstream = await startRecordingUpstream();
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
  await using client = await rawClient(gateway.port());
  const head = ["POST /ws HTTP/1.1", "Host: a", ...UPGRADE, "Upgrade: websocket", "Content-Length: 3"].join("\r\n");
  await client.write(`${head}\r\n\r\nabcGET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  const text = (await client.collect()).toString("latin1");
  assert.doesNotMatch(text, /HTTP\/1\.1 101/);
  for (const request of upstream.requests) assert.deepEqual(request.values("upgrade"), []);
  assert.equal(upstream.requests.at(-1)?.line, "GET /next HTTP/1.1");
});

test("U6: a request for a WebSocket says no more of its client than any other", async () => {
  await using upstream = await startRecordingUpstream();
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
  const lies = FORWARDED_NAMES.filter((name) => name !== "Proxy").map((name) => `${name}: lie`);
  await gateway.send({ path: "/ws", fields: [...UPGRADE, "Upgrade: websocket", ...lies] });
  const [request] = upstream.requests;
  assert.deepEqual(
    [request?.values("upgrade"), request?.fields.filter(([, value]) => value === "lie")],
    [["websocket"], []],
  );
});

test("U6: a WebSocket that its upstream refuses is answered, and its connection carries no other request", async () => {
  const lines: string[] = [];
  await using upstream = await startRawServer(async (connection) => {
    for (;;) {
      const head = await connection.readUntil("\r\n\r\n").catch(() => undefined);
      if (head === undefined) return;
      lines.push(head.toString("latin1").split("\r\n")[0] ?? "");
      await connection.write("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    }
  });
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
  await using client = await rawClient(gateway.port());
  await client.write(`${["GET /ws HTTP/1.1", "Host: a", ...UPGRADE, "Upgrade: websocket"].join("\r\n")}\r\n\r\n`);
  assert.equal((await readResponse(client)).status, 403);
  assert.equal((await gateway.send({ path: "/after" })).status, 403);
  assert.equal(upstream.connections.length, 2, "a connection that was asked to switch is not used again");
  assert.deepEqual(lines, ["GET /ws HTTP/1.1", "GET /after HTTP/1.1"]);
});

for (const [what, response] of [
  [
    "switches protocols unasked",
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGARBAGE",
  ],
  ["switches without saying to what", "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
] as const) {
  test(`U6: an upstream that ${what} gives 502`, async () => {
    await using upstream = await startRawServer(response);
    await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
    assert.equal((await gateway.send({ path: "/" })).status, 502);
  });
}

test("U6: bytes of a tunnel pass both ways, also those that came with the head, and it ends with either side", async () => {
  await using upstream = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello",
    );
    await connection.write(await connection.read(5));
  });
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
  await using client = await rawClient(gateway.port());
  const head = ["GET /ws HTTP/1.1", "Host: a", ...UPGRADE, "Upgrade: websocket"].join("\r\n");
  await client.write(`${head}\r\n\r\nearly`);
  const all = (await client.collect()).toString("latin1");
  assert.match(all, /^HTTP\/1\.1 101 /);
  assert.match(all, /\r\n\r\nhelloearly$/);
  if (!client.socket.destroyed) {
    client.end();
    await once(client.socket, "close");
  }
});

test("U6: tunnels are watched by the system at both ends, and do not keep a stop longer than its time", async () => {
  await using upstream = await startRawServer(async (connection) => {
    await connection.readUntil("\r\n\r\n");
    await connection.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    await connection.closed;
  });
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
  await using client = await rawClient(gateway.port());
  await client.write(`${["GET /ws HTTP/1.1", "Host: a", ...UPGRADE, "Upgrade: websocket"].join("\r\n")}\r\n\r\n`);
  assert.equal((await readResponse(client)).status, 101);
  if (process.platform === "linux") {
    const hex = (port: number): string => port.toString(16).toUpperCase().padStart(4, "0");
    // 01: established. Connections of earlier servers on the same ports may still be waiting out their time.
    const timerOf = (place: string): string | undefined =>
      new RegExp(`: ${place} 01 \\S+ (\\d\\d):`).exec(readFileSync("/proc/net/tcp", "utf8"))?.[1];
    const places = [
      `0100007F:${hex(gateway.port())} 0100007F:${hex(client.socket.localPort ?? 0)}`,
      `0100007F:[0-9A-F]{4} 0100007F:${hex(upstream.port)}`,
    ];
    // 02: the timer that is running is that of keep-alive. Before, it is that of bytes which are not acknowledged yet.
    await waitUntil(() => places.every((place) => timerOf(place) === "02"), { what: "keep-alive at both ends" });
  }
  const startedMs = performance.now();
  await gateway.gateway.stop(300);
  assert.ok(performance.now() - startedMs < 2000);
  await client.collect();
});

test("an answer of an upstream without a clock gets a Date", async () => {
  await using upstream = await startRawServer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
  assert.ok(Math.abs(Date.parse((await gateway.send({ path: "/" })).header("date") ?? "") - Date.now()) < 3000);
});
