import assert from "node:assert/strict";
import { test } from "node:test";
import { JsonTable, tableCandidates } from "./body-worker-client.ts";
import { JsonTree } from "./json-tree.ts";

const parse = (value: unknown) => JsonTree.parse(new TextEncoder().encode(JSON.stringify(value)));

test("columns are the keys of the rows in order of first appearance; absent members are empty cells", () => {
  const tree = parse([{ id: 1, name: "a" }, { name: "b", extra: [1, 2] }, 7]);
  const table = new JsonTable(tree, 0);
  assert.deepEqual(table.columns, ["id", "name", "extra", "value"]);
  assert.deepEqual(
    table.rows(0, 9).map((row) => row.cells.map((cell) => cell?.text ?? null)),
    [
      ["1", "a", null, null],
      [null, "b", "[1,2]", null],
      [null, null, null, "7"],
    ],
  );
});

test("a window of rows has the positions of the whole table", () => {
  const table = new JsonTable(parse(Array.from({ length: 50 }, (_, id) => ({ id }))), 0);
  assert.deepEqual(
    table.rows(48, 99).map((row) => [row.position, row.cells[0]?.text]),
    [
      [48, "48"],
      [49, "49"],
    ],
  );
});

test("the largest array of objects comes first, at any depth", () => {
  const tree = parse({ meta: [{ a: 1 }], data: { items: [{ id: 1 }, { id: 2 }] }, ids: [1, 2, 3] });
  assert.deepEqual(
    tableCandidates(tree).map(({ path, count }) => [path, count]),
    [
      ["$.data.items", 2],
      ["$.meta", 1],
    ],
  );
  assert.deepEqual(tableCandidates(parse(["text"])), []);
});

test("the number of columns is limited", () => {
  const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`k${index}`, index]));
  assert.equal(new JsonTable(parse([wide]), 0).columns.length, 60);
});
