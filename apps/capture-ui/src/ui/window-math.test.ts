import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  MAX_SCROLL_PX,
  contentPx,
  isScaled,
  renderedRows,
  scrollOf,
  topRow,
  topToShow,
  drawnWindow,
  MAX_HEIGHT_PX,
  scrollHeight,
  scrollToShow,
} from "./window-math.ts";

const small = { rows: 1000, rowPx: 20, viewportPx: 400 };
const huge = { rows: 5_000_000, rowPx: 20, viewportPx: 400 };

test("a list that fits scrolls pixel by pixel", () => {
  assert.equal(isScaled(small), false);
  assert.equal(contentPx(small), 20_000);
  assert.equal(topRow(small, 410), 20.5);
  assert.deepEqual(renderedRows(small, 410, 2), { from: 18, to: 43, offsetPx: 360 });
});

test("a list taller than browsers can lay out still scrolls to its last row", () => {
  assert.equal(contentPx(huge), MAX_SCROLL_PX);
  const end = MAX_SCROLL_PX - huge.viewportPx;
  assert.equal(renderedRows(huge, end).to, huge.rows);
  const { from, offsetPx } = renderedRows(huge, end, 0);
  assert.ok(Math.abs(offsetPx + (huge.rows - from) * huge.rowPx - MAX_SCROLL_PX) < 1);
});

test("scroll position and top row are inverse functions", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20_000_000 }), fc.double({ min: 0, max: 1, noNaN: true }), (rows, share) => {
      const geometry = { rows, rowPx: 18, viewportPx: 500 };
      const top = share * Math.max(0, rows - 500 / 18);
      assert.ok(Math.abs(topRow(geometry, scrollOf(geometry, top)) - top) < 0.01);
    }),
  );
});

test("a row is scrolled into view by the minimum", () => {
  assert.equal(topToShow(small, 100, 110), 100);
  assert.equal(topToShow(small, 100, 50), 47);
  assert.equal(topToShow(small, 100, 200), 184);
});

test("an empty list renders nothing", () => {
  assert.deepEqual(renderedRows({ rows: 0, rowPx: 20, viewportPx: 400 }, 0), { from: 0, to: 0, offsetPx: 0 });
});

const viewport = (length: number) => ({ rowHeightPx: 28, heightPx: 700, length });

test("an empty list draws nothing", () => {
  assert.deepEqual(drawnWindow(viewport(0), 0), { first: 0, last: -1, shiftPx: 0 });
});

test("a short list draws all its rows at any scroll position", () => {
  assert.deepEqual(drawnWindow(viewport(3), 500), { first: 0, last: 2, shiftPx: 0 });
});

test("partly visible rows are drawn at both edges", () => {
  assert.deepEqual(drawnWindow(viewport(1000), 14), { first: 0, last: 25, shiftPx: 0 });
  assert.deepEqual(drawnWindow(viewport(1000), 28), { first: 1, last: 25, shiftPx: 0 });
});

test("millions of rows stay below the maximum height of browsers, and both ends are reachable", () => {
  const million = viewport(1_000_000);
  assert.equal(scrollHeight(million), MAX_HEIGHT_PX);
  assert.equal(drawnWindow(million, 0).first, 0);
  const end = drawnWindow(million, MAX_HEIGHT_PX - 700);
  assert.equal(end.last, 999_999);
  // The last row ends at the lower edge.
  const bottom = (end.last + 1) * 28 + end.shiftPx;
  assert.ok(Math.abs(bottom - MAX_HEIGHT_PX) < 0.5, String(bottom));
});

test("showing a row makes it fully visible; a visible row does not scroll the list", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2_000_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (length, position, where) => {
        const view = viewport(length);
        const max = Math.max(0, scrollHeight(view) - view.heightPx);
        const from = position * max;
        const index = Math.min(length - 1, Math.floor(where * length));
        const to = scrollToShow(view, from, index);
        const drawn = drawnWindow(view, to);
        assert.ok(drawn.first <= index && index <= drawn.last, `${index} in ${drawn.first}..${drawn.last}`);
        const again = scrollToShow(view, to, index);
        assert.ok(Math.abs(again - to) < 0.01, `${again} ${to}`);
      },
    ),
  );
});
