import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { DetailedHealth, Metrics } from "@headworks/capture-contract";
import type { ExchangeView } from "#exchange/exchange.ts";
import { type ApiRig, type ApiRigOptions, HEALTHY, startApi } from "../../../test/api-rig.ts";
import { ExchangeCounts, type FinishedExchange, LATENCY_BOUNDS_MS } from "./metrics.observer.ts";
import { createMetricsSlice } from "./metrics.slice.ts";

type MetricsSlice = ReturnType<typeof createMetricsSlice>;

async function startMetrics(options: ApiRigOptions = {}): Promise<{ api: ApiRig; slice: MetricsSlice }> {
  let slice: MetricsSlice | undefined;
  const api = await startApi({ ...options, slices: (host) => [(slice = createMetricsSlice(host))] });
  assert.ok(slice);
  return { api, slice };
}

function exchange(change: Partial<ExchangeView> = {}): ExchangeView {
  return {
    request: { method: "GET", path: "/", fields: ["Host", "a.test"] },
    response: { status: 200, reason: "OK", fields: [] },
    requestBody: { sizeBytes: 5 },
    responseBody: { sizeBytes: 100 },
    moments: { started: 100, ended: 130 },
    state: { step: "completed" },
    passthrough: false,
    trace: undefined,
    ...change,
  } as unknown as ExchangeView;
}

test("health is OK while the store works and 503 in plain words when it does not, at both addresses", async () => {
  let ok = true;
  const { api } = await startMetrics({ status: () => ({ ...HEALTHY, ok }) });
  await using _api = api;
  for (const path of ["/health", "/api/health"]) {
    ok = true;
    const good = await fetch(api.url + path);
    assert.equal(good.status, 200);
    assert.equal(good.headers.get("content-type"), "text/plain; charset=utf-8");
    assert.equal(await good.text(), "OK");
    ok = false;
    const bad = await fetch(api.url + path);
    assert.equal(bad.status, 503);
    assert.equal(await bad.text(), "Database not ready");
  }
});

test("detailed health names the service, its addresses and its store", async () => {
  const { api } = await startMetrics({
    status: () => ({ ...HEALTHY, ok: false, problem: "Cannot write /home/u/weir" }),
  });
  await using _api = api;
  await api.clock.advance(61_500);
  const health = (await api.call("GET", "/api/health/detailed")).json as DetailedHealth;
  assert.equal(health.healthy, false);
  assert.equal(health.version, "0.1.0");
  assert.equal(health.uptime_secs, 61);
  assert.equal(health.active_connections, 2);
  assert.equal(health.auth_required, false);
  assert.equal(health.api_address, api.url);
  assert.deepEqual(health.dependencies, { database: "failing" });
  assert.ok(health.memory_usage_mb > 10);
  assert.doesNotMatch(JSON.stringify(health), /\/home\/u/, "it is public");
});

const BLOCKED = { kind: "block", ruleId: "id", ruleName: "ads.test", phase: "request", changes: [] } as const;

test("finished exchanges are counted under every spelling", async () => {
  const { api, slice } = await startMetrics();
  await using _api = api;
  slice.observer?.onFinished?.(exchange());
  slice.observer?.onFinished?.(exchange({ trace: [BLOCKED, BLOCKED, { ...BLOCKED, kind: "script" }] }));
  slice.observer?.onFinished?.(
    exchange({
      state: { step: "failed", failure: { stage: "connect", side: "upstream", code: "UPSTREAM_REFUSED", message: "" } },
      response: undefined,
    }),
  );
  const failure = { stage: "policy", side: "internal", code: "BLOCKED", message: "" } as const;
  slice.observer?.onFinished?.(exchange({ passthrough: true, state: { step: "failed", failure } }));
  await api.clock.advance(1000);
  const metrics = (await api.call("GET", "/api/metrics")).json as Metrics;
  assert.equal(metrics.requests_total, 3);
  assert.equal(metrics.requests_success, 2);
  assert.equal(metrics.requests_successful, 2);
  assert.equal(metrics.requests_failed, 1);
  assert.equal(metrics.avg_latency_ms, 30);
  assert.equal(metrics.requests_per_second, 0.3);
  assert.equal(metrics.requests_per_sec, 0.3);
  assert.equal(metrics.intercept_hits.block_list, 2);
  assert.equal(metrics.tls_handshakes_failed, 1);
  assert.ok(metrics.bytes_received > 4 * 5 && metrics.bytes_sent > 4 * 100);
  assert.deepEqual(
    metrics.latency_buckets_ms.find(({ le }) => le === 50),
    { le: 50, count: 3 },
  );
});

