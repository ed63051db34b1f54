import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import type { DocumentInput } from "@headworks/gateway-contract";
import {
  collect,
  http2Client,
  rawClient,
  readResponse,
  startOrigin,
  startRawServer,
  waitUntil,
  type RawServer,
} from "@headworks/testkit";
import { errorCode } from "./error-code.ts";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { errorOf, proxied, responding } from "./route-documents.ts";

const LIMIT_MS = 1000;

const documentFor = (port: number): DocumentInput => ({
  listeners: [{ name: "public", address: "127.0.0.1", port: 0, metrics: true, request_timeout_ms: LIMIT_MS }],
  ...serving("api", [port]),
  routes: [proxied("api"), responding("quick", "/quick")],
});

/** Reads what comes and never says anything; knows when each connection ended. */
async function startSilent(): Promise<{ server: RawServer; gone: Promise<void>; heads: string[] }> {
  const gone = Promise.withResolvers<void>();
  const heads: string[] = [];
  const server = await startRawServer(async (connection) => {
    connection.socket.once("close", () => gone.resolve());
    heads.push((await connection.readUntil("\r\n\r\n")).toString("latin1"));
    await connection.collect(20_000);
  });
  return { server, gone: gone.promise, heads };
}

/** What the log and the counters say of the requests so far. */
async function accounts(gateway: TestGateway): Promise<{ lines: unknown[]; counted: string[] }> {
  await waitUntil(() => gateway.log.some(({ msg }) => msg === "access"));
  const lines = gateway.log
    .filter(({ msg }) => msg === "access")
    .map(({ status, code, complete }) => [status, code, complete]);
  const metrics = (await gateway.send({ path: "/metrics" })).body.toString();
  const counted = [...metrics.matchAll(/^requests_total\{route="api",.*status_class="(.*)"\} (.*)$/gm)];
  return { lines, counted: counted.map(([, statusClass, count]) => `${statusClass} ${count}`) };
}

