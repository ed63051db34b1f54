import assert from "node:assert/strict";
import { test } from "node:test";
import {
  rawClient,
  readResponse,
  startOrigin,
  startRawServer,
  waitUntil,
  type RawConnection,
} from "@headworks/testkit";
import type { DocumentInput } from "@headworks/gateway-contract";
import { serving, startGateway, type TestGateway } from "./gateway-rig.ts";
import { proxied, responding } from "./route-documents.ts";

/** What a scrape says: samples and their values. */
async function scrape(gateway: TestGateway): Promise<ReadonlyMap<string, number>> {
  const { body } = await gateway.send({ path: "/metrics" });
  const lines = body.toString().split("\n");
  return new Map(
    lines
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]),
  );
}

test("/metrics on a listener tells of requests, upstreams, events and the generation", async () => {
  await using origin = await startOrigin();
  await using gateway = await startGateway({
    ...serving("api", [origin.port], { breaker: {} }),
    routes: [
      {
        name: "r",
        service: "api",
        match: { path: { type: "prefix", value: "/" } },
        action: { type: "proxy" },
        deprecation: { since: "Sun, 06 Nov 1994 08:49:37 GMT" },
      },
    ],
  });
  await gateway.send({ path: "/x" });
  const response = await gateway.send({ path: "/metrics" });
  assert.match(response.header("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  const text = response.body.toString();
  for (const line of [
    'requests_total{route="r",listener="public",status_class="2xx"} 1',
    'gateway_deprecated_requests_total{route="r",consumer="anonymous"} 1',
    `upstream_attempts_total{upstream="api",endpoint="127.0.0.1:${origin.port}",status_class="2xx"} 1`,
    'breaker_state{upstream="api"} 0',
    "config_generation 1",
    "gateway_events_emitted_total 1",
  ]) {
    assert.ok(text.split("\n").includes(line), `${line}\nin\n${text}`);
  }
  const [line] = gateway.log.filter(({ msg }) => msg === "access");
  assert.deepEqual([line?.["route"], line?.["status"], line?.["upstream"]], ["r", 200, "api"]);
});

test("/metrics tells what the cache had for requests of each route, and what it holds", async () => {
  await using origin = await startOrigin({
    handler: (_request, response) => response.writeHead(200, { "Content-Type": "text/plain" }).end("kept"),
  });
  await using gateway = await startGateway({
    ...serving("api", [origin.port]),
    routes: [proxied("api", "/", { cache: { ttl_secs: 60 } })],
  });
  for (const fields of [[], [], [], ["Authorization: Basic eDp5"]]) await gateway.send({ path: "/x", fields });
  const samples = await scrape(gateway);
  const lookups = (outcome: string) => samples.get(`gateway_cache_lookups_total{route="api",outcome="${outcome}"}`);
  assert.deepEqual([lookups("miss"), lookups("hit"), lookups("bypass")], [1, 2, 1]);
  assert.equal(samples.get("gateway_cache_entries"), 1);
  assert.ok((samples.get("gateway_cache_bytes") ?? 0) >= "kept".length);
});

test("/metrics tells how many keys rate limits remember, whatever clients send, and not which", async () => {
  await using gateway = await startGateway({
    consumers: [
      { name: "one", credentials: [{ type: "api_key", key: "key-of-one" }] },
      { name: "two", credentials: [{ type: "api_key", key: "key-of-two" }] },
    ],
    policies: [{ name: "slow", rate_limits: [{ selector: ["credential"], requests_per: { minute: 2 } }] }],
    routes: [responding("r", "/", { policies: ["slow"] })],
  });
  for (const key of ["key-of-one", "key-of-two", "key-of-one"]) {
    await gateway.send({ path: "/", fields: [`X-API-Key: ${key}`] });
  }
  const samples = await scrape(gateway);
  assert.equal(samples.get("gateway_rate_limiter_live_keys"), 2);
  assert.equal(samples.get("gateway_rate_limiter_evictions_total"), 0);
});

test("/metrics tells how waits for a permit ended, and how many requests wait", async () => {
  const endings: (() => void)[] = [];
  await using origin = await startOrigin({
    handler: (_request, response) => void endings.push(() => response.end("done")),
  });
  await using gateway = await startGateway({
    max_concurrent_requests: 1,
    admission_queue: { enabled: true, max_queue_size: 1, per_priority: false, queue_timeout_ms: 10_000 },
    ...serving("api", [origin.port]),
    routes: [proxied("api")],
  });
  const asking = async (): Promise<RawConnection> => {
    const client = await rawClient(gateway.port());
    await client.write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    return client;
  };
  await using first = await asking();
  await waitUntil(() => endings.length === 1);
  await using second = await asking();
  await waitUntil(async () => (await scrape(gateway)).get("gateway_admission_queue_depth") === 1);
  assert.equal((await gateway.send({ path: "/slow" })).status, 503);
  endings[0]?.();
  await readResponse(first);
  await waitUntil(() => endings.length === 2);
  endings[1]?.();
  await readResponse(second);
  const samples = await scrape(gateway);
  const ended = (outcome: string) => samples.get(`gateway_admission_queued_total{outcome="${outcome}"}`);
  assert.deepEqual([ended("admitted"), ended("timeout"), ended("queue_full")], [1, 0, 1]);
  assert.equal(samples.get("gateway_admission_queue_depth"), 0);
});

test("/metrics tells of attempts that were sent beside slow ones", async () => {
  await using slow = await startRawServer(async (connection) => void (await connection.closed));
  await using fast = await startOrigin({});
  const hedged = { retries: { buffer_max_bytes: 1000, hedge: { hedge_after_ms: 20 } } };
  await using gateway = await startGateway({
    ...serving("api", [slow.port, fast.port], hedged),
    routes: [proxied("api")],
  });
  assert.equal((await gateway.send({ path: "/" })).status, 200);
  assert.equal((await scrape(gateway)).get('gateway_hedge_sent_total{upstream="api"}'), 1);
});

test("/metrics tells what decision points said, by policy", async () => {
  await using decides = await startOrigin({
    handler: (request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (piece: string) => (body += piece));
      request.on("end", () => response.writeHead(body.includes("/secret") ? 403 : 200).end());
    },
  });
  const callout = { type: "http", url: `http://127.0.0.1:${decides.port}/` } as const;
  await using gateway = await startGateway({
    policies: [{ name: "ask", callout }],
    routes: [responding("r", "/", { policies: ["ask"] })],
  });
  const statuses = [];
  for (const path of ["/open", "/secret", "/open"]) statuses.push((await gateway.send({ path })).status);
  assert.deepEqual(statuses, [200, 403, 200]);
  const samples = await scrape(gateway);
  const came = (outcome: string) => samples.get(`gateway_callouts_total{policy="ask",outcome="${outcome}"}`);
  assert.deepEqual([came("allowed"), came("denied")], [2, 1]);
});

test("/metrics is a path for routes, except on listeners that have the metrics, also for connections that were open before", async () => {
  const path = { type: "prefix", value: "/" } as const;
  const all = { name: "all", match: { path }, action: { type: "respond", status: 418 } } as const;
  const documentWith = (metrics: boolean | undefined): DocumentInput => ({
    listeners: [
      { name: "public", address: "127.0.0.1", port: 0, ...(metrics === undefined ? {} : { metrics }) },
      { name: "scraped", address: "127.0.0.1", port: 0, metrics: true },
    ],
    routes: [all],
  });
  await using gateway = await startGateway(documentWith(undefined));
  await using client = await rawClient(gateway.port());
  const statusOfOpen = async (): Promise<number> => {
    await client.write("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    return (await readResponse(client)).status;
  };
  const status = async (listener: string): Promise<number> =>
    (await gateway.send({ path: "/metrics", listener })).status;
  assert.deepEqual([await status("public"), await status("scraped"), await statusOfOpen()], [418, 200, 418]);
  await gateway.reload(documentWith(true));
  assert.deepEqual([await status("public"), await statusOfOpen()], [200, 200]);
  await gateway.reload(documentWith(false));
  assert.deepEqual([await status("public"), await statusOfOpen()], [418, 418]);
});
