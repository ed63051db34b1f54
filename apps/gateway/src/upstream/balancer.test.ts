import assert from "node:assert/strict";
import { test } from "node:test";
import type { Upstream } from "@headworks/gateway-contract";
import fc from "fast-check";
import { createBalancer } from "./balancer.ts";
import { Endpoint } from "./endpoint.ts";
import type { PickKey } from "./balancer.ts";

function endpointsOf(weights: readonly number[], nowMs = 0): Endpoint[] {
  const owner = { nowMs: () => nowMs, ejected: () => undefined, recovered: () => undefined, mayEject: () => true };
  return weights.map((weight, at) => {
    const endpoint = new Endpoint(`10.0.0.${at + 1}`, 80, owner);
    endpoint.weight = weight;
    return endpoint;
  });
}

const NOBODY: PickKey = { clientAddress: "192.0.2.1", headerValue: undefined };
const upstream = (load_balancer: NonNullable<Upstream["load_balancer"]>, more: Partial<Upstream> = {}): Upstream => ({
  name: "u",
  load_balancer,
  ...more,
});

function countsOf(picks: readonly Endpoint[], endpoints: readonly Endpoint[]): number[] {
  return endpoints.map((endpoint) => picks.filter((pick) => pick === endpoint).length);
}

test("round_robin: every full period has exactly the weights, and no endpoint waits longer than its share requires", () => {
  const weightsOf = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(weightsOf, fc.integer({ min: 1, max: 3 }), (weights, periods) => {
      const endpoints = endpointsOf(weights);
      const pick = createBalancer(upstream("round_robin"), endpoints);
      const total = weights.reduce((sum, weight) => sum + weight, 0);
      for (let period = 0; period < periods; period++) {
        const picks = Array.from({ length: total }, () => pick(endpoints, NOBODY, 0));
        assert.deepEqual(countsOf(picks, endpoints), weights);
      }
    }),
  );
});

test("round_robin spreads the picks of a heavy endpoint instead of bunching them", () => {
  const endpoints = endpointsOf([5, 1, 1]);
  const pick = createBalancer(upstream("round_robin"), endpoints);
  const order = Array.from({ length: 7 }, () => endpoints.indexOf(pick(endpoints, NOBODY, 0)));
  assert.deepEqual(order, [0, 0, 1, 0, 2, 0, 0]);
});

test("slow start: the weight ramps from 1 to the configured one, and an endpoint of weight 1 warms up too", () => {
  const [fresh, warm] = endpointsOf([10, 10]) as [Endpoint, Endpoint];
  fresh.sinceMs = 0;
  warm.sinceMs = -100_000;
  const shareAt = (nowMs: number, of: Endpoint, all: readonly Endpoint[]): number => {
    const pick = createBalancer(upstream("round_robin", { slow_start_ms: 1000 }), all);
    const picks = Array.from({ length: 1100 }, () => pick(all, NOBODY, nowMs));
    return picks.filter((each) => each === of).length / 1100;
  };
  const both = [fresh, warm];
  assert.ok(Math.abs(shareAt(0, fresh, both) - 1 / 11) < 0.01);
  assert.ok(Math.abs(shareAt(500, fresh, both) - 5.5 / 15.5) < 0.01);
  assert.ok(Math.abs(shareAt(1000, fresh, both) - 0.5) < 0.01);
  fresh.weight = warm.weight = 1;
  assert.ok(Math.abs(shareAt(0, fresh, both) - 1 / 11) < 0.01);
});

test("least_requests takes the endpoint with the fewest in flight, the first declared among equals", () => {
  const endpoints = endpointsOf([1, 1, 1]);
  const pick = createBalancer(upstream("least_requests"), endpoints);
  const order = Array.from({ length: 4 }, () => {
    const picked = pick(endpoints, NOBODY, 0);
    picked.dispatched();
    return endpoints.indexOf(picked);
  });
  assert.deepEqual(order, [0, 1, 2, 0]);
});