test("Prometheus reads the same numbers, twice alike", async () => {
  const { api, slice } = await startMetrics();
  await using _api = api;
  slice.observer?.onFinished?.(exchange());
  slice.observer?.onFinished?.(exchange({ trace: [BLOCKED] }));
  for (let scrape = 0; scrape < 2; scrape += 1) {
    const response = await fetch(`${api.url}/metrics`);
    assert.equal(response.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    const text = await response.text();
    assert.match(text, /^weir_requests_total\{result="success"\} 2$/m);
    assert.match(text, /^weir_requests_total\{result="failed"\} 0$/m);
    assert.match(text, /^weir_intercept_hits_total\{rule="block_list"\} 1$/m);
    assert.match(text, /^weir_request_duration_seconds_bucket\{le="0\.05"\} 2$/m);
    assert.match(text, /^weir_request_duration_seconds_bucket\{le="\+Inf"\} 2$/m);
    assert.match(text, /^weir_request_duration_seconds_sum 0\.06$/m);
    assert.match(text, /^weir_request_duration_seconds_count 2$/m);
    assert.match(text, /^weir_storage_up 1$/m);
    assert.match(text, /^process_resident_memory_bytes \d+$/m);
    for (const line of text.split("\n")) assert.match(line, /^(?:#.*|[a-z0-9_]+(?:\{[a-z]+="[^"]*"\})? [0-9.e+-]+|)$/);
  }
  assert.equal((await fetch(`${api.url}/api/metrics/prometheus`)).status, 200);
});

test("performance reports memory, connections, the loop and the store", async () => {
  const { api, slice } = await startMetrics();
  await using _api = api;
  const controller = new AbortController();
  slice.task?.start(controller.signal);
  const { json } = await api.call("GET", "/api/performance");
  const { memory, pool, event_loop, storage, metrics } = json as Record<string, Record<string, number>>;
  assert.ok((memory?.["used_bytes"] ?? 0) > 0 && (memory?.["usage_percent"] ?? 100) < 100);
  assert.deepEqual(pool, { total_connections: 3, idle_connections: 2, active_connections: 1, pending_requests: 0 });
  assert.ok((event_loop?.["utilization"] ?? -1) >= 0 && (event_loop?.["utilization"] ?? 2) <= 1);
  assert.deepEqual(storage, { backlog_bytes: 0, backlog_entries: 0, written_entries: 3, last_batch_ms: 1.5 });
  assert.equal(metrics?.["requests_total"], 0);
  await api.clock.advance(61_000);
  assert.equal((await api.call("GET", "/api/performance")).status, 200);
  controller.abort();
});

const finished = (change: Partial<FinishedExchange> = {}): FinishedExchange => ({
  hasFailed: false,
  isTunnel: false,
  latencyMs: 3,
  bytesFromClient: 10,
  bytesToClient: 20,
  touchedBy: [],
  ...change,
});

test("requests, failures, bytes, latencies and hits add up; tunnels add bytes only", () => {
  const counts = new ExchangeCounts();
  counts.add(finished({ latencyMs: 10 }), 0);
  counts.add(finished({ latencyMs: 20, hasFailed: true, touchedBy: ["block_list"] }), 0);
  counts.add(finished({ isTunnel: true, latencyMs: 7_200_000 }), 0);
  assert.equal(counts.requests, 2);
  assert.equal(counts.failed, 1);
  assert.equal(counts.averageLatencyMs, 15);
  assert.deepEqual([counts.bytesFromClients, counts.bytesToClients], [30, 60]);
  assert.equal(counts.hits.block_list, 1);
  assert.equal(new ExchangeCounts().averageLatencyMs, 0);
});

test("a latency on a bound belongs to that bound's bucket, and buckets are cumulative", () => {
  const counts = new ExchangeCounts();
  for (const latencyMs of [0, 1, 1.01, 5, 10_000, 10_001, 1e9]) counts.add(finished({ latencyMs }), 0);
  const buckets = counts.cumulativeBuckets();
  assert.deepEqual(
    buckets.map(({ le }) => le),
    [...LATENCY_BOUNDS_MS, null],
  );
  assert.equal(buckets[0]?.count, 2);
  assert.equal(buckets[1]?.count, 4);
  assert.equal(buckets.at(-2)?.count, 5);
  assert.equal(buckets.at(-1)?.count, 7);
});

test("the rate is that of the last ten whole seconds, whatever came before and however the requests are spread", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 60_000 }), { maxLength: 200 }),
      fc.integer({ min: 0, max: 40_000 }),
      (moments, laterMs) => {
        const counts = new ExchangeCounts();
        const sorted = [...moments].sort((left, right) => left - right);
        for (const moment of sorted) counts.add(finished(), moment);
        const now = (sorted.at(-1) ?? 0) + laterMs;
        const second = Math.floor(now / 1000);
        const expected =
          sorted.filter((moment) => Math.floor(moment / 1000) < second && Math.floor(moment / 1000) >= second - 10)
            .length / 10;
        assert.equal(counts.rate(now), expected);
      },
    ),
  );
});
