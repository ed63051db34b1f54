import assert from "node:assert/strict";
import { test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import { http2Client, rawClient, readResponse, startOrigin, startRawServer } from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";

const ROUTES: DocumentInput["routes"] = [
  { name: "api", service: "api", match: { path: { type: "prefix", value: "/api" } }, action: { type: "proxy" } },
  {
    name: "closed",
    service: "api",
    auth_required: true,
    match: { path: { type: "prefix", value: "/closed" } },
    action: { type: "proxy" },
  },
];

const valuesOf = (raw: readonly string[], lowerName: string): string[] =>
  raw.filter((_, at) => at % 2 === 1 && raw[at - 1]?.toLowerCase() === lowerName);

/** What a client sends, and the correlation id that comes of it; undefined: the id of the request. */
const SENT: readonly (readonly [what: string, fields: string[], expected: string | undefined])[] = [
  ["nothing", [], undefined],
  ["an id of the request only", ["X-Request-Id: r-1"], "r-1"],
  ["a correlation id", ["X-Correlation-Id: c-1"], "c-1"],
  ["both", ["X-Request-Id: r-1", "x-correlation-id: c-1"], "c-1"],
  ["one of 128 characters", [`X-Correlation-Id: ${"c".repeat(128)}`], "c".repeat(128)],
  ["one that is too long", [`X-Correlation-Id: ${"c".repeat(129)}`], undefined],
  ["one with a space", ["X-Correlation-Id: c 1"], undefined],
  ["one that is not ASCII", ["X-Correlation-Id: \xe4"], undefined],
  ["an empty one", ["X-Correlation-Id:"], undefined],
  ["two", ["X-Correlation-Id: c-1", "X-Correlation-Id: c-2"], "c-1"],
  ["one that Connection names", ["X-Correlation-Id: c-1", "Connection: X-Correlation-Id"], "c-1"],
  ["one with an underscore", ["X_Correlation_Id: c-1"], undefined],
];
for (const [what, fields, expected] of SENT) {
  test(`X-Correlation-Id: a client that sends ${what} has one on its answer, and the upstream has the same`, async () => {
    await using origin = await startOrigin({
      handler: (_request, response) => response.writeHead(200, { "X-Correlation-Id": "of the upstream" }).end(),
    });
    await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: ROUTES });
    const response = await gateway.send({ path: "/api", fields });
    const echoed = valuesOf(response.headers.flat(), "x-correlation-id");
    const requestId = response.header("x-request-id");
    assert.deepEqual(echoed, [expected ?? requestId]);
    const seen = origin.requests[0]?.rawHeaders ?? [];
    assert.deepEqual(
      [valuesOf(seen, "x-correlation-id"), valuesOf(seen, "x-request-id"), valuesOf(seen, "x_correlation_id")],
      [echoed, [requestId], []],
    );
    const line = gateway.log.find(({ msg }) => msg === "access");
    assert.deepEqual(
      [line?.["request_id"], line?.["correlation_id"]],
      [requestId, echoed[0] === requestId ? undefined : echoed[0]],
    );
  });
}

test("X-Correlation-Id: answers that the gateway makes itself have it, and those to bytes that are no request too", async () => {
  await using gateway = await startGateway({ ...serving("api", [1]), routes: ROUTES });
  const fields = ["X-Correlation-Id: c-1"];
  for (const [path, status] of [
    ["/healthz", 200],
    ["/metrics", 200],
    ["/none", 404],
    ["/closed", 401],
    ["/api", 502],
    ["/api/../x", 400],
  ] as const) {
    const response = await gateway.send({ path, fields });
    assert.deepEqual([response.status, response.header("x-correlation-id")], [status, "c-1"], path);
  }
  const malformed = await gateway.send({ path: "/api", fields: [...fields, "Content-Length: x"] });
  assert.equal(malformed.status, 400);
  assert.match(malformed.header("x-correlation-id") ?? "", /^req-/);
  assert.equal(malformed.header("x-correlation-id"), malformed.header("x-request-id"));
});

test("X-Correlation-Id: it passes over HTTP/2, with a switch of protocols, and not as a trailer", async () => {
  const trailing =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Correlation-Id: u\r\nX-Sum: 1\r\n\r\n";
  await using origin = await startRawServer(async (connection) => {
    const head = (await connection.readUntil("\r\n\r\n")).toString();
    const isUpgrade = /upgrade: websocket/i.test(head);
    await connection.write(
      isUpgrade ? "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" : trailing,
    );
  });
  await using gateway = await startGateway({ ...serving("api", [origin.port]), routes: ROUTES });
  await using client = await http2Client(gateway.port());
  const response = await client.fetch({ ":path": "/api", "x-correlation-id": "c-2" });
  assert.deepEqual(
    [response.headers["x-correlation-id"], response.trailers?.["x-correlation-id"], response.trailers?.["x-sum"]],
    ["c-2", undefined, "1"],
  );
  await using socket = await rawClient(gateway.port());
  await socket.write(
    "GET /api HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\nX-Correlation-Id: c-3\r\n\r\n",
  );
  const switched = await readResponse(socket);
  assert.deepEqual([switched.status, switched.header("x-correlation-id")], [101, "c-3"]);
});

test("X-Correlation-Id: where request_id_header names another field it goes beside that", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    request_id_header: "X-Trace",
    routes: ROUTES,
  });
  const response = await gateway.send({ path: "/api", fields: ["X-Trace: t-1"] });
  assert.deepEqual([response.header("x-trace"), response.header("x-correlation-id")], ["t-1", "t-1"]);
});
