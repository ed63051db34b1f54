import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compileQueryChanges } from "./transforms.slice.ts";

type Changes = Parameters<typeof compileQueryChanges>[0];

const CASES: readonly (readonly [string, Changes, string, string])[] = [
  ["set replaces where the first stood", { set: { a: "n" } }, "/p?x=1&a=1&y&a=2", "/p?x=1&a=n&y"],
  ["set adds what is not there", { set: { a: "n" } }, "/p", "/p?a=n"],
  ["add keeps what is there", { add: { a: "2" } }, "/p?a=1", "/p?a=1&a=2"],
  ["rename keeps values as they were written", { rename: { a: "b c" } }, "/p?a=%2f+1&a&x", "/p?b%20c=%2f+1&b%20c&x"],
  ["remove takes all, and the mark with the last", { remove: ["a"] }, "/p?a=1&a", "/p"],
  ["remove sees through every spelling of the name", { remove: ["ab"] }, "/p?%61b=1&a%62&x=1", "/p?x=1"],
  [
    "what is not concerned stays byte for byte",
    { remove: ["z"] },
    "/p?a=%zz&b=%C3%28&c==&=d&e='\"",
    "/p?a=%zz&b=%C3%28&c==&=d&e='\"",
  ],
  ["values cannot add parameters", { set: { "a&b": "1&c=2#?" } }, "/p", "/p?a%26b=1%26c%3D2%23%3F"],
  [
    "applied in the order set, add, rename, remove",
    { set: { a: "1" }, add: { a: "2" }, rename: { a: "b" }, remove: ["b"] },
    "/p?a=0&c",
    "/p?c",
  ],
  ["halves of characters", { set: { a: "\ud800" } }, "/", "/?a=%EF%BF%BD"],
];
for (const [name, changes, before, after] of CASES) {
  test(`transforms of queries: ${name}`, () => assert.equal(compileQueryChanges(changes)?.(before), after));
}

test("transforms of queries: nothing to do costs nothing", () => {
  assert.equal(compileQueryChanges(undefined), undefined);
  assert.equal(compileQueryChanges({ set: {} }), undefined);
});

test("transforms of queries: whatever a client sends, a removed parameter is gone and nothing unprintable appears", () => {
  const change = compileQueryChanges({ remove: ["secret"], set: { kept: "yes" } });
  const piece = fc.constantFrom(
    "secret",
    "%73ecret",
    "s%65cret=1",
    "secret=%zz",
    "a=1",
    "=",
    "&",
    "kept",
    "%",
    "?",
    "+",
  );
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const target = change?.(`/p?${pieces.join("&")}`) ?? "";
      const found = new URL(target, "http://a").searchParams;
      assert.deepEqual([found.has("secret"), found.getAll("kept")], [false, ["yes"]]);
      assert.match(target, /^[!-~]+$/);
    }),
  );
});
