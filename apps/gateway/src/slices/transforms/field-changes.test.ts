import assert from "node:assert/strict";
import { test } from "node:test";
import { Secret } from "@headworks/contract-kit";
import type { FieldChanges } from "@headworks/gateway-contract";
import { compileFieldChanges } from "./transforms.slice.ts";

/** `${NAME}` is NAME in lower case. */
const secret = (text: string): Secret =>
  new Secret(text.replace(/^\$\{(.*)\}$/, (_, name: string) => name.toLowerCase()));

const CASES: readonly (readonly [string, FieldChanges, readonly string[], readonly string[]])[] = [
  ["set replaces all lines", { set: { "X-A": "new" } }, ["x-a", "1", "B", "2", "X-A", "3"], ["X-A", "new", "B", "2"]],
  ["values may be references", { set: { A: "${ONE}" }, add: { B: "${TWO}" } }, [], ["A", "one", "B", "two"]],
  ["set adds what is not there", { set: { "X-A": "new" } }, ["B", "2"], ["B", "2", "X-A", "new"]],
  ["add keeps what is there", { add: { "X-A": "2" } }, ["X-A", "1"], ["X-A", "1", "X-A", "2"]],
  [
    "rename keeps values and places of all lines",
    { rename: { "x-a": "X-B" } },
    ["X-A", "1", "C", "2", "x-A", "3"],
    ["X-B", "1", "C", "2", "X-B", "3"],
  ],
  ["rename of what is not there", { rename: { "x-a": "X-B" } }, ["C", "2"], ["C", "2"]],
  ["remove takes all lines", { remove: ["X-A"] }, ["x-a", "1", "B", "2", "X-a", "3"], ["B", "2"]],
  [
    "applied in the order set, add, rename, remove",
    { set: { A: "set" }, add: { A: "add" }, rename: { A: "B" }, remove: ["C", "B"] },
    ["a", "1", "C", "2", "D", "3"],
    ["D", "3"],
  ],
  ["what was set can be renamed", { set: { A: "1" }, rename: { a: "B" } }, [], ["B", "1"]],
];
for (const [name, changes, before, after] of CASES) {
  test(`transforms: ${name}`, () => {
    const fields = [...before];
    compileFieldChanges(changes, secret)?.(fields);
    assert.deepEqual(fields, after);
  });
}

test("transforms: nothing to do costs nothing", () => {
  assert.equal(compileFieldChanges(undefined, secret), undefined);
  assert.equal(compileFieldChanges({ set: {}, remove: [] }, secret), undefined);
});
