import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { drawnWindow, MAX_HEIGHT_PX, scrollHeight, scrollToShow } from "./window-maths.ts";

const viewport = (length: number) => ({ rowHeightPx: 28, heightPx: 700, length });

test("an empty list draws nothing", () => {
  assert.deepEqual(drawnWindow(viewport(0), 0), { first: 0, last: -1, shiftPx: 0 });
});

test("a short list draws all of it, however far it is scrolled", () => {
  assert.deepEqual(drawnWindow(viewport(3), 500), { first: 0, last: 2, shiftPx: 0 });
});

test("partly visible rows are drawn at both edges", () => {
  assert.deepEqual(drawnWindow(viewport(1000), 14), { first: 0, last: 25, shiftPx: 0 });
  assert.deepEqual(drawnWindow(viewport(1000), 28), { first: 1, last: 25, shiftPx: 0 });
});

test("millions of rows stay below the height that browsers lay out, and both ends can be reached", () => {
  const million = viewport(1_000_000);
  assert.equal(scrollHeight(million), MAX_HEIGHT_PX);
  assert.equal(drawnWindow(million, 0).first, 0);
  const end = drawnWindow(million, MAX_HEIGHT_PX - 700);
  assert.equal(end.last, 999_999);
  // The last row ends at the lower edge.
  const bottom = (end.last + 1) * 28 + end.shiftPx;
  assert.ok(Math.abs(bottom - MAX_HEIGHT_PX) < 0.5, String(bottom));
});

test("a row that is asked for can be seen whole afterwards, and visible ones do not move the list", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 2_000_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (length, place, where) => {
        const view = viewport(length);
        const max = Math.max(0, scrollHeight(view) - view.heightPx);
        const from = place * max;
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
