import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import type { TLSSocket } from "node:tls";
import { test } from "node:test";
import type { DocumentInput, Upstream } from "@headworks/gateway-contract";
import {
  credentials,
  rawClient,
  readResponse,
  startHttp2Origin,
  startOrigin,
  startRawServer,
  temporaryDirectory,
  waitUntil,
} from "@headworks/testkit";
import { CertificateAuthority } from "@headworks/tls-authority";
import { compileUpstreamHost, endpointHost, probeHost, tlsName } from "#upstream/endpoint-connection.ts";
import { serving, startGateway } from "./gateway-rig.ts";
import { proxied } from "./route-documents.ts";

const upstreamWith = (more: Partial<Upstream>): Upstream => ({ name: "u", ...more });

for (const [address, port, protocol, expected] of [
  ["10.0.0.1", 80, undefined, "10.0.0.1"],
  ["10.0.0.1", 80, "h2c", "10.0.0.1"],
  ["10.0.0.1", 8080, "http1", "10.0.0.1:8080"],
  ["10.0.0.1", 443, "http1", "10.0.0.1:443"],
  ["api.test", 443, "https", "api.test"],
  ["api.test", 443, "http2", "api.test"],
  ["api.test", 80, "https", "api.test:80"],
  ["API.Test.", 8443, "https", "api.test:8443"],
  ["bücher.test", 80, undefined, "xn--bcher-kva.test"],
  ["::1", 80, undefined, "[::1]"],
  ["[2001:DB8::0:1]", 81, undefined, "[2001:db8::1]:81"],
  ["fe80::1%eth0", 80, undefined, "[fe80::1]"],
] as const) {
  test(`the Host of an endpoint ${address} with port ${port} over ${protocol ?? "http1"} is ${expected}`, () => {
    const document = upstreamWith(protocol === undefined ? {} : { protocol });
    assert.equal(endpointHost(document, { address, port }), expected);
  });
}

for (const [text, expected] of [
  [undefined, "endpoint"],
  ["endpoint", "endpoint"],
  ["preserve", "preserve"],
  ["Shop.Example.", { name: "shop.example" }],
  ["shop.example:8443", { name: "shop.example:8443" }],
  ["bücher.test:80", { name: "xn--bcher-kva.test:80" }],
  ["[::1]:80", { name: "[::1]:80" }],
] as const) {
  test(`upstream_host ${text} is ${JSON.stringify(expected)}`, () => {
    assert.deepEqual(compileUpstreamHost(text), expected);
  });
}

for (const [what, document, name] of [
  ["an endpoint's name", {}, "api.test"],
  ["a name in upstream_host, without its port", { upstream_host: "Shop.test.:8443" }, "shop.test"],
  ["the endpoint's name where clients choose the Host", { upstream_host: "preserve" }, "api.test"],
  ["the endpoint's name where upstream_host is an address", { upstream_host: "10.0.0.1" }, "api.test"],
  ["server_name before all else", { upstream_host: "shop.test", tls: { server_name: "tls.test" } }, "tls.test"],
] as const) {
  test(`TLS asks for ${what}, and the certificate must have that`, () => {
    assert.equal(tlsName(upstreamWith(document), "Api.test."), name);
  });
}

test("an endpoint that was found by a name is asked for by that name, one that is listed by its own", () => {
  const discovery = { hostname: "Svc.Test.", port: 8443 };
  const document = upstreamWith({
    protocol: "https",
    endpoints: [{ address: "10.0.0.9", port: 443 }],
    dns_discovery: discovery,
  });
  const hosts = ["10.0.0.1", "10.0.0.9", "2001:db8::1"].map((address) =>
    endpointHost(document, { address, port: 8443 }),
  );
  assert.deepEqual(hosts, ["svc.test:8443", "10.0.0.9:8443", "svc.test:8443"]);
  assert.deepEqual([tlsName(document, "10.0.0.1"), tlsName(document, "10.0.0.9")], ["svc.test", undefined]);
  const records = upstreamWith({ dns_discovery: { ...discovery, record_type: "SRV" } });
  assert.equal(endpointHost(records, { address: "a.test", port: 81 }), "a.test:81");
});