describe("the time that a request may take", { concurrency: 12 }, () => {
  test("request_timeout_ms: a client that got nothing by then is answered 504, and its connection closes", async () => {
    const { server, gone, heads } = await startSilent();
    await using upstream = server;
    await using gateway = await startGateway(documentFor(upstream.port));
    await using client = await rawClient(gateway.port());
    await client.write(
      "GET /first HTTP/1.1\r\nHost: a\r\nX-Request-Id: mine\r\n\r\nGET /second HTTP/1.1\r\nHost: a\r\n\r\n",
    );
    const response = await readResponse(client);
    assert.deepEqual([response.status, errorOf(response).code], [504, "upstream_response_timeout"]);
    assert.deepEqual([response.header("connection"), response.header("x-request-id")], ["close", "mine"]);
    assert.equal((await client.collect()).length, 0);
    await gone;
    assert.deepEqual(
      heads.map((head) => head.split(" ")[1]),
      ["/first"],
      "nothing that was sent behind it is done",
    );
    const { lines, counted } = await accounts(gateway);
    assert.deepEqual(lines, [[504, "upstream_response_timeout", true]]);
    assert.deepEqual(counted, ["5xx 1"]);
  });

  test("request_timeout_ms: while the request's body is missing the answer is 408", async () => {
    const { server } = await startSilent();
    await using upstream = server;
    await using gateway = await startGateway(documentFor(upstream.port));
    await using client = await rawClient(gateway.port());
    await client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
    const response = await readResponse(client);
    assert.deepEqual([response.status, errorOf(response).code], [408, "request_timeout"]);
    assert.equal(response.header("connection"), "close");
    assert.equal((await client.collect()).length, 0);
    assert.equal(upstream.connections.length, 0, "no connection was taken for it");
    const { lines, counted } = await accounts(gateway);
    assert.deepEqual(lines, [[408, "request_timeout", true]]);
    assert.deepEqual(counted, ["4xx 1"]);
  });

  test("request_timeout_ms: a body that is there leaves the delay to the upstream, so that the answer is 504", async () => {
    const { server } = await startSilent();
    await using upstream = server;
    await using gateway = await startGateway(documentFor(upstream.port));
    const response = await gateway.send({ method: "POST", path: "/", body: "whole" });
    assert.deepEqual([response.status, errorOf(response).code], [504, "upstream_response_timeout"]);
  });

  test("request_timeout_ms: a client that ended its side hears of it as well", async () => {
    const { server } = await startSilent();
    await using upstream = server;
    await using gateway = await startGateway(documentFor(upstream.port));
    await using client = await rawClient(gateway.port());
    await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client.end();
    assert.equal((await readResponse(client)).status, 504);
  });

  test("request_timeout_ms: an answer that is under way is cut, and the log has its status", async () => {
    const gone = Promise.withResolvers<void>();
    await using upstream = await startRawServer(async (connection) => {
      connection.socket.once("close", () => gone.resolve());
      await connection.readUntil("\r\n\r\n");
      await connection.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun");
      await connection.collect(20_000);
    });
    await using gateway = await startGateway(documentFor(upstream.port));
    await using client = await rawClient(gateway.port());
    await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert.match((await client.collect()).toString("latin1"), /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\nbegun$/s);
    await gone.promise;
    assert.deepEqual((await accounts(gateway)).lines, [[200, undefined, false]]);
  });

  test("request_timeout_ms: an answer whose end is that of its connection is broken off, not ended", async () => {
    await using upstream = await startRawServer(async (connection) => {
      await connection.readUntil("\r\n\r\n");
      await connection.write("HTTP/1.1 200 OK\r\n\r\nbegun");
      await connection.collect(20_000);
    });
    await using gateway = await startGateway(documentFor(upstream.port));
    await using client = await rawClient(gateway.port());
    await client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await client.readUntil("begun");
    client.socket.once("end", () => client.socket.destroy());
    const error: NodeJS.ErrnoException | undefined = await client.closed;
    assert.equal(error?.code, "ECONNRESET");
  });

  test("request_timeout_ms: who waits for a permit is answered in time as well, and keeps neither a permit nor a place", async () => {
    const { server } = await startSilent();
    await using upstream = server;
    await using gateway = await startGateway({
      max_concurrent_requests: 1,
      admission_queue: { enabled: true, max_queue_size: 1, queue_timeout_ms: 10_000 },
      ...documentFor(upstream.port),
    });
    for (let round = 0; round < 2; round++) {
      const responses = await Promise.all([gateway.send({ path: "/" }), gateway.send({ path: "/" })]);
      for (const response of responses) {
        assert.deepEqual([response.status, errorOf(response).code], [504, "upstream_response_timeout"]);
      }
    }
    assert.equal((await gateway.send({ path: "/quick" })).status, 200);
    assert.match((await gateway.send({ path: "/metrics" })).body.toString(), /^active_requests 1$/m);
  });

  test("request_timeout_ms: over HTTP/2 the stream is answered 504, and the connection goes on", async () => {
    const { server, gone } = await startSilent();
    await using upstream = server;
    await using gateway = await startGateway(documentFor(upstream.port));
    await using client = await http2Client(gateway.port());
    const response = await client.fetch({ ":path": "/" });
    assert.deepEqual([response.status, errorCode(response), response.code], [504, "upstream_response_timeout", 0]);
    await gone;
    assert.deepEqual((await accounts(gateway)).lines, [[504, "upstream_response_timeout", true]]);
    assert.equal((await client.fetch({ ":path": "/quick" })).status, 200);
  });

  test("request_timeout_ms: over HTTP/2 a body that is missing is answered 408", async () => {
    await using upstream = await startOrigin({ handler: (incoming) => void incoming.resume() });
    await using gateway = await startGateway(documentFor(upstream.port));
    await using client = await http2Client(gateway.port());
    const stream = client.session.request({ ":path": "/", ":method": "POST" }, { endStream: false });
    const answered = collect(stream);
    stream.write("half");
    await once(stream, "end");
    stream.end();
    const response = await answered;
    assert.deepEqual([response.status, errorCode(response)], [408, "request_timeout"]);
    assert.deepEqual((await accounts(gateway)).lines, [[408, "request_timeout", true]]);
  });

  for (const version of ["1.1", "2"] as const) {
    test(`a body that stops arriving over HTTP/${version} is logged and counted as the 408 that answers it`, async () => {
      await using upstream = await startOrigin({ handler: (incoming) => void incoming.resume() });
      await using gateway = await startGateway(
        { ...serving("api", [upstream.port]), routes: [proxied("api")] },
        { environment: { GATEWAY_REQUEST_BODY_TIMEOUT_MS: "300" } },
      );
      await using client = await rawClient(gateway.port());
      await using newer = await http2Client(gateway.port());
      if (version === "1.1") await client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
      else {
        const stream = newer.session.request({ ":path": "/", ":method": "POST" }, { endStream: false });
        stream.on("error", () => undefined);
        stream.write("half");
      }
      const { lines, counted } = await accounts(gateway);
      assert.deepEqual([lines, counted], [[[408, "request_timeout", true]], ["4xx 1"]]);
    });
  }
});
