import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { histogram, nearestRank, summarize } from "./batch-summary.ts";
import type { BatchPoint } from "./batch-summary.ts";

const point = (durationMs: number, status: number | undefined = 200, code?: string): BatchPoint => ({
  durationMs,
  status: code === undefined ? status : undefined,
  error: code === undefined ? undefined : { code, message: `${code}!` },
});

const RANKS: readonly [number[], number, number | null][] = [
  [[], 50, null],
  [[7], 1, 7],
  [[7], 99, 7],
  [[1, 2], 50, 1],
  [[1, 2], 51, 2],
  [[15, 20, 35, 40, 50], 30, 20],
  [[15, 20, 35, 40, 50], 40, 20],
  [[15, 20, 35, 40, 50], 50, 35],
  [[15, 20, 35, 40, 50], 100, 50],
  [Array.from({ length: 100 }, (_, index) => index + 1), 95, 95],
];
for (const [values, percent, expected] of RANKS) {
  test(`p${percent} of ${values.length} values is ${expected}`, () =>
    assert.equal(nearestRank(values, percent), expected));
}

const durations = fc.array(fc.double({ min: 0, max: 100_000, noNaN: true }), { minLength: 1, maxLength: 300 });

test("a percentile is the smallest value that at least that share of the values does not exceed", () => {
  fc.assert(
    fc.property(durations, fc.integer({ min: 1, max: 100 }), (values, percent) => {
      const sorted = values.toSorted((a, b) => a - b);
      const rank = nearestRank(sorted, percent) as number;
      const share = (limit: number): number => sorted.filter((value) => value <= limit).length / sorted.length;
      assert.ok(share(rank) >= percent / 100);
      const below = sorted.filter((value) => value < rank);
      assert.ok(below.length === 0 || below.length / sorted.length < percent / 100);
    }),
  );
});

test("a histogram counts every value once, in adjacent slices from minimum to maximum", () => {
  fc.assert(
    fc.property(durations, (values) => {
      const sorted = values.toSorted((a, b) => a - b);
      const slices = histogram(sorted);
      assert.ok(slices.length <= 20);
      assert.equal(
        slices.reduce((sum, { count }) => sum + count, 0),
        sorted.length,
      );
      assert.deepEqual(
        slices.slice(1).map(({ from_ms: from }) => from),
        slices.slice(0, -1).map(({ to_ms: to }) => to),
      );
      assert.ok(Math.abs((slices[0]?.from_ms ?? 0) - (sorted[0] ?? 0)) <= 0.01);
      assert.ok(Math.abs((slices.at(-1)?.to_ms ?? 0) - (sorted.at(-1) ?? 0)) <= 0.01);
    }),
  );
});

test("responses of any status count as succeeded, by status; failures are counted by code", () => {
  const summary = summarize([point(3), point(1), point(2, 500), point(9, 0, "A"), point(9, 0, "B"), point(9, 0, "B")]);
  assert.deepEqual([summary.total, summary.succeeded, summary.failed], [6, 3, 3]);
  assert.deepEqual([summary.min_ms, summary.avg_ms, summary.max_ms, summary.p50_ms, summary.p99_ms], [1, 2, 3, 2, 3]);
  assert.deepEqual(summary.statuses, { 200: 2, 500: 1 });
  assert.deepEqual(summary.errors, [
    { code: "B", message: "B!", count: 2 },
    { code: "A", message: "A!", count: 1 },
  ]);
});

test("replays of zero duration count, and an empty batch has no statistics", () => {
  assert.deepEqual([summarize([point(0), point(4)]).avg_ms, summarize([point(0), point(4)]).p50_ms], [2, 0]);
  const none = summarize([]);
  assert.deepEqual([none.total, none.avg_ms, none.p95_ms, none.histogram], [0, null, null, []]);
});
