import assert from "node:assert/strict";
import { test } from "node:test";
import { rawClient, readResponse, startOrigin, startRawServer, waitUntil } from "@headworks/testkit";
import { serving, startGateway } from "./gateway-rig.ts";
import { errorOf, proxied, responding } from "./route-documents.ts";

test("limits: header lines and their bytes over the limit are 431, naming what was measured and what is allowed", async () => {
  await using gateway = await startGateway({
    routes: [
      responding("lines", "/lines", { limits: { max_header_count: 3 } }),
      responding("bytes", "/bytes", { limits: { max_header_bytes: 40 } }),
    ],
  });
  for (const [path, fields, status, message] of [
    ["/lines", ["A: 1", "B: 2"], 200, ""],
    ["/lines", ["A: 1", "A: 1", "A: 1"], 431, "The header is larger than allowed: 4 lines, at most 3"],
    // Host: gateway.test takes 16 of them.
    ["/bytes", [`A: ${"x".repeat(23)}`], 200, ""],
    ["/bytes", [`A: ${"x".repeat(24)}`], 431, "The header is larger than allowed: 41 bytes, at most 40"],
    ["/bytes", [`A: ${"é".repeat(24)}`], 431, "The header is larger than allowed: 41 bytes, at most 40"],
  ] as const) {
    const response = await gateway.send({ path, fields });
    assert.equal(response.status, status, `${path} ${fields.join(" ")}`);
    if (status === 431) {
      assert.deepEqual([errorOf(response).code, errorOf(response).message], ["request_headers_too_large", message]);
    }
  }
});

test("limits: hundreds of fields of a response pass, as with curl and browsers; thousands, or 256 KiB, are 502", async () => {
  await using upstream = await startRawServer(async (connection) => {
    const [, count = "", size = ""] =
      /^GET \/(\d+)\/(\d+) /.exec((await connection.readUntil("\r\n\r\n")).toString("latin1")) ?? [];
    const fields = Array.from({ length: Number(count) }, (_, at) => `X-${at}: ${"y".repeat(Number(size))}\r\n`);
    await connection.write(`HTTP/1.1 200 OK\r\n${fields.join("")}Content-Length: 2\r\n\r\nok`);
  });
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
  for (const [count, size, status] of [
    [261, 1, 200],
    [1999, 1, 200],
    [2000, 1, 502],
    [20, 12_000, 200],
    [20, 14_000, 502],
  ] as const) {
    const response = await gateway.send({ path: `/${count}/${size}` });
    assert.equal(response.status, status, `${count} fields of ${size} bytes`);
    if (status === 200) assert.equal(response.headers.filter(([name]) => name.startsWith("X-")).length > count, true);
  }
});

test("limits: a declared length over the limit is 413 before anything reaches the upstream", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [
      proxied("api", "/", { limits: { max_body_bytes: 10 }, deprecation: { since: "Sun, 06 Nov 1994 08:49:37 GMT" } }),
    ],
  });
  assert.equal((await gateway.send({ method: "POST", path: "/", body: "0123456789" })).status, 200);
  const response = await gateway.send({
    method: "POST",
    path: "/",
    fields: ["Content-Length: 11"],
    body: "01234567890",
  });
  assert.equal(response.status, 413);
  assert.equal(response.header("deprecation"), undefined, "a 413 is no answer of the action");
  assert.deepEqual(
    [errorOf(response).code, errorOf(response).message],
    ["request_body_too_large", "The body is larger than allowed: 11 bytes, at most 10"],
  );
  assert.equal(origin.requests.length, 1);
});

test("limits: a client that waits for 100 Continue gets its 413 without sending the body", async () => {
  await using gateway = await startGateway({
    ...serving("api", [9]),
    routes: [proxied("api", "/", { limits: { max_body_bytes: 10 } })],
  });
  await using client = await rawClient(gateway.port());
  await client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n");
  const response = await readResponse(client, "POST");
  assert.deepEqual([response.status, response.interim], [413, []]);
});

test("limits: a streamed body over the limit is 413 while no answer was begun, and the upstream sees it cut", async () => {
  await using upstream = await startRawServer(async (connection) => void (await connection.collect()));
  await using gateway = await startGateway({
    ...serving("api", [upstream.port]),
    routes: [
      proxied("api", "/", { limits: { max_body_bytes: 10 }, deprecation: { since: "Sun, 06 Nov 1994 08:49:37 GMT" } }),
    ],
  });
  await using client = await rawClient(gateway.port());
  await client.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n");
  await waitUntil(() => upstream.connections.length === 1);
  await client.write("3\r\n890\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
  const response = await readResponse(client, "POST");
  assert.equal(response.status, 413);
  assert.equal(response.header("deprecation"), undefined);
  assert.match(errorOf(response).message, /11 bytes so far, at most 10/);
  const seen = (await upstream.connections[0]?.collect().catch(() => Buffer.alloc(0)))?.toString() ?? "";
  assert.ok(!seen.includes("0\r\n\r\n"), "the upstream must not take it for whole");
  assert.equal((await client.collect()).length, 0, "the connection ends behind the refusal");
});

test("limits: a streamed body over the limit after the answer began cuts the exchange", async () => {
  await using upstream = await startRawServer(async (connection) => {
    await connection.readUntil("01234567\r\n");
    await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun");
    await connection.collect().catch(() => undefined);
  });
  await using gateway = await startGateway({
    ...serving("api", [upstream.port]),
    routes: [proxied("api", "/", { limits: { max_body_bytes: 10 } })],
  });
  await using client = await rawClient(gateway.port());
  await client.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n");
  await client.readUntil("begun");
  await client.write("3\r\n890\r\n");
  const rest = await client.collect().catch(() => Buffer.alloc(0));
  assert.equal(rest.length, 0, "neither a second answer nor the rest of the first");
});

test("limits: a streamed body of exactly the limit passes", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/", { limits: { max_body_bytes: 10 } })],
  });
  await using client = await rawClient(gateway.port());
  await client.write(
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n2\r\n89\r\n0\r\n\r\n",
  );
  assert.equal((await readResponse(client, "POST")).status, 200);
});

test("limits: dry_run reports what it would have refused, and refuses nothing, streamed bodies included", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/", { limits: { max_body_bytes: 2, dry_run: true } })],
  });
  assert.equal((await gateway.send({ method: "POST", path: "/", body: "long" })).status, 200);
  await using client = await rawClient(gateway.port());
  await client.write("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n8\r\n01234567\r\n0\r\n\r\n");
  assert.equal((await readResponse(client, "POST")).status, 200);
  const reports = gateway.log.filter(({ code }) => code === "policy_dry_run");
  assert.deepEqual(
    reports.map((line) => [line["phase"], line["would_be_status"], line["route"], line["detail"]]),
    [["route_limits", 413, "api", "The body is larger than allowed: 4 bytes, at most 2"]],
  );
  const metrics = (await gateway.send({ path: "/metrics" })).body.toString();
  assert.match(metrics, /^gateway_policy_dry_run_total\{phase="route_limits",route="api"\} 1$/m);
});
