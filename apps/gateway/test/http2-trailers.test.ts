import assert from "node:assert/strict";
import type { OutgoingHttpHeaders } from "node:http2";
import { test } from "node:test";
import {
  collect,
  http2Client,
  rawClient,
  readResponse,
  startHttp2Origin,
  startRawServer,
  type Http2Origin,
} from "@headworks/testkit";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { proxied } from "./route-documents.ts";

const BODY = "known";

/** Answers with a length, and trailers behind the body. */
const startTrailing = async (headers: OutgoingHttpHeaders = {}, body = BODY): Promise<Http2Origin> =>
  await startHttp2Origin((stream) => {
    stream.respond({ ":status": 200, "content-length": body.length, ...headers }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0", "x-sum": "42" }));
    stream.end(body);
  });

const gatewayFor = async (port: number): Promise<TestGateway> =>
  await startGateway({ ...serving("api", [port], { protocol: "h2c" }), routes: [proxied("api")] });

const GRPC = "application/grpc+proto";

for (const { why, asked, answered } of [
  { why: "the client asks for them", asked: { te: "trailers" }, answered: {} },
  { why: "the upstream announces them", asked: {}, answered: { trailer: "x-sum" } },
  { why: "the answer is gRPC", asked: {}, answered: { "content-type": GRPC } },
  { why: "they were not announced", asked: {}, answered: {} },
]) {
  test(`RFC 9113, 8.1: trailers behind an answer of known length reach a client of HTTP/2 where ${why}`, async () => {
    await using origin = await startTrailing(answered);
    await using gateway = await gatewayFor(origin.port);
    await using client = await http2Client(gateway.port());
    const response = await client.fetch({ ":path": "/", ...asked });
    assert.deepEqual([response.status, response.body.toString(), response.code], [200, BODY, 0]);
    assert.equal(response.headers["content-length"], "5");
    assert.deepEqual([response.trailers?.["grpc-status"], response.trailers?.["x-sum"]], ["0", "42"]);
  });
}

test("gRPC: a status behind an answer whose length is 0 reaches the client", async () => {
  await using origin = await startTrailing({ "content-type": GRPC }, "");
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const response = await client.fetch({ ":path": "/", te: "trailers" });
  assert.deepEqual([response.status, response.body.length, response.trailers?.["grpc-status"]], [200, 0, "0"]);
});

test("an answer of known length that could have trailers and has none is whole", async () => {
  await using origin = await startHttp2Origin((stream) => {
    stream.respond({ ":status": 200, "content-length": BODY.length, trailer: "x-sum" });
    stream.end(BODY);
  });
  await using gateway = await gatewayFor(origin.port);
  await using client = await http2Client(gateway.port());
  const response = await client.fetch({ ":path": "/", te: "trailers" });
  assert.deepEqual([response.status, response.body.toString(), response.code], [200, BODY, 0]);
});

test("RFC 9112, 6.3: to a client of HTTP/1.1 nothing follows an answer of known length but the next one", async () => {
  await using origin = await startTrailing({ trailer: "x-sum" });
  await using gateway = await gatewayFor(origin.port);
  await using client = await rawClient(gateway.port());
  for (let round = 0; round < 2; round++) {
    await client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: TE\r\nTE: trailers\r\n\r\n");
    const response = await readResponse(client);
    assert.deepEqual([response.body.toString(), response.header("content-length")], [BODY, "5"]);
    assert.equal(client.unreadBytes, 0);
  }
});

/** A request of known length that announces a trailer and has it. */
const ANNOUNCING = { ":method": "POST", ":path": "/", "content-length": BODY.length, trailer: "x-check" };

async function sendWithTrailers(port: number): Promise<number> {
  await using client = await http2Client(port);
  const stream = client.session.request(ANNOUNCING, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-check": "7" }));
  const response = collect(stream);
  stream.end(BODY);
  return (await response).status;
}

test("RFC 9113, 8.1: announced trailers behind a request of known length reach an upstream of HTTP/2", async () => {
  const seen: unknown[] = [];
  await using origin = await startHttp2Origin((stream, headers) => {
    stream.on("trailers", (trailers) => void seen.push(headers["content-length"], trailers["x-check"]));
    stream.resume();
    stream.on("end", () => stream.respond({ ":status": 204 }, { endStream: true }));
  });
  await using gateway = await gatewayFor(origin.port);
  assert.equal(await sendWithTrailers(gateway.port()), 204);
  assert.deepEqual(seen, ["5", "7"]);
});

test("RFC 9112, 6.3: to an upstream of HTTP/1.1 nothing follows a request of known length", async () => {
  const heads: string[] = [];
  await using upstream = await startRawServer(async (connection) => {
    for (let round = 0; round < 2; round++) {
      heads.push((await connection.readUntil("\r\n\r\n")).toString("latin1"));
      assert.equal((await connection.read(BODY.length)).toString(), BODY);
      await connection.write("HTTP/1.1 204 No Content\r\n\r\n");
    }
  });
  await using gateway = await startGateway({ ...serving("api", [upstream.port]), routes: [proxied("api")] });
  for (let round = 0; round < 2; round++) assert.equal(await sendWithTrailers(gateway.port()), 204);
  assert.deepEqual(
    heads.map((head) => head.split("\r\n")[0]),
    ["POST / HTTP/1.1", "POST / HTTP/1.1"],
  );
});
