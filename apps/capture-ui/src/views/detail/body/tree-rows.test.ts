import assert from "node:assert/strict";
import { test } from "node:test";
import { JsonTree } from "./json-tree.ts";
import { TreeRows } from "./tree-rows.ts";

const open = (value: unknown) => new TreeRows(JsonTree.parse(new TextEncoder().encode(JSON.stringify(value))));
const labels = (rows: TreeRows) => rows.rows(0, 100).map((row) => `${"  ".repeat(row.depth)}${row.label ?? "$"}`);

test("a small document is expanded by two levels", () => {
  const rows = open({ a: { b: { c: 1 } }, d: [true, null] });
  assert.deepEqual(labels(rows), ["$", "  a", "    b", "  d", "    0", "    1"]);
});

test("expanding and collapsing a node leaves the others unchanged", () => {
  const rows = open({ a: { b: { c: 1 } }, d: [] });
  const b = rows.rows(2, 3)[0];
  assert.ok(b);
  rows.toggle(b.node);
  assert.deepEqual(labels(rows), ["$", "  a", "    b", "      c", "  d"]);
  rows.toggle(b.node);
  assert.deepEqual(labels(rows), ["$", "  a", "    b", "  d"]);
  rows.collapseAll();
  assert.deepEqual(labels(rows), ["$", "  a", "  d"]);
});

test("expanding everything stops at the limit and reports it", () => {
  const big = open(Array.from({ length: 60 }, () => Array.from({ length: 3000 }, () => 0)));
  assert.equal(big.expandAll(0), false);
  assert.ok(big.length > 90_000 && big.length <= 100_000, `${big.length}`);
  const small = open([[1, [2, [3]]]]);
  assert.equal(small.expandAll(0), true);
  assert.equal(small.length, 7);
});

test("revealing a node expands its ancestors", () => {
  const rows = open({ a: { b: { c: { d: 1 } } } });
  rows.collapseAll();
  const line = rows.reveal(4);
  assert.equal(rows.rows(line, line + 1)[0]?.label, "d");
});

test("long values and containers are truncated", () => {
  const rows = open({ text: "x".repeat(10_000), list: [1, 2] });
  const [, text, list] = rows.rows(0, 3);
  assert.equal(text?.cut, true);
  assert.ok((text?.preview.length ?? 0) <= 400);
  assert.equal(list?.preview, "[1,2]");
  assert.equal(list?.cut, false);
});