test("TLS asks for no address", () => {
  for (const address of ["10.0.0.1", "::1", "[::1]"]) assert.equal(tlsName(upstreamWith({}), address), undefined);
});

test("probes ask for the host that the document says for them, then for the name in upstream_host, then for the endpoint", () => {
  const endpoint = { address: "10.0.0.1", port: 80 };
  assert.equal(probeHost(upstreamWith({ upstream_host: "preserve" }), endpoint), "10.0.0.1");
  assert.equal(probeHost(upstreamWith({ upstream_host: "shop.test" }), endpoint), "shop.test");
  const host = "Health.test.";
  assert.equal(
    probeHost(upstreamWith({ upstream_host: "shop.test", active_health: { host } }), endpoint),
    "health.test",
  );
});

/** A document with a route for each value, on the upstream or on a service of it. */
function documentFor(port: number, protocol: "http1" | "h2c" = "http1"): DocumentInput {
  const endpoints = [{ address: "127.0.0.1", port }];
  return {
    upstreams: [
      { name: "plain", endpoints, protocol },
      { name: "kept", endpoints, protocol, upstream_host: "preserve" },
      { name: "named", endpoints, protocol, upstream_host: "named.test" },
    ],
    services: [
      { name: "plain", upstream: "plain" },
      { name: "kept", upstream: "kept" },
      { name: "named", upstream: "named" },
      { name: "over", upstream: "kept", upstream_host: "over.test:81" },
      { name: "back", upstream: "named", upstream_host: "endpoint" },
      {
        name: "split",
        split: {
          targets: [
            { upstream: "kept", weight: 0 },
            { upstream: "named", weight: 1 },
          ],
        },
      },
    ],
    routes: ["plain", "kept", "named", "over", "back", "split"].map((name) => proxied(name, `/${name}`)),
  };
}

const HOSTS = (port: number): readonly (readonly [path: string, host: string])[] => [
  ["/plain", `127.0.0.1:${port}`],
  ["/kept", "Shop.Example.:8080"],
  ["/named", "named.test"],
  ["/over", "over.test:81"],
  ["/back", `127.0.0.1:${port}`],
  ["/split", "named.test"],
];

test("upstream_host: the endpoint's, the client's as it came, or a name; a service comes before its upstream", async () => {
  await using origin = await startOrigin({ handler: (request, response) => void response.end(request.headers.host) });
  await using gateway = await startGateway(documentFor(origin.port));
  for (const [path, host] of HOSTS(origin.port)) {
    const response = await gateway.send({ path, fields: ["Host: Shop.Example.:8080", "X-Forwarded-Host: lie"] });
    assert.equal(response.body.toString(), host, path);
  }
  // The Host is one, and the first field.
  assert.ok(origin.requests.every(({ rawHeaders }) => rawHeaders[0] === "Host"));
  await using client = await rawClient(gateway.port());
  await client.write("GET /kept HTTP/1.0\r\n\r\n");
  const old = await readResponse(client);
  assert.equal(old.body.toString(), `127.0.0.1:${origin.port}`, "where the client named none, the endpoint's");
});

test("upstream_host over HTTP/2 is :authority", async () => {
  await using origin = await startHttp2Origin((stream, headers) => {
    stream.respond({ ":status": 200 });
    stream.end(headers[":authority"] ?? "");
  });
  await using gateway = await startGateway(documentFor(origin.port, "h2c"));
  for (const [path, host] of HOSTS(origin.port)) {
    const response = await gateway.send({ path, fields: ["Host: Shop.Example.:8080"] });
    assert.equal(response.body.toString(), host, path);
  }
  assert.ok(origin.requests.every((section) => !section.includes("host")));
});

