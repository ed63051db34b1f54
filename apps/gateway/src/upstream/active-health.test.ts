import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test, type TestContext } from "node:test";
import type { ActiveHealth as ActiveHealthBlock, Upstream } from "@headworks/gateway-contract";
import {
  credentials,
  FLAG,
  FRAME,
  frame,
  section,
  startHttp2Origin,
  startOrigin,
  startRawHttp2Origin,
  startRawServer,
  temporaryDirectory,
  u32,
  waitUntil,
  type RawResponder,
} from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { ActiveHealth } from "./active-health.ts";
import { EndpointConnections } from "./endpoint-connection.ts";
import { UpstreamRegistry, type UpstreamGroup } from "./upstream-registry.ts";

const QUICK: ActiveHealthBlock = { interval_ms: 20, timeout_ms: 20, jitter_ms: 0 };

function rig(context: TestContext, ports: readonly number[], block: ActiveHealthBlock, more: Partial<Upstream> = {}) {
  const seen: string[] = [];
  const registry = new UpstreamRegistry({
    nowMs: () => performance.now(),
    emit: (kind) => void seen.push(kind),
  });
  const publish = (active_health: ActiveHealthBlock = block): UpstreamGroup => {
    const document: Upstream = {
      name: "u",
      endpoints: ports.map((port) => ({ address: "127.0.0.1", port })),
      health: { eject_ms: 3_600_000 },
      active_health,
      ...more,
    };
    const group = registry.prepare(document);
    registry.published([document]);
    health.follow(registry.all);
    return group;
  };
  const health = new ActiveHealth(new EndpointConnections());
  context.after(() => health.stop());
  return { health, seen, publish, group: publish() };
}

const answering = (status: number, reason = "x") =>
  `HTTP/1.1 ${status} ${reason}\r\nLocation: /\r\nContent-Length: 0\r\n\r\n`;

