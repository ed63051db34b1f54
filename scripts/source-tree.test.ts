import assert from "node:assert/strict";
import { test } from "node:test";
import { fixtureTree } from "./fixture-tree.ts";
import { filesBelow, reportProblems, sourceFiles } from "./source-tree.ts";

test("sources are listed in order, without dependencies, builds, hidden files and third-party code", () => {
  using tree = fixtureTree({
    "scripts/b.ts": "",
    "apps/x/src/a.ts": "",
    "apps/x/dist/a.js": "",
    "apps/x/node_modules/y/a.js": "",
    "packages/p/src/results/a.ts": "",
    "bench/peers/other.ts": "",
    "bench/results/1.json": "",
    "e2e/.hidden/a.ts": "",
    "docs/a.md": "",
  });
  assert.deepEqual(sourceFiles(tree.root), ["apps/x/src/a.ts", "packages/p/src/results/a.ts", "scripts/b.ts"]);
  assert.deepEqual(filesBelow(tree.root, "packages/p"), ["packages/p/src/results/a.ts"]);
  assert.deepEqual(filesBelow(tree.root, "packages/absent"), []);
});

test("problems are printed in order and set exit code 1; without any, a success message is printed", (context) => {
  const before = process.exitCode;
  context.after(() => (process.exitCode = before));
  const errors = context.mock.method(console, "error", () => undefined);
  const lines = context.mock.method(console, "log", () => undefined);
  reportProblems([], "All is well");
  assert.equal(process.exitCode, before);
  assert.deepEqual(lines.mock.calls[0]?.arguments, ["All is well"]);
  reportProblems(
    [
      { where: "b.ts", message: "second" },
      { where: "a.ts", message: "first" },
    ],
    "All is well",
  );
  const printed = errors.mock.calls.map((call) => call.arguments[0] as unknown);
  assert.deepEqual(printed, ["a.ts\n    first", "b.ts\n    second"]);
  assert.equal(process.exitCode, 1);
});
