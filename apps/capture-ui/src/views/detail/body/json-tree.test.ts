import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { JsonTree, JsonTreeError } from "./json-tree.ts";

const parse = (source: string) => JsonTree.parse(new TextEncoder().encode(source));

/** Rebuilds the value from the columns. */
function rebuild(tree: JsonTree, node = 0): unknown {
  switch (tree.kind(node)) {
    case "object":
      return Object.fromEntries(tree.children(node).map((child) => [tree.key(child), rebuild(tree, child)]));
    case "array":
      return tree.children(node).map((child) => rebuild(tree, child));
    case "string":
      return tree.text(node);
    default:
      return JSON.parse(tree.source(node)) as unknown;
  }
}

test("the tree of a JSON value contains that value", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.boolean(), (value, spaced) => {
      const source = JSON.stringify(value, null, spaced ? 2 : 0);
      assert.deepEqual(rebuild(parse(source)), JSON.parse(source));
    }),
  );
});

test("members, sizes and paths are available without decoding the text", () => {
  const tree = parse('{"a":[10,{"odd key":"x\\ny"}],"b":{}}');
  const [list, empty] = tree.children(0);
  assert.ok(list !== undefined && empty !== undefined);
  assert.equal(tree.count(0), 2);
  assert.equal(tree.count(list), 2);
  assert.equal(tree.count(empty), 0);
  const second = tree.children(list)[1] ?? -1;
  const odd = tree.children(second)[0] ?? -1;
  assert.equal(tree.path(odd), '$.a[1]["odd key"]');
  assert.equal(tree.text(odd), "x\ny");
  assert.equal(tree.source(odd), '"x\\ny"');
  assert.equal(tree.size(odd), 6);
  assert.equal(tree.path(0), "$");
});

test("several values in sequence become the items of one array", () => {
  const tree = parse('{"a":1}\n{"a":2}\n');
  assert.equal(tree.kind(0), "array");
  assert.equal(tree.count(0), 2);
  assert.deepEqual(rebuild(tree), [{ a: 1 }, { a: 2 }]);
});

test("invalid JSON is rejected with the position", () => {
  for (const source of ["", "{", "[1,]", '{"a"}', "[1 2", "tru", '"open', "{a:1}", "[1}", "[01]", '["\n"]', "1 ]"]) {
    assert.throws(() => parse(source), JsonTreeError, source);
  }
});

test("a key named like a prototype member is an ordinary key", () => {
  const tree = parse('{"__proto__":{"x":1},"constructor":2}');
  assert.deepEqual(
    tree.children(0).map((child) => tree.key(child)),
    ["__proto__", "constructor"],
  );
});

test("hundreds of thousands of nested brackets neither overflow the stack nor stall", () => {
  const depth = 300_000;
  const tree = parse("[".repeat(depth) + "]".repeat(depth));
  assert.equal(tree.length, depth);
  assert.equal(tree.next(0), depth);
});

test("a long string is truncated without being decoded completely", () => {
  const tree = parse(`["${"y".repeat(100_000)}"]`);
  assert.equal(tree.text(1, 101).length, 100);
});
