import assert from "node:assert/strict";
import { test } from "node:test";
import type { UpstreamSnapshot } from "#upstream/upstream-registry.ts";
import { mergeWorkerStates, mergeTraffic } from "./worker-pool.ts";

const endpoint = (key: string, more: Partial<UpstreamSnapshot["endpoints"][number]> = {}) => ({
  key,
  health: "healthy" as const,
  isDraining: false,
  weight: 1,
  inFlight: 1,
  connections: 2,
  ...more,
});

const upstream = (more: Partial<UpstreamSnapshot> = {}): UpstreamSnapshot => ({
  name: "u",
  protocol: "http1",
  loadBalancer: "round_robin",
  breaker: { state: "closed", consecutiveFailures: 1, opensAgainInMs: 0 },
  failOpenPicks: 1,
  retries: 2,
  endpoints: [endpoint("h:1")],
  ...more,
});

test("an upstream of two workers has the worst health of both, and the sums of what is counted", () => {
  const open = { state: "open" as const, consecutiveFailures: 5, opensAgainInMs: 700 };
  const merged = mergeWorkerStates([
    { upstreams: [upstream()], activeRequests: 3 },
    {
      upstreams: [upstream({ breaker: open, endpoints: [endpoint("h:1", { health: "ejected" })] })],
      activeRequests: 4,
    },
  ]);
  assert.deepEqual(merged, {
    upstreams: [
      upstream({
        breaker: open,
        failOpenPicks: 2,
        retries: 4,
        endpoints: [endpoint("h:1", { health: "ejected", inFlight: 2, connections: 4 })],
      }),
    ],
    activeRequests: 7,
  });
});

test("half-open is worse than closed, and draining anywhere is draining", () => {
  const half = { state: "half_open" as const, consecutiveFailures: 0, opensAgainInMs: 0 };
  const { upstreams } = mergeWorkerStates([
    {
      upstreams: [upstream({ breaker: half, endpoints: [endpoint("h:1", { health: "half_open" })] })],
      activeRequests: 0,
    },
    { upstreams: [upstream({ endpoints: [endpoint("h:1", { isDraining: true })] })], activeRequests: 0 },
  ]);
  assert.equal(upstreams[0]?.breaker?.state, "half_open");
  assert.equal(upstreams[0]?.endpoints[0]?.health, "half_open");
  assert.equal(upstreams[0]?.endpoints[0]?.isDraining, true);
});

test("state of a single worker is included: newly discovered endpoints, a new upstream", () => {
  const { upstreams } = mergeWorkerStates([
    { upstreams: [upstream()], activeRequests: 0 },
    { upstreams: [upstream({ endpoints: [endpoint("h:2")] }), upstream({ name: "v" })], activeRequests: 0 },
  ]);
  assert.deepEqual(
    upstreams.map(({ name, endpoints }) => [name, endpoints.map(({ key }) => key)]),
    [
      ["u", ["h:1", "h:2"]],
      ["v", ["h:1"]],
    ],
  );
});

test("without workers the state is empty", () => {
  assert.deepEqual(mergeWorkerStates([]), { upstreams: [], activeRequests: 0 });
});

test("workers add up, over the longest time of any", () => {
  const traffic = mergeTraffic([
    {
      spanMs: 10,
      requests: [
        ["a", 1],
        ["b", 2],
      ],
    },
    { spanMs: 30, requests: [["b", 5]] },
  ]);
  assert.deepEqual(traffic, {
    spanMs: 30,
    requests: [
      ["a", 1],
      ["b", 7],
    ],
  });
  assert.deepEqual(mergeTraffic([]), { spanMs: 0, requests: [] });
});
