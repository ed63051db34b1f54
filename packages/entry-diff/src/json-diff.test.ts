import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Json, readJson } from "@headworks/json";
import { shapeOf } from "./entry-diff.ts";
import { applyJsonChanges, compileIgnoredPaths, diffJson, type IgnoredPaths, type JsonLocation } from "./json-diff.ts";

const ignoring = (...patterns: string[]): IgnoredPaths => {
  const compiled = compileIgnoredPaths(patterns);
  assert.ok(compiled.ok);
  return compiled.paths;
};

const { json } = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<Json>(null, true, 0, 1, "", "a", "1"),
    fc.array(tie("json"), { maxLength: 5 }),
    fc.dictionary(fc.constantFrom("a", "b", "/", "~", "0", "__proto__"), tie("json"), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
  ),
}));

test("applying the changes to one document gives the other, and there are none where nothing differs", () => {
  fc.assert(
    fc.property(json, json, (left, right) => {
      const { changes, isTruncated } = diffJson(left, right);
      assert.equal(isTruncated, false);
      assert.deepStrictEqual(
        JSON.parse(JSON.stringify(applyJsonChanges(left, changes))),
        JSON.parse(JSON.stringify(right)),
      );
      assert.deepEqual(diffJson(left, JSON.parse(JSON.stringify(left)) as Json).changes, []);
    }),
    { numRuns: 1000 },
  );
});

test("what is ignored everywhere makes no change, whatever it is and wherever elements came in", () => {
  const rows = fc.array(fc.record({ id: fc.integer({ min: 0, max: 3 }), at: fc.string() }), { maxLength: 6 });
  fc.assert(
    fc.property(rows, fc.func(fc.string()), (left, other) => {
      const right = left.map((row, index) => ({ ...row, at: other(index) }));
      assert.deepEqual(diffJson(left, right, { ignored: ignoring("$[*].at") }).changes, []);
    }),
  );
});

const CASES: readonly [string, string, string, readonly unknown[]][] = [
  ["the order of members", '{"a":1,"b":2}', '{"b":2,"a":1}', []],
  ["the way numbers are written", "[1, 100, 1.50, 0, 1e400]", "[1.0, 1e2, 15e-1, -0.0, 10E399]", []],
];

for (const [what, left, right, changes] of CASES) {
  test(`${what} is no difference`, () => assert.deepEqual(diffJson(readJson(left), readJson(right)).changes, changes));
}

test("long numbers differ in any digit", () => {
  const { changes } = diffJson(readJson("[12345678901234567890]"), readJson("[12345678901234567891]"));
  assert.equal(
    JSON.stringify(changes),
    '[{"path":"/0","op":"replace","left":12345678901234567890,"right":12345678901234567891}]',
  );
});

test("an element that came in is one change, and a changed one is told by its member", () => {
  const left = {
    items: [
      { id: 1, n: "a" },
      { id: 2, n: "b" },
      { id: 3, n: "c" },
    ],
  };
  const right = {
    items: [
      { id: 0, n: "z" },
      { id: 1, n: "a" },
      { id: 2, n: "B" },
      { id: 3, n: "c" },
    ],
  };
  assert.deepEqual(diffJson(left, right).changes, [
    { path: "/items/0", op: "add", right: { id: 0, n: "z" } },
    { path: "/items/1/n", op: "replace", left: "b", right: "B" },
  ]);
});

test("another type is marked, and names are escaped in paths", () => {
  assert.deepEqual(diffJson({ "a/b": { "~": 1 } }, { "a/b": { "~": "1" } }).changes, [
    { path: "/a~1b/~0", op: "replace", left: 1, right: "1", is_type_change: true },
  ]);
  assert.equal(diffJson({}, []).changes[0]?.is_type_change, true);
});

test("ignored differences are counted, on whichever side they stand", () => {
  const { changes, ignoredChanges } = diffJson(
    { at: 1, gone: 2, list: [{ at: 1 }, { at: 2 }] },
    { at: 2, come: 3, list: [{ at: 9 }, { at: 2 }] },
    { ignored: ignoring("$..at", "/gone", "$.come") },
  );
  assert.deepEqual([changes, ignoredChanges], [[], 4]);
});

test("more changes than asked for are cut, and said to be", () => {
  const { changes, isTruncated } = diffJson([1, 2, 3], [4, 5, 6], { maxChanges: 2 });
  assert.deepEqual([changes.length, isTruncated], [2, true]);
});

test("a document of many parts is compared in time that grows with its size", () => {
  const made = (salt: number): Json =>
    Array.from({ length: 20_000 }, (_, index) => ({
      id: index,
      nested: { list: [index, index + 1], salt: index % 50 === 0 ? salt : 0 },
    }));
  assert.equal(diffJson(made(1), made(2)).changes.length, 400);
});

test("a shape has types in the place of values, and one element for a list", () => {
  assert.deepEqual(shapeOf({ id: 1, tags: ["a", "b"], rows: [{ a: 1 }, { b: null }, "x"], none: [], on: true }), {
    id: "number",
    tags: ["string"],
    rows: [{ "any of": ["string", { a: "number", b: "null" }] }],
    none: [],
    on: "boolean",
  });
  assert.deepEqual(shapeOf(readJson("[1, 2.50, 12345678901234567890]")), ["number"]);
});

const PATH_CASES: readonly [string, JsonLocation, boolean][] = [
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

for (const [pattern, path, expected] of PATH_CASES) {
  test(`${pattern} ${expected ? "is" : "is not"} ${JSON.stringify(path)}`, () => {
    const compiled = compileIgnoredPaths([pattern]);
    assert.ok(compiled.ok);
    assert.equal(compiled.paths.matches(path), expected);
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
  const path = Array.from({ length: 400 }, () => "a");
  assert.equal(compiled.paths.matches([...path, "b"]), false);
  assert.equal(compiled.paths.matches(path), true);
});
