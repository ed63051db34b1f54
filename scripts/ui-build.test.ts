import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fixtureTree } from "./fixture-tree.ts";
import { ensureUi, uiState } from "./ui-build.ts";

const SOURCE = "apps/capture-ui/src/main.tsx";
const BUILT = "apps/capture-ui/dist/index.html";
const manifest = (name: string, ...needed: string[]): string =>
  JSON.stringify({ name, dependencies: Object.fromEntries(needed.map((other) => [other, "0.1.0"])) });
const ui = {
  [SOURCE]: "one",
  "apps/capture-ui/package.json": JSON.stringify({ name: "ui", devDependencies: { contract: "0.1.0", react: "19" } }),
  "packages/capture-contract/package.json": manifest("contract", "fields"),
  "packages/capture-contract/src/index.ts": "contract",
  "packages/http-fields/package.json": manifest("fields", "pattern", "contract"),
  "packages/linear-pattern/package.json": manifest("pattern"),
  "packages/linear-pattern/src/index.ts": "pattern",
  "packages/http1/package.json": manifest("http1", "fields"),
  "package-lock.json": "{}",
};

/** Replaces dist, like the bundler. */
function stubBuild(write: (files: Record<string, string>) => void): {
  build: () => Promise<void>;
  count: () => number;
} {
  let builds = 0;
  const build = (): Promise<void> => {
    builds++;
    write({ [BUILT]: "<!doctype html>" });
    return Promise.resolve();
  };
  return { build, count: () => builds };
}

const silent = (): void => undefined;

test("a tree without a UI needs no build and reports that", async () => {
  using tree = fixtureTree({ "apps/capture-ui/package.json": "{}" });
  const lines: string[] = [];
  const state = await ensureUi(
    tree.root,
    (line) => lines.push(line),
    () => Promise.reject(new Error("built")),
  );
  assert.equal(state, "absent");
  assert.equal(lines.length, 1);
});

test("a missing build is created once, with one printed line", async () => {
  using tree = fixtureTree(ui);
  const { build, count } = stubBuild(tree.write);
  const lines: string[] = [];
  assert.equal(uiState(tree.root), "missing");
  assert.equal(await ensureUi(tree.root, (line) => lines.push(line), build), "fresh");
  assert.equal(await ensureUi(tree.root, (line) => lines.push(line), build), "fresh");
  assert.equal(count(), 1);
  assert.equal(lines.length, 1);
});

describe("a build is stale after", () => {
  const cases: readonly [name: string, files: Record<string, string>][] = [
    ["a changed source", { [SOURCE]: "two" }],
    ["a new source", { "apps/capture-ui/src/new.tsx": "" }],
    ["a changed page", { "apps/capture-ui/index.html": "new" }],
    ["a changed contract", { "packages/capture-contract/src/index.ts": "other" }],
    ["a change in what the contract needs in turn", { "packages/linear-pattern/src/index.ts": "other" }],
    ["a new file in a package that had none", { "packages/http-fields/src/new.ts": "" }],
    ["changed dependencies", { "package-lock.json": "{ }" }],
  ];
  for (const [name, files] of cases) {
    test(name, async () => {
      using tree = fixtureTree(ui);
      const { build, count } = stubBuild(tree.write);
      await ensureUi(tree.root, silent, build);
      tree.write(files);
      assert.equal(uiState(tree.root), "stale");
      await ensureUi(tree.root, silent, build);
      assert.equal(count(), 2);
      assert.equal(uiState(tree.root), "fresh");
    });
  }

  test("a removed source", async () => {
    using tree = fixtureTree({ ...ui, "apps/capture-ui/src/old.tsx": "" });
    await ensureUi(tree.root, silent, stubBuild(tree.write).build);
    rmSync(join(tree.root, "apps/capture-ui/src/old.tsx"));
    assert.equal(uiState(tree.root), "stale");
  });
});

describe("a build stays fresh after", () => {
  const cases: readonly [name: string, files: Record<string, string>][] = [
    ["a source written anew with the same content", { [SOURCE]: "one" }],
    ["a changed test", { "apps/capture-ui/src/main.test.ts": "new" }],
    ["a change in a package that is not bundled", { "packages/http1/src/index.ts": "new" }],
    ["a change in what is said about a package", { "packages/linear-pattern/README.md": "new" }],
  ];
  for (const [name, files] of cases) {
    test(name, async () => {
      using tree = fixtureTree(ui);
      await ensureUi(tree.root, silent, stubBuild(tree.write).build);
      tree.write(files);
      assert.equal(uiState(tree.root), "fresh");
    });
  }
});

test("a failed build is reported and does not count, even if it left a page", async () => {
  using tree = fixtureTree(ui);
  await ensureUi(tree.root, silent, stubBuild(tree.write).build);
  tree.write({ [SOURCE]: "broken" });
  await assert.rejects(
    ensureUi(tree.root, silent, () => Promise.reject(new Error("unexpected token"))),
    /unexpected token/u,
  );
  tree.write({ [SOURCE]: "one" });
  assert.equal(uiState(tree.root), "stale");
});

test("an edit during the build makes it stale", async () => {
  using tree = fixtureTree(ui);
  await ensureUi(tree.root, silent, () => {
    tree.write({ [BUILT]: "<!doctype html>", [SOURCE]: "edited" });
    return Promise.resolve();
  });
  assert.equal(uiState(tree.root), "stale");
});
