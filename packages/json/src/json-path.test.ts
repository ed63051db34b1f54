import assert from "node:assert/strict";
import { test } from "node:test";
import { parseJsonPath, readJson, selectJson, WrittenNumber } from "./index.ts";
import fc from "fast-check";

function select(path: string, root: unknown): readonly unknown[] | string {
  const parsed = parseJsonPath(path);
  return parsed.ok ? selectJson(root, parsed.steps) : `${parsed.at}: ${parsed.message}`;
}

test("a path selects values in the order of the document", () => {
  const root = { a: [1, { b: 2, "x y": 3 }, [4]], b: { b: 5 }, "": 6 };
  const cases: readonly (readonly [path: string, expected: readonly unknown[]])[] = [
    ["$", [root]],
    ["$.a[0]", [1]],
    ["$.a[-1]", [[4]]],
    ["$.a[-9]", []],
    ["$.a[9]", []],
    ["$.a[*]", root.a],
    ["$.b.*", [5]],
    ["$['a'][1]['x y']", [3]],
    ['$["a"][1]["x y"]', [3]],
    ["$['']", [6]],
    ["$..b", [root.b, 2, 5]],
    ["$.a.b", []],
    ["$.a.length", []],
    ["$.toString", []],
    ["$['__proto__']", []],
    ["$[ 0 ]", []],
  ];
  for (const [path, expected] of cases) assert.deepEqual(select(path, root), expected, path);
  assert.deepEqual(select("$..*", [1, [2]]), [1, [2], 2]);
  assert.deepEqual(select("$['__proto__']", JSON.parse('{"__proto__":1}')), [1]);
  assert.deepEqual(select("$['a\\'b']", { "a'b": 1 }), [1]);
});

test("a number that keeps its text has no members", () => {
  const root = readJson('{"a":[1.0,{"b":2.0}]}');
  assert.deepEqual(select("$..text", root), []);
  assert.deepEqual(select("$.a[0].*", root), []);
  assert.deepEqual(
    [select("$..*", root)]
      .flat()
      .filter((value) => value instanceof WrittenNumber)
      .map(String),
    ["1.0", "2.0"],
  );
});

test("what is no path is refused with its place", () => {
  assert.equal(select("a", {}), "0: a JSON path begins with `$`");
  for (const [path, at] of [
    ["$.", 1],
    ["$a", 1],
    ["$.a[", 3],
    ["$.a[?(@.b)]", 3],
    ["$[1:2]", 1],
    ["$['a]", 1],
    ["$...a", 1],
  ] as const) {
    assert.match(String(select(path, {})), new RegExp(`^${at}: expected`), path);
  }
  assert.match(String(select(`$${".a".repeat(65)}`, {})), /more than 64 steps/);
});

test("visits are bounded in wide, deep and hostile documents", () => {
  let deep: unknown = 1;
  for (let depth = 0; depth < 500_000; depth += 1) deep = [deep];
  assert.ok(select("$..*", deep).length <= 200_000);
  const wide = Array.from({ length: 1000 }, () => Array.from({ length: 1000 }, () => 1));
  assert.ok(select("$..*", wide).length <= 200_000);
  assert.ok(select("$[*][*]", wide).length <= 201_000);
  assert.ok(select(`$${"..*".repeat(20)}`, wide).length <= 200_000);
});

test("any text is read or refused without throwing", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom("$", ".", "a", "[", "]", "'", '"', "\\", "*", "0", "-", " "), { maxLength: 12 }),
      (pieces) => {
        select(`$${pieces.join("")}`, { a: [{ a: 1 }] });
      },
    ),
  );
});