test("upstream_host holds for WebSockets too", async () => {
  const heads: string[] = [];
  await using origin = await startRawServer(async (connection) => {
    heads.push((await connection.readUntil("\r\n\r\n")).toString("latin1"));
    await connection.write("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
  });
  await using gateway = await startGateway(documentFor(origin.port));
  const upgrade = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];
  const fields = ["Host: shop.example", ...upgrade, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="];
  for (const path of ["/kept", "/named"]) await gateway.send({ path, fields });
  assert.deepEqual(
    heads.map((head) => /^Host: (.*)\r$/m.exec(head)?.[1]),
    ["shop.example", "named.test"],
  );
});

test("a retry has the Host of its endpoint, or the same one where it is preserved", async () => {
  const failing = async () =>
    await startOrigin({ handler: (request, response) => void response.writeHead(503).end(request.headers.host) });
  await using first = await failing();
  await using second = await failing();
  const retries = { attempts: 1, retry_statuses: [503], budget_percent: 100 };
  for (const [host, expected] of [
    ["endpoint", [`127.0.0.1:${first.port}`, `127.0.0.1:${second.port}`]],
    ["preserve", ["shop.example", "shop.example"]],
  ] as const) {
    await using gateway = await startGateway({
      ...serving("api", [first.port, second.port], { upstream_host: host, retries }),
      routes: [proxied("api")],
    });
    const [before, beforeSecond] = [first.requests.length, second.requests.length];
    await gateway.send({ path: "/", fields: ["Host: shop.example"] });
    const seen = [first.requests.at(before), second.requests.at(beforeSecond)].map((request) => request?.rawHeaders[1]);
    assert.deepEqual(seen, expected);
  }
});

test("probes of active_health ask for the same host as requests", async () => {
  const asked = new Set<string>();
  await using origin = await startOrigin({
    handler: (request, response) => {
      asked.add(request.headers.host ?? "");
      response.end();
    },
  });
  const active = { interval_ms: 30, timeout_ms: 30, jitter_ms: 0 };
  const endpoints = [{ address: "127.0.0.1", port: origin.port }];
  await using _gateway = await startGateway({
    upstreams: [
      { name: "a", endpoints, health: {}, active_health: active, upstream_host: "shop.test" },
      {
        name: "b",
        endpoints,
        health: {},
        active_health: { ...active, host: "health.test:81" },
        upstream_host: "preserve",
      },
    ],
    routes: [],
  });
  await waitUntil(() => asked.has("shop.test") && asked.has("health.test:81"), { what: "both probes" });
  assert.deepEqual([...asked].toSorted(), ["health.test:81", "shop.test"]);
});

test("over TLS the name in upstream_host is asked for and verified; what clients ask for is not", async () => {
  const authority = CertificateAuthority.create();
  await using directory = await temporaryDirectory();
  const caFile = directory.file("ca.pem");
  await writeFile(caFile, authority.certificatePem);
  await using origin = await startOrigin({
    tls: { authority, names: { dns: ["shop.test"] } },
    handler: (request, response) => {
      response.end(`${(request.socket as TLSSocket).servername} ${request.headers.host}`);
    },
  });
  const { cert, key } = credentials(authority, { dns: ["shop.test"] });
  await using http2 = await startHttp2Origin(
    (stream, headers) => {
      stream.respond({ ":status": 200 });
      stream.end(`${(stream.session?.socket as TLSSocket | undefined)?.servername} ${headers[":authority"]}`);
    },
    { tls: { cert, key } },
  );
  for (const [protocol, port] of [
    ["https", origin.port],
    ["http2", http2.port],
  ] as const) {
    for (const [upstream_host, status, said] of [
      ["shop.test", 200, "shop.test shop.test"],
      ["other.test", 502, undefined],
      ["preserve", 502, undefined],
    ] as const) {
      await using gateway = await startGateway({
        ...serving("api", [port], { protocol, upstream_host, trusted_ca_file: caFile }),
        routes: [proxied("api")],
      });
      const response = await gateway.send({ path: "/", fields: ["Host: shop.test"] });
      assert.equal(response.status, status, `${protocol} ${upstream_host}`);
      if (said !== undefined) assert.equal(response.body.toString(), said);
    }
  }
});