const RESPONSES: readonly (readonly [string, string, ActiveHealthBlock, boolean])[] = [
  ["200", answering(200), {}, true],
  ["204", answering(204), {}, true],
  ["a redirect", answering(302), {}, false],
  ["404", answering(404), {}, false],
  ["503", answering(503), {}, false],
  ["an expected 404", answering(404), { expected_statuses: ["404"] }, true],
  ["an expected class", answering(418), { expected_statuses: ["2xx", "4xx"] }, true],
  ["200 where 204 is expected", answering(200), { expected_statuses: ["204"] }, false],
  ["103 before 200", `HTTP/1.1 103 Early Hints\r\n\r\n${answering(200)}`, {}, true],
  ["a body that never ends", "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nx", {}, true],
  ["a head that is too long", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(270_000)}\r\n\r\n`, {}, false],
  ["endless informational responses", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100), {}, false],
  ["something that is not HTTP", "SSH-2.0-x\r\n", {}, false],
  ["half a head", "HTTP/1.1 200 O", {}, false],
  ["nothing", "", {}, false],
];
for (const [what, bytes, more, isGood] of RESPONSES) {
  test(`active health: an endpoint that sends ${what} is ${isGood ? "healthy" : "ejected"}`, async (context) => {
    await using server = await startRawServer(bytes);
    const { group } = rig(context, [server.port], { ...QUICK, timeout_ms: 2000, ...more });
    await waitUntil(() => server.connections.length > 4, { what: "four probes" });
    assert.equal(group.endpoints[0]?.health, isGood ? "healthy" : "ejected");
  });
}

test("active health: a probe is a GET of the path on a connection of its own, with the endpoint's own name", async (context) => {
  await using origin = await startOrigin({ handler: (_request, response) => void response.end() });
  rig(context, [origin.port], { ...QUICK, path: "/alive?deep" });
  await waitUntil(() => origin.requests.length >= 3);
  for (const { method, url, rawHeaders } of origin.requests) {
    assert.deepEqual(
      [method, url, rawHeaders.slice(0, 2)],
      ["GET", "/alive?deep", ["Host", `127.0.0.1:${origin.port}`]],
    );
  }
  assert.ok(origin.connectionCount >= 3);
});

test("active health: no response within timeout_ms is a failure, and so is a refused connection", async (context) => {
  await using silent = await startRawServer(async (connection) => void (await connection.closed));
  const gone = await startRawServer("");
  await gone.close();
  const { group, seen } = rig(context, [silent.port, gone.port], { ...QUICK, failure_threshold: 2 });
  await waitUntil(() => group.endpoints.every(({ health }) => health === "ejected"), { what: "both ejections" });
  assert.deepEqual(seen, ["endpoint_ejected", "endpoint_ejected"]);
  await waitUntil(() => silent.connections.length >= 4);
  assert.equal(seen.length, 2, "told once");
});

test("active health: success_threshold good probes in a row end an ejection early", async (context) => {
  let status = 500;
  await using origin = await startOrigin({ handler: (_request, response) => void response.writeHead(status).end() });
  const { group, seen } = rig(context, [origin.port], { ...QUICK, success_threshold: 3 });
  const [endpoint] = group.endpoints;
  await waitUntil(() => endpoint?.health === "ejected");
  status = 200;
  const before = origin.requests.length;
  await waitUntil(() => endpoint?.health === "healthy");
  assert.ok(origin.requests.length - before >= 3);
  assert.deepEqual(seen, ["endpoint_ejected", "endpoint_recovered"]);
});

test("active health: tcp only connects, over TLS with a handshake", async (context) => {
  await using plain = await startRawServer(async (connection) => void (await connection.closed));
  const open = rig(context, [plain.port], { ...QUICK, kind: "tcp" });
  await waitUntil(() => plain.connections.length >= 4);
  assert.equal(open.group.endpoints[0]?.health, "healthy");
  const tls = rig(context, [plain.port], { ...QUICK, kind: "tcp" }, { protocol: "https" });
  await waitUntil(() => tls.group.endpoints[0]?.health === "ejected", { what: "no handshake" });
});

test("active health: endpoints over TLS are probed over TLS, and an untrusted certificate is a failure", async (context) => {
  await using origin = await startOrigin({ tls: true, handler: (_request, response) => void response.end() });
  const { group } = rig(context, [origin.port], { ...QUICK, timeout_ms: 2000 }, { protocol: "https" });
  await waitUntil(() => group.endpoints[0]?.health === "ejected", { what: "the ejection" });
  assert.equal(origin.requests.length, 0);
});

test("active health: a reload restarts the loops but keeps their counts, and stop ends them", async (context) => {
  let status = 500;
  await using origin = await startOrigin({ handler: (_request, response) => void response.writeHead(status).end() });
  const { health, group, publish } = rig(context, [origin.port], { ...QUICK, failure_threshold: 1_000_000 });
  await waitUntil(() => origin.requests.length >= 3);
  publish({ ...QUICK, failure_threshold: 4, path: "/other" });
  await waitUntil(() => group.endpoints[0]?.health === "ejected");
  const after = origin.requests.filter(({ url }) => url === "/other").length;
  // The reload may have cancelled the last probe before it.
  assert.ok(after <= 2, `the streak continued, ${after} more were enough`);
  status = 200;
  health.stop();
  const stopped = origin.requests.length;
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.ok(origin.requests.length <= stopped + 1);
  assert.equal(group.endpoints[0]?.health, "ejected");
});

test("active health: a thousand endpoints are probed with bounded concurrency", async (context) => {
  let running = 0;
  let max = 0;
  await using server = await startRawServer(async (connection) => void (await connection.closed));
  const seen = new Set<string>();
  const registry = new UpstreamRegistry({ nowMs: () => performance.now(), emit: () => undefined });
  const document: Upstream = {
    name: "u",
    endpoints: Array.from({ length: 1000 }, (_, at) => ({
      address: `127.1.${at >> 8}.${at & 255}`,
      port: server.port,
    })),
    health: {},
    active_health: { interval_ms: 100, timeout_ms: 50, jitter_ms: 0, failure_threshold: 1 },
  };
  registry.prepare(document);
  registry.published([document]);
  const connections = new EndpointConnections();
  const health = new ActiveHealth(
    {
      optionsOf: (upstream, endpoint) => {
        seen.add(endpoint.key);
        running += 1;
        max = Math.max(max, running);
        return { ...connections.optionsOf(upstream, endpoint), address: "127.0.0.1" };
      },
    },
    { maxProbes: 100 },
  );
  context.after(() => health.stop());
  for (const endpoint of registry.all[0]?.endpoints ?? []) {
    const probed = endpoint.probed.bind(endpoint);
    endpoint.probed = (...verdict) => {
      running -= 1;
      probed(...verdict);
    };
  }
  health.follow(registry.all);
  await waitUntil(() => seen.size === 1000, { what: "a probe of every endpoint", timeoutMs: 20_000 });
  await waitUntil(() => registry.all[0]?.endpoints.every(({ health: state }) => state === "ejected"), {
    what: "a verdict for every endpoint",
    timeoutMs: 20_000,
  });
  assert.ok(max <= 101 && max > 50, `${max} at once`);
});

test("active health: an h2c endpoint is probed over HTTP/2, and its status counts", async (context) => {
  let status = 200;
  await using origin = await startHttp2Origin((stream) => stream.respond({ ":status": status }, { endStream: true }));
  const { group } = rig(context, [origin.port], { ...QUICK, timeout_ms: 2000, path: "/alive" }, { protocol: "h2c" });
  await waitUntil(() => origin.requests.length > 4, { what: "four probes" });
  assert.equal(group.endpoints[0]?.health, "healthy");
  const asked = [":method GET", ":scheme http", `:authority 127.0.0.1:${origin.port}`, ":path /alive"];
  assert.equal(origin.requests[0]?.slice(0, 8).join(" "), asked.join(" "));
  assert.ok(origin.sessions.length >= 4, "a connection for each probe");
  status = 503;
  await waitUntil(() => group.endpoints[0]?.health === "ejected", { what: "the ejection" });
});

test("active health: an HTTP/2 endpoint over TLS is probed over HTTP/2, and tcp only checks ALPN", async (context) => {
  await using directory = await temporaryDirectory();
  const authority = CertificateAuthority.create();
  await writeFile(directory.file("ca.pem"), authority.certificatePem);
  const tls = { trusted_ca_file: directory.file("ca.pem"), server_name: "localhost" };
  await using origin = await startHttp2Origin((stream) => stream.respond({ ":status": 200 }, { endStream: true }), {
    tls: credentials(authority),
  });
  for (const kind of ["http", "tcp"] as const) {
    const before = origin.sessions.length;
    const { group } = rig(context, [origin.port], { ...QUICK, timeout_ms: 2000, kind }, { protocol: "http2", tls });
    await waitUntil(() => origin.sessions.length > before + 4, { what: "four probes" });
    assert.equal(group.endpoints[0]?.health, "healthy", kind);
  }
  await using old = await startOrigin({ tls: true, handler: (_request, response) => void response.end() });
  const { group } = rig(context, [old.port], { ...QUICK, kind: "tcp" }, { protocol: "http2", tls });
  await waitUntil(() => group.endpoints[0]?.health === "ejected", { what: "the ejection of HTTP/1.1" });
});

const interim = (stream: number): Buffer =>
  frame(FRAME.headers, FLAG.endHeaders, stream, section([[":status", "103"]]));
const HTTP2_RESPONSES: readonly (readonly [string, RawResponder, boolean])[] = [
  [
    "103 before 200",
    (stream, write) =>
      write(
        interim(stream),
        frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, stream, section([[":status", "200"]])),
      ),
    true,
  ],
  [
    "no status",
    (stream, write) => write(frame(FRAME.headers, FLAG.endHeaders, stream, section([["x-a", "b"]]))),
    false,
  ],
  ["a reset", (stream, write) => write(frame(FRAME.reset, 0, stream, u32(2))), false],
  ["a cut", (_stream, _write, connection) => connection.destroy(), false],
  ["nothing but 103", (stream, write) => write(interim(stream)), false],
];
for (const [what, response, isGood] of HTTP2_RESPONSES) {
  test(`active health: an h2c endpoint that responds with ${what} is ${isGood ? "healthy" : "ejected"}`, async (context) => {
    await using server = await startRawHttp2Origin(response);
    const { group } = rig(context, [server.port], { ...QUICK, timeout_ms: 200 }, { protocol: "h2c" });
    await waitUntil(() => server.connections.length > 4, { what: "four probes" });
    assert.equal(group.endpoints[0]?.health, isGood ? "healthy" : "ejected");
  });
}
