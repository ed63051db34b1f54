import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ExchangeCounts, LATENCY_BOUNDS_MS } from "./exchange-counts.ts";
import type { FinishedExchange } from "./exchange-counts.ts";

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
