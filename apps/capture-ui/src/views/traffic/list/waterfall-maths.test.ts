import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  axisOf,
  barOnAxis,
  durationLength,
  hasRoomForLabel,
  segments,
  tickStep,
  type Stage,
} from "./waterfall-maths.ts";

const NONE = { blocked: null, dns: null, connect: null, tls: null, send: null, wait: null, receive: null };

test("stages fill the bar in order, and absent ones have no width", () => {
  const parts = segments({ ...NONE, dns: 10, wait: 30 });
  assert.deepEqual(parts, [
    { stage: "dns" satisfies Stage, start: 0, width: 0.25 },
    { stage: "wait" satisfies Stage, start: 0.25, width: 0.75 },
  ]);
});

test("without timings the bar is one segment, and negative times count as zero", () => {
  assert.deepEqual(segments(NONE), [{ stage: "wait", start: 0, width: 1 }]);
  assert.deepEqual(segments({ ...NONE, send: -5, receive: 5 }), [{ stage: "receive", start: 0, width: 1 }]);
});

test("longer exchanges have longer bars, up to the width of the cell", () => {
  assert.ok(durationLength(10) < durationLength(100));
  assert.equal(durationLength(null), 0.06);
  assert.equal(durationLength(1e9), 1);
});

test("the axis covers all exchanges and has round ticks", () => {
  const axis = axisOf(
    [
      { startMs: 1000, durationMs: 200 },
      { startMs: 1500, durationMs: 700 },
    ],
    6,
  );
  assert.deepEqual(axis, { startMs: 1000, spanMs: 1200, ticksMs: [0, 200, 400, 600, 800, 1000, 1200] });
  assert.equal(axisOf([], 6), undefined);
  assert.equal(axisOf([{ startMs: Number.NaN, durationMs: 1 }], 6), undefined);
});

test("steps are 1, 2 or 5 times a power of ten, and ticks are limited", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 10_000_000 }), fc.integer({ min: 1, max: 12 }), (span, most) => {
      const step = tickStep(span, most);
      assert.ok(span / step <= most);
      assert.match(String(step), /^[125]0*$/u);
    }),
  );
});

test("bars stay on the axis and are always visible", () => {
  fc.assert(
    fc.property(fc.integer({ min: -5000, max: 9000 }), fc.integer({ min: -10, max: 9000 }), (start, duration) => {
      const { left, width } = barOnAxis({ startMs: 0, spanMs: 4000, ticksMs: [] }, start, duration, 0.004);
      assert.ok(left >= 0 && width >= 0.004 && left + width <= 1.000001);
    }),
  );
});

test("a tick at the end has no label, since it would be clipped", () => {
  const ticksMs = [0, 10, 20, 30];
  const labelled = (spanMs: number) => ticksMs.filter((tick) => hasRoomForLabel({ startMs: 0, spanMs, ticksMs }, tick));
  assert.deepEqual(labelled(31), [0, 10, 20]);
  assert.deepEqual(labelled(38), ticksMs);
  assert.equal(hasRoomForLabel({ startMs: 0, spanMs: 5, ticksMs: [0] }, 0), true);
});
