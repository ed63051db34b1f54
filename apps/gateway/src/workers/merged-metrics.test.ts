import assert from "node:assert/strict";
import { test } from "node:test";
import { MergedMetrics } from "./merged-metrics.ts";

const counter = (value: number, route = "a b"): string =>
  `# HELP requests_total Finished requests\n# TYPE requests_total counter\nrequests_total{route="${route}"} ${value}\n`;
const gauge = (name: string, value: number): string => `# HELP ${name} It is\n# TYPE ${name} gauge\n${name} ${value}\n`;
const histogram = (count: number, sum: number): string =>
  `# HELP d Time\n# TYPE d histogram\nd_bucket{le="1"} ${count}\nd_bucket{le="+Inf"} ${count}\nd_sum ${sum}\nd_count ${count}\n`;

test("counters and histograms add up, sample by sample", () => {
  const merged = new MergedMetrics().together([
    counter(2) + histogram(3, 0.5),
    counter(5) + histogram(4, 0.25),
    counter(1, "x"),
  ]);
  assert.equal(
    merged,
    '# HELP requests_total Finished requests\n# TYPE requests_total counter\nrequests_total{route="a b"} 7\n' +
      'requests_total{route="x"} 1\n' +
      histogram(7, 0.75),
  );
});

for (const [name, values, merged] of [
  ["active_requests", [0, 2, 3], 5],
  ["config_generation", [3, 3, 2], 3],
  ["breaker_state", [0, 2, 1], 1],
  ["breaker_state", [0, 2, 0], 2],
  ["endpoint_health", [1, 0, 1], 0],
] as const) {
  test(`${name} of ${values.join(", ")} is ${merged}`, () => {
    const text = new MergedMetrics().together(values.map((value) => gauge(name, value)));
    assert.equal(text, gauge(name, merged));
  });
}

test("counters of an ended process stay in the sums, gauges do not", () => {
  const metrics = new MergedMetrics();
  const last = (count: number): string =>
    counter(count) + histogram(count, 1) + gauge("active_requests", 4) + gauge("gateway_events_dropped_total", 1);
  metrics.depart(last(10));
  metrics.depart(last(5));
  const text = metrics.together([counter(1) + histogram(1, 1) + gauge("active_requests", 2)]);
  assert.equal(
    text,
    counter(16) + histogram(16, 3) + gauge("active_requests", 2) + gauge("gateway_events_dropped_total", 2),
  );
  assert.equal(metrics.together([counter(1)]).includes("} 16\n"), true, "reading changes nothing");
});

test("metrics without samples keep their lines", () => {
  const text = "# HELP shed_total Shed\n# TYPE shed_total counter\n";
  assert.equal(new MergedMetrics().together([text, text]), text);
});
