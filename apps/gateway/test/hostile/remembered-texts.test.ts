import assert from "node:assert/strict";
import { test } from "node:test";
import { heapGrowthBytes, rawClient, readResponse, startRawServer, type RawConnection } from "@headworks/testkit";
import { ResponseMemory } from "#slices/cache/response-memory.ts";
import { serving, startGateway, type TestGateway } from "../gateway-rig.ts";
import { proxied, responding } from "../route-documents.ts";

const REQUESTS = 200;
/** What a text that was cut out of one of these heads would hold on to. */
const HEAD_BYTES = 50_000;
const KEY = "the-key-of-this-client";

/** Requests with parts that are like none before, some of them long, in heads that are long. */
async function ask(gateway: TestGateway, names: string, lengthBytes: number): Promise<void> {
  await using client = await rawClient(gateway.port());
  const filling = "x".repeat(lengthBytes);
  for (let at = 0; at < REQUESTS; at += 1) {
    const own = `${names}-${at}`;
    const fields = [
      `Host: ${own}.resources.example`,
      `X-Request-Id: the-id-of-a-request-${own}`,
      `X-Correlation-Id: the-id-of-something-${own}`,
      `X-Kind: a-kind-of-answer-${own}`,
      `X-A-Name-Nobody-Had-${own}: a-value-nobody-had-${own}`,
    ];
    const requests = [
      ["GET", `/private/${own}`, `X-API-Key: ${KEY}`, `X-Filling: ${filling}`],
      ["GET", `/cached/${own}`, `Accept-Encoding: gzip, of-a-coding-${own}`, `X-Filling: ${filling}`],
      ["PUT", `/cached/${own}`, `X-Filling: ${filling}`],
      ["PUT", `/cached/${filling}/${own}`],
      ["GET", `/cached/${own}`, `X-Long-Name-${filling}-${own}: a-value`],
      ["GET", `/cached/${own}`, `Accept-Encoding: gzip, ${filling}-${own}`],
    ];
    for (const [method, target, ...more] of requests) {
      await client.write(`${method} ${target} HTTP/1.1\r\n${[...fields, ...more].join("\r\n")}\r\n\r\n`);
      assert.equal((await readResponse(client)).status, 200);
    }
  }
  // Its lines are long, too, and are kept for tests only.
  (gateway.log as unknown[]).splice(0);
}

/**
 * Answers with what is like nothing before, and what is not kept in a head that is as long as the request's. It keeps
 * nothing itself: sessions of node:http2 keep long names (seen in Node 26), and share this heap.
 */
async function respondToEach(connection: RawConnection): Promise<void> {
  const body = "a body that is long enough to be compressed by whoever likes to do that. ".repeat(20);
  for (;;) {
    const head = await connection.readUntil("\r\n\r\n", 60_000).catch(() => undefined);
    if (head === undefined) return;
    const path = head.toString("latin1").split(" ", 2)[1] ?? "";
    const own = path.slice(-20).replaceAll("/", "-");
    const fields = [
      "Content-Type: text/plain",
      `Content-Length: ${body.length}`,
      `ETag: "the-tag-of-${own}"`,
      `X-A-Name-Of-An-Answer-${own}: a-value-of-an-answer-${own}`,
    ];
    if (path.startsWith("/private")) fields.push(`X-Filling: ${"x".repeat(head.length)}`);
    await connection.write(`HTTP/1.1 200 OK\r\n${fields.join("\r\n")}\r\n\r\n${body}`);
  }
}

test("U17: what is remembered of requests and answers holds on to nothing else of their heads", async () => {
  await using origin = await startRawServer(respondToEach);
  const compression = { algorithms: ["gzip" as const] };
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    consumers: [{ name: "client", credentials: [{ type: "api_key", key: KEY }] }],
    policies: [{ name: "p", rate_limits: [{ selector: ["ip", "credential"], requests_per: { hour: 100_000 } }] }],
    routes: [
      proxied("api", "/private", { policies: ["p"], auth_required: true, compression }),
      proxied("cached", "/cached", { service: "api", compression, cache: { ttl_secs: 60, vary: ["X-Kind"] } }),
    ],
  });
  await ask(gateway, "warming-up", 0);
  const grownBytes = await heapGrowthBytes(async () => await ask(gateway, "counted", HEAD_BYTES));
  const perHead = grownBytes / REQUESTS;
  assert.ok(perHead < HEAD_BYTES / 5, `${Math.round(perHead)} bytes for each request with a head of ${HEAD_BYTES}`);
});

test("U17: kept answers hold on to what counts against their bound, and to nothing else", async () => {
  const memory = new ResponseMemory();
  const filling = "x".repeat(HEAD_BYTES);
  const cut = (own: string): string => `${filling}${own}`.slice(HEAD_BYTES);
  const grownBytes = await heapGrowthBytes(() => {
    for (let at = 0; at < REQUESTS; at += 1) {
      const fields = [cut(`X-A-Name-Of-Its-Own-${at}`), cut(`a value of its own ${at}`)];
      const asked = {
        route: "r",
        epoch: 0,
        changes: 0,
        receivedMs: 0,
        initialAgeMs: 0,
        freshForMs: 1000,
        staleForMs: 0,
        forbidsStale: false,
      };
      memory.put(cut(`a key of its own ${at}`), { ...asked, fields, body: Buffer.alloc(0) }, 0);
    }
  });
  assert.equal(memory.size, REQUESTS);
  assert.ok(grownBytes < 2 * memory.bytes, `${grownBytes} bytes for what counts ${memory.bytes}`);
});

test("U17: a connection that is idle holds on to nothing of its last request", async () => {
  await using gateway = await startGateway({ routes: [responding("r")] });
  const clients: RawConnection[] = [];
  const connect = async (lengthBytes: number): Promise<void> => {
    for (let at = 0; at < REQUESTS / 4; at += 1) {
      const client = await rawClient(gateway.port());
      clients.push(client);
      const host = `host-of-its-own-${at}.example`;
      await client.write(`GET /a HTTP/1.1\r\nHost: ${host}\r\nX-Filling: ${"x".repeat(lengthBytes)}\r\n\r\n`);
      assert.equal((await readResponse(client)).status, 200);
    }
  };
  await connect(0);
  const shortBytes = await heapGrowthBytes(async () => await connect(0));
  const longBytes = await heapGrowthBytes(async () => await connect(HEAD_BYTES));
  for (const client of clients) client.destroy();
  const perHead = (longBytes - shortBytes) / (REQUESTS / 4);
  assert.ok(
    perHead < HEAD_BYTES / 5,
    `${Math.round(perHead)} bytes more for each connection with a head of ${HEAD_BYTES}`,
  );
});
