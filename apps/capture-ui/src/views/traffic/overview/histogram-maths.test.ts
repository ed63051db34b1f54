import assert from "node:assert/strict";
import { test } from "node:test";
import { dragRange, histogramBars, rangeOnStrip } from "./histogram-maths.ts";

test("empty slices have no bar, and one entry beside thousands is visible", () => {
  const bars = histogramBars([
    { count: 0, errors: 0 },
    { count: 1, errors: 1 },
    { count: 10_000, errors: 0 },
  ]);
  assert.deepEqual(bars[0], { height: 0, errors: 0 });
  assert.deepEqual(bars[1], { height: 0.06, errors: 1 });
  assert.deepEqual(bars[2], { height: 1, errors: 0 });
  assert.deepEqual(histogramBars([]), []);
});

test("a range is dragged from either end and beyond the edges", () => {
  assert.deepEqual(dragRange(1000, 2000, 0.75, 0.25), { fromMs: 1250, toMs: 1750 });
  assert.deepEqual(dragRange(1000, 2000, -1, 3), { fromMs: 1000, toMs: 2000 });
  assert.deepEqual(dragRange(1000, 2000, 0.5, 0.5), { fromMs: 1500, toMs: 1501 });
});

test("a range is drawn at its position and clipped at the edges", () => {
  assert.deepEqual(rangeOnStrip(1000, 2000, { fromMs: 1500, toMs: 3000 }), { left: 0.5, width: 0.5 });
  assert.equal(rangeOnStrip(1000, 2000, { fromMs: 3000, toMs: 4000 }), undefined);
  assert.equal(rangeOnStrip(1000, 1000, { fromMs: 0, toMs: 4000 }), undefined);
});
