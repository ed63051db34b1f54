import assert from "node:assert/strict";
import { test } from "node:test";
import {
  COLUMNS,
  DEFAULT_LAYOUT,
  gridTemplate,
  moveColumn,
  readLayout,
  resetColumnWidth,
  resizeColumn,
  toggleColumn,
  visibleColumns,
} from "./columns.ts";

const ids = (columns: readonly { readonly id: string }[]) => columns.map((column) => column.id);

test("a wide list shows the default columns in order", () => {
  assert.deepEqual(ids(visibleColumns(DEFAULT_LAYOUT, 1384)), [
    "seq",
    "time",
    "method",
    "status",
    "host",
    "path",
    "type",
    "size",
    "duration",
    "waterfall",
  ]);
});

test("a narrow list hides the least important columns first, and the path last", () => {
  assert.deepEqual(ids(visibleColumns(DEFAULT_LAYOUT, 680)), ["time", "method", "status", "host", "path", "duration"]);
  assert.deepEqual(ids(visibleColumns(DEFAULT_LAYOUT, 420)), ["method", "status", "host", "path"]);
  assert.deepEqual(ids(visibleColumns(DEFAULT_LAYOUT, 0)), ["path"]);
});

test("time and size are hidden before hosts and paths become too narrow", () => {
  assert.ok(!ids(visibleColumns(DEFAULT_LAYOUT, 600)).includes("time"));
  assert.deepEqual(ids(visibleColumns(DEFAULT_LAYOUT, 600)), ["method", "status", "host", "path", "duration"]);
});

test("visible columns always fit", () => {
  for (let room = 200; room < 2000; room += 37) {
    const shown = visibleColumns(DEFAULT_LAYOUT, room);
    const min = shown.reduce((sum, column) => sum + 8 + (column.grow === undefined ? column.widthPx : column.minPx), 3);
    assert.ok(min <= room, `${min} in ${room}`);
  }
});

test("one column always takes the remaining width", () => {
  const template = gridTemplate(DEFAULT_LAYOUT, visibleColumns(DEFAULT_LAYOUT, 1400));
  assert.match(template, /1\.6fr/u);
  const fixed = resizeColumn(resizeColumn(DEFAULT_LAYOUT, "host", 200), "path", 300);
  assert.match(gridTemplate(fixed, visibleColumns(fixed, 1400)), /minmax\(130px, 1fr\)$/u);
});

test("columns move, hide and reappear with valid widths", () => {
  assert.deepEqual(moveColumn(DEFAULT_LAYOUT, "path", "seq").order.slice(0, 2), ["path", "seq"]);
  assert.equal(moveColumn(DEFAULT_LAYOUT, "seq", null).order.at(-1), "seq");
  const hidden = toggleColumn(DEFAULT_LAYOUT, "size");
  assert.ok(!ids(visibleColumns(hidden, 1400)).includes("size"));
  assert.deepEqual(toggleColumn(hidden, "size").hidden.toSorted(), DEFAULT_LAYOUT.hidden.toSorted());
  assert.equal(resizeColumn(DEFAULT_LAYOUT, "host", 3).widths.host, 90);
  assert.equal(resizeColumn(DEFAULT_LAYOUT, "host", 99_999).widths.host, 1200);
  assert.deepEqual(resetColumnWidth(resizeColumn(DEFAULT_LAYOUT, "host", 200), "host").widths, {});
});

test("the last column cannot be hidden", () => {
  let layout = DEFAULT_LAYOUT;
  for (const column of COLUMNS) layout = toggleColumn(layout, column.id);
  for (const column of COLUMNS) if (!layout.hidden.includes(column.id)) layout = toggleColumn(layout, column.id);
  assert.ok(layout.hidden.length < COLUMNS.length);
});

test("any stored value becomes a layout with every column once", () => {
  for (const stored of [
    undefined,
    null,
    5,
    {},
    { order: "x" },
    { order: ["path", "path", "gone"], hidden: [7], widths: { path: "wide", host: -4, gone: 3 } },
  ]) {
    const layout = readLayout(stored);
    assert.deepEqual(layout.order.toSorted(), COLUMNS.map((column) => column.id).toSorted());
    assert.ok(Object.values(layout.widths).every((width) => width >= 36));
  }
  assert.equal(readLayout({ order: ["path"] }).order[0], "path");
  assert.deepEqual(readLayout({ order: ["path"], hidden: [] }).hidden.toSorted(), DEFAULT_LAYOUT.hidden.toSorted());
});
