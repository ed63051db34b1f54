import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { findSliceProblems } from "./check-slices.ts";
import { fixtureTree } from "./fixture-tree.ts";
import { writeSlice } from "./new-slice.ts";
import { repositoryRoot } from "./source-tree.ts";

const ENTRY = "packages/capture-contract/src/index.ts";
const realEntry = readFileSync(join(repositoryRoot, ENTRY), "utf8");
const read = (root: string, path: string): string => readFileSync(join(root, path), "utf8");

test("a new slice passes the checks and is exported by the contract's entry", () => {
  using tree = fixtureTree({ [ENTRY]: realEntry });
  const result = writeSlice(tree.root, "tide-gauge", "tide-reading");
  assert.equal(result.kind, "written");
  assert.deepEqual(findSliceProblems(tree.root), []);
  const entry = read(tree.root, ENTRY);
  const added = entry.split("\n").filter((line) => !realEntry.split("\n").includes(line));
  assert.deepEqual(added, [
    'import { tideGaugeOperations } from "./tide-gauge.ts";',
    '  "tide-gauge": tideGaugeOperations,',
    'export * from "./tide-gauge.ts";',
  ]);
  assert.equal(entry.split("\n").length, realEntry.split("\n").length + 3);
  assert.match(read(tree.root, "packages/capture-contract/src/tide-gauge.ts"), /export type TideReading = /u);
});

test("an entry of another form is left unchanged and named in the steps", () => {
  using tree = fixtureTree({ [ENTRY]: "export {};\n" });
  const result = writeSlice(tree.root, "mocks");
  assert.equal(result.kind, "written");
  assert.match(result.left[0] ?? "", /add mocksOperations to/u);
  assert.equal(read(tree.root, ENTRY), "export {};\n");
});

test("if any file exists, nothing is written", () => {
  const path = "apps/capture-proxy/src/slices/mocks/mocks.operations.ts";
  using tree = fixtureTree({ [ENTRY]: realEntry, [path]: "mine" });
  assert.deepEqual(writeSlice(tree.root, "mocks"), { kind: "refused", reason: `${path} exists already` });
  assert.equal(read(tree.root, path), "mine");
  assert.equal(existsSync(join(tree.root, "packages/capture-contract/src/mocks.ts")), false);
});

describe("an invalid name is refused", () => {
  const cases: readonly [slice: string, noun: string | undefined][] = [
    ["", undefined],
    ["Mocks", undefined],
    ["tide_gauge", undefined],
    ["-mocks", undefined],
    ["mocks-", undefined],
    ["../mocks", undefined],
    ["shared", undefined],
    ["mocks", "Mock Rule"],
  ];
  for (const [slice, noun] of cases) {
    test(JSON.stringify([slice, noun]), () => {
      using tree = fixtureTree({ [ENTRY]: realEntry });
      assert.equal(writeSlice(tree.root, slice, noun).kind, "refused");
      assert.equal(read(tree.root, ENTRY), realEntry);
    });
  }
});
