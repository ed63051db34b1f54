import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { after, before, test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import {
  http2Client,
  rawClient,
  readResponse,
  startRawServer,
  type RawServer,
  waitUntil,
  websocketFields,
} from "@headworks/testkit";
import { startGateway, type TestGateway } from "./gateway-rig.ts";
import { proxied } from "./route-documents.ts";

const ACCEPT = "application/vnd.chat.v1+json";
const KEY = "dGhlIHNhbXBsZSBub25jZQ==";

const proofOf = (key: string): string =>
  createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");

/** Switches protocols, with fields that a route may have rules about, and says `hi`. */
const startSwitching = async (): Promise<RawServer> =>
  await startRawServer(async (connection) => {
    const head = (await connection.readUntil("\r\n\r\n")).toString("latin1");
    const key = /^sec-websocket-key: (.*)\r$/im.exec(head)?.[1];
    if (key === undefined) return connection.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    const fields = [
      "Connection: Upgrade",
      "Upgrade: websocket",
      `Sec-WebSocket-Accept: ${proofOf(key)}`,
      "Sec-WebSocket-Protocol: chat",
      "Content-Length: 7",
      'Link: </a>; rel="next"',
      "Deprecation: true",
      "X-Private: yes",
    ];
    await connection.write(`HTTP/1.1 101 Switching Protocols\r\n${fields.join("\r\n")}\r\n\r\nhi`);
    await connection.collect(20_000);
  });

const documentFor = (port: number): DocumentInput => ({
  via: { answers: true },
  upstreams: ["one", "two"].map((name) => ({ name, endpoints: [{ address: "127.0.0.1", port }] })),
  services: [
    { name: "api", split: { targets: [{ upstream: "one" }, { upstream: "two" }] }, sticky: { cookie: "place" } },
  ],
  policies: [{ name: "some", rate_limits: [{ selector: ["route"], requests_per: { hour: 100 } }] }],
  routes: [
    proxied("api", "/", {
      match: { path: { type: "prefix", value: "/" }, accept: ACCEPT },
      policies: ["some"],
      cors: { allowed_origins: ["https://app.test"] },
      compression: { algorithms: ["gzip"] },
      security_headers: { nosniff: true },
      deprecation: { since: "Thu, 01 Jan 2026 00:00:00 GMT", uri: "https://example.com/moved" },
      transforms: {
        response: {
          headers: {
            set: { "X-Edge": "sluice", "Sec-WebSocket-Protocol": "other" },
            add: { "Sec-WebSocket-Extensions": "permessage-deflate" },
            remove: ["X-Private", "Sec-WebSocket-Accept"],
          },
        },
      },
    }),
  ],
});

let origin: RawServer;
let gateway: TestGateway;
before(async () => {
  origin = await startSwitching();
  gateway = await startGateway(documentFor(origin.port));
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await origin.close();
});

/** What the rules of the route say in every answer, by the lower-case names of its fields. */
function assertRules(valueOf: (name: string) => string | undefined): void {
  assert.equal(valueOf("deprecation"), "@1767225600");
  assert.match(valueOf("link") ?? "", /rel="?next"?.*rel="deprecation"/);
  assert.match(valueOf("vary") ?? "", /Accept(?!-)/);
  assert.equal(valueOf("x-content-type-options"), "nosniff");
  assert.match(valueOf("set-cookie") ?? "", /^place=/);
  assert.equal(valueOf("x-ratelimit-limit"), "100");
  assert.equal(valueOf("access-control-allow-origin"), "https://app.test");
  assert.match(valueOf("via") ?? "", /^1\.1 gateway-/);
  assert.deepEqual([valueOf("x-edge"), valueOf("x-private")], ["sluice", undefined]);
  assert.match(valueOf("x-request-id") ?? "", /^req-/);
  assert.equal(valueOf("sec-websocket-protocol"), "chat");
  for (const name of ["sec-websocket-extensions", "content-length", "transfer-encoding", "content-encoding"]) {
    assert.equal(valueOf(name), undefined, name);
  }
}

test("every response of a route says what the route's rules add: a 101 as well, and its handshake is the upstream's", async () => {
  await using client = await rawClient(gateway.port());
  const fields = [
    "Host: gateway.test",
    "Connection: Upgrade",
    "Upgrade: websocket",
    `Sec-WebSocket-Key: ${KEY}`,
    "Sec-WebSocket-Version: 13",
    `Accept: ${ACCEPT}`,
    "Accept-Encoding: gzip",
    "Origin: https://app.test",
  ];
  await client.write(`GET /chat HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n`);
  const response = await readResponse(client);
  assert.equal(response.status, 101);
  const valuesOf = (name: string): string[] =>
    response.headers.filter(([known]) => known.toLowerCase() === name).map(([, value]) => value);
  assertRules((name) => (valuesOf(name).length === 0 ? undefined : valuesOf(name).join(", ")));
  assert.deepEqual([valuesOf("connection"), valuesOf("upgrade")], [["Upgrade"], ["websocket"]]);
  assert.deepEqual(valuesOf("sec-websocket-accept"), [proofOf(KEY)]);
  assert.equal((await client.read(2)).toString(), "hi");
});

test("RFC 8441: the 200 that begins a WebSocket over HTTP/2 says what the route's rules add", async () => {
  await using client = await http2Client(gateway.port());
  const stream = client.session.request({
    ...websocketFields("http", "gateway.test", "/chat"),
    accept: ACCEPT,
    "accept-encoding": "gzip",
    origin: "https://app.test",
  });
  stream.on("error", () => undefined);
  const [head] = (await once(stream, "response")) as [Record<string, string | string[]>];
  assert.equal(head[":status"], 200);
  assertRules((name) => (head[name] === undefined ? undefined : [head[name]].flat().join(", ")));
  for (const name of ["connection", "upgrade", "sec-websocket-accept"]) assert.equal(head[name], undefined, name);
  const [hi] = (await once(stream, "data")) as [Buffer];
  assert.equal(hi.toString(), "hi");
  stream.close(8);
});

test("a WebSocket on a deprecated route is counted once, as 1xx", async () => {
  await using counting = await startGateway(documentFor(origin.port));
  await using client = await rawClient(counting.port());
  const fields = `Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: ${KEY}\r\nAccept: ${ACCEPT}`;
  await client.write(`GET /chat HTTP/1.1\r\n${fields}\r\n\r\n`);
  assert.equal((await readResponse(client)).status, 101);
  client.destroy();
  await waitUntil(() => counting.log.some(({ msg }) => msg === "access"));
  const metrics = (await counting.send({ path: "/metrics" })).body.toString();
  assert.match(metrics, /^gateway_deprecated_requests_total\{route="api",consumer="anonymous"\} 1$/m);
  assert.match(metrics, /^requests_total\{route="api",listener="public",status_class="1xx"\} 1$/m);
});
