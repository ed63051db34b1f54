import assert from "node:assert/strict";
import { test } from "node:test";
import { compileIgnoredPaths } from "./ignored-paths.ts";
import type { JsonPlace } from "./ignored-paths.ts";

const CASES: readonly [string, JsonPlace, boolean][] = [
  ["$.a", ["a"], true],
  ["$.a", ["a", "b"], false],
  ["$.a", ["b"], false],
  ["$", [], true],
  ["$.items[*].at", ["items", 3, "at"], true],
  ["$.items[*].at", ["items", "x", "at"], true],
  ["$.items[1].at", ["items", 1, "at"], true],
  ["$.items[1].at", ["items", 2, "at"], false],
  ["$..id", ["id"], true],
  ["$..id", ["a", 0, "b", "id"], true],
  ["$..id", ["a", "idx"], false],
  ["$..a..b", ["a", "x", "b"], true],
  ["$..a..b", ["b", "a"], false],
  ["$['with space']", ["with space"], true],
  ["/items/1/at", ["items", 1, "at"], true],
  ["/a~1b/~0", ["a/b", "~"], true],
  ["/", [""], true],
];
for (const [pattern, place, expected] of CASES) {
  test(`${pattern} ${expected ? "is" : "is not"} ${JSON.stringify(place)}`, () => {
    const compiled = compileIgnoredPaths([pattern]);
    assert.ok(compiled.ok);
    assert.equal(compiled.paths.matches(place), expected);
  });
}

test("patterns that cannot be read are named with their number", () => {
  const compiled = compileIgnoredPaths(["$.a", "a.b", "/~2", "$.["]);
  assert.ok(!compiled.ok);
  assert.deepEqual(
    compiled.issues.map(({ index }) => index),
    [1, 2, 3],
  );
});

test("many `..` in a pattern cost no more for a deep place", () => {
  const compiled = compileIgnoredPaths([`$${"..a".repeat(60)}`]);
  assert.ok(compiled.ok);
  const place = Array.from({ length: 400 }, () => "a");
  assert.equal(compiled.paths.matches([...place, "b"]), false);
  assert.equal(compiled.paths.matches(place), true);
});
