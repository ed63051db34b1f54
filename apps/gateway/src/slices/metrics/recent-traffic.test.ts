import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MinuteCounts, spanMs } from "./metrics.slice.ts";

const MINUTE_MS = 60_000;

test("requests are counted for an hour, then forgotten minute by minute", () => {
  const counts = new MinuteCounts();
  counts.add(10);
  counts.add(MINUTE_MS + 10);
  counts.add(MINUTE_MS + 20);
  assert.equal(counts.total(MINUTE_MS + 30), 3);
  assert.equal(counts.total(59 * MINUTE_MS), 3);
  assert.equal(counts.total(60 * MINUTE_MS), 2);
  assert.equal(counts.total(61 * MINUTE_MS), 0);
  counts.add(1000 * MINUTE_MS);
  assert.equal(counts.total(1000 * MINUTE_MS), 1);
});

test("a count is that of the last 60 minutes, whatever pauses are between requests", () => {
  const pauses = fc.array(fc.integer({ min: 0, max: 90 * MINUTE_MS }), { maxLength: 60 });
  fc.assert(
    fc.property(pauses, (pausesMs) => {
      const counts = new MinuteCounts();
      const moments: number[] = [];
      let nowMs = 0;
      for (const pauseMs of pausesMs) {
        nowMs += pauseMs;
        moments.push(nowMs);
        counts.add(nowMs);
        const minute = Math.floor(nowMs / MINUTE_MS);
        const lately = moments.filter((moment) => Math.floor(moment / MINUTE_MS) > minute - 60);
        assert.equal(counts.total(nowMs), lately.length);
      }
    }),
  );
});

test("a request that ended just before another one is counted with it", () => {
  const counts = new MinuteCounts();
  counts.add(5 * MINUTE_MS);
  counts.add(5 * MINUTE_MS - 1);
  assert.equal(counts.total(5 * MINUTE_MS), 2);
});

test("the time that counts stand for begins with the process and ends at an hour", () => {
  assert.deepEqual([spanMs(500, 400), spanMs(500, 1500), spanMs(0, 1e9)], [0, 1000, 3_600_000]);
});
