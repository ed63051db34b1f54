import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { repositoryRoot } from "./source-tree.ts";

const text = (file: string): string => readFileSync(join(repositoryRoot, file), "utf8");

/** The options of Node in the first line of a program. */
function entryOptions(file: string): string[] {
  return text(file).split("\n", 1)[0]?.match(/--\S+/gu) ?? [];
}

const OPTIONS = entryOptions("apps/capture-proxy/src/main.ts");

test("both services have the same options of Node in their first line", () => {
  assert.ok(OPTIONS.length > 0);
  assert.deepEqual(entryOptions("apps/gateway/src/main.ts"), OPTIONS);
});

for (const file of [
  "scripts/start.ts",
  "docs/gateway/deploy.md",
  "bench/capture/proxies.ts",
  "bench/gateway/contenders.ts",
  "bench/gateway/reloads.ts",
]) {
  test(`${file} starts services with the options of their first line`, () => {
    const given = text(file).match(/"--(?:no-)?(?:[a-z]+-)*(?:semi-space|old-space|gc|pretenuring)[^"]*"/gu) ?? [];
    assert.deepEqual(
      given.map((option) => option.slice(1, -1)),
      OPTIONS,
    );
  });
}