test("random compares two different endpoints, so that the busiest of all is never taken", () => {
  const endpoints = endpointsOf([1, 1, 1, 1]);
  const [busy] = endpoints;
  busy?.dispatched();
  const pick = createBalancer(upstream("random"), endpoints);
  const picks = Array.from({ length: 2000 }, () => pick(endpoints, NOBODY, 0));
  const counts = countsOf(picks, endpoints);
  assert.equal(counts[0], 0);
  assert.ok(
    counts.slice(1).every((count) => count > 400),
    String(counts),
  );
  assert.equal(pick(endpoints.slice(0, 1), NOBODY, 0), busy);
});

test("peak_ewma avoids a slow endpoint, and uses it again when the peak has faded", () => {
  const endpoints = endpointsOf([1, 1]);
  const [slow, fast] = endpoints as [Endpoint, Endpoint];
  slow.answered(slow.dispatched(), 200, 5000);
  fast.answered(fast.dispatched(), 200, 300);
  const pick = createBalancer(upstream("peak_ewma"), endpoints);
  assert.equal(pick(endpoints, NOBODY, 0), fast);
  for (let at = 0; at < 30; at++) fast.dispatched();
  assert.equal(pick(endpoints, NOBODY, 0), slow);
});

for (const kind of ["ip_hash", "header_hash"] as const) {
  test(`${kind}: a key keeps its endpoint, and removing an endpoint moves only its own share`, () => {
    const endpoints = endpointsOf([1, 2, 1, 1]);
    const pick = createBalancer(upstream(kind, { hash_header: "x-user" }), endpoints);
    const keys = Array.from({ length: 5000 }, (_, at) =>
      kind === "ip_hash"
        ? { clientAddress: `10.1.${at >> 8}.${at & 255}`, headerValue: undefined }
        : { clientAddress: "10.1.1.1", headerValue: `user ${at}` },
    );
    const before = keys.map((key) => pick(endpoints, key, 0));
    assert.deepEqual(
      keys.map((key) => pick(endpoints, key, 99)),
      before,
    );
    const counts = countsOf(before, endpoints);
    for (const [at, share] of [0.2, 0.4, 0.2, 0.2].entries()) {
      assert.ok(Math.abs((counts[at] ?? 0) / keys.length - share) < 0.06, String(counts));
    }
    const gone = endpoints[2];
    const rest = endpoints.filter((endpoint) => endpoint !== gone);
    const rebuilt = createBalancer(upstream(kind, { hash_header: "x-user" }), rest);
    for (const [at, key] of keys.entries()) {
      const ejected = pick(rest, key, 0);
      if (before[at] !== gone) assert.equal(ejected, before[at]);
      assert.equal(rebuilt(rest, key, 0), ejected, "ejecting and removing move the same keys to the same endpoints");
    }
  });
}

test("header_hash uses the client address if the request lacks the field", () => {
  const endpoints = endpointsOf([1, 1, 1, 1, 1]);
  const byHeader = createBalancer(upstream("header_hash", { hash_header: "x-user" }), endpoints);
  const byPeer = createBalancer(upstream("ip_hash"), endpoints);
  for (let at = 0; at < 50; at++) {
    const key = { clientAddress: `10.0.1.${at}`, headerValue: undefined };
    assert.equal(byHeader(endpoints, key, 0), byPeer(endpoints, key, 0));
  }
});

test("a ring of enormous weights is built quickly and still contains every endpoint", () => {
  const endpoints = endpointsOf([65_535, 65_535, 1, ...Array.from({ length: 60 }, () => 65_535)]);
  const startedMs = performance.now();
  const pick = createBalancer(upstream("ip_hash"), endpoints);
  assert.ok(performance.now() - startedMs < 2000);
  for (const endpoint of endpoints) assert.equal(pick([endpoint], NOBODY, 0), endpoint);
});
