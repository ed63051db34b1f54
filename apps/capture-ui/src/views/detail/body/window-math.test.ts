import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { MAX_SCROLL_PX, contentPx, isScaled, renderedRows, scrollOf, topRow, topToShow } from "./window-math.ts";

const small = { rows: 1000, rowPx: 20, viewportPx: 400 };
const huge = { rows: 5_000_000, rowPx: 20, viewportPx: 400 };

test("a list that fits scrolls pixel by pixel", () => {
  assert.equal(isScaled(small), false);
  assert.equal(contentPx(small), 20_000);
  assert.equal(topRow(small, 410), 20.5);
  assert.deepEqual(renderedRows(small, 410, 2), { from: 18, to: 43, offsetPx: 360 });
});

test("a list taller than a browser can lay out reaches its last row all the same", () => {
  assert.equal(contentPx(huge), MAX_SCROLL_PX);
  const end = MAX_SCROLL_PX - huge.viewportPx;
  assert.equal(renderedRows(huge, end).to, huge.rows);
  const { from, offsetPx } = renderedRows(huge, end, 0);
  assert.ok(Math.abs(offsetPx + (huge.rows - from) * huge.rowPx - MAX_SCROLL_PX) < 1);
});

test("scroll position and top row are inverse to each other", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20_000_000 }), fc.double({ min: 0, max: 1, noNaN: true }), (rows, share) => {
      const geometry = { rows, rowPx: 18, viewportPx: 500 };
      const top = share * Math.max(0, rows - 500 / 18);
      assert.ok(Math.abs(topRow(geometry, scrollOf(geometry, top)) - top) < 0.01);
    }),
  );
});

test("a row is brought into view with the least movement", () => {
  assert.equal(topToShow(small, 100, 110), 100);
  assert.equal(topToShow(small, 100, 50), 47);
  assert.equal(topToShow(small, 100, 200), 184);
});

test("an empty list renders nothing", () => {
  assert.deepEqual(renderedRows({ rows: 0, rowPx: 20, viewportPx: 400 }, 0), { from: 0, to: 0, offsetPx: 0 });
});
