import assert from "node:assert/strict";
import { test } from "node:test";
import { type Json, jsonPatch, mergePatch, PatchError, readJson, writeJson } from "./index.ts";

/** The table of RFC 7396, appendix A. */
const MERGES: readonly (readonly [string, string, string])[] = [
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', "{}"],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', "null", "null"],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ["[1,2]", '{"a":"b","c":null}', '{"a":"b"}'],
  ["{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
];
for (const [target, patch, result] of MERGES) {
  test(`merge patch ${patch} turns ${target} into ${result}`, () => {
    assert.deepEqual(mergePatch(JSON.parse(target) as Json, JSON.parse(patch) as Json), JSON.parse(result));
  });
}

const PATCHES: readonly (readonly [string, string, string | RegExp])[] = [
  ['{"foo":"bar"}', '[{"op":"add","path":"/baz","value":"qux"}]', '{"foo":"bar","baz":"qux"}'],
  ['{"foo":["bar","baz"]}', '[{"op":"add","path":"/foo/1","value":"qux"}]', '{"foo":["bar","qux","baz"]}'],
  ['{"foo":["a"]}', '[{"op":"add","path":"/foo/-","value":["b"]}]', '{"foo":["a",["b"]]}'],
  ['{"baz":"qux","foo":"bar"}', '[{"op":"remove","path":"/baz"}]', '{"foo":"bar"}'],
  ['{"foo":["a","b","c"]}', '[{"op":"remove","path":"/foo/1"}]', '{"foo":["a","c"]}'],
  ['{"baz":"qux"}', '[{"op":"replace","path":"/baz","value":"boo"}]', '{"baz":"boo"}'],
  ['{"a":{"x":1},"b":{}}', '[{"op":"move","from":"/a/x","path":"/b/y"}]', '{"a":{},"b":{"y":1}}'],
  ['{"foo":["1","2","3"]}', '[{"op":"move","from":"/foo/0","path":"/foo/2"}]', '{"foo":["2","3","1"]}'],
  ['{"a":{"x":1}}', '[{"op":"copy","from":"/a","path":"/b"}]', '{"a":{"x":1},"b":{"x":1}}'],
  ['{"baz":"qux","foo":["a",2]}', '[{"op":"test","path":"/foo/1","value":2}]', '{"baz":"qux","foo":["a",2]}'],
  ['{"baz":"qux"}', '[{"op":"test","path":"/baz","value":"bar"}]', /Operation 0: .*another one/],
  ['{"foo":"bar"}', '[{"op":"add","path":"/baz/bat","value":"qux"}]', /nothing at "baz"/],
  ['{"/":9,"~1":10}', '[{"op":"test","path":"/~01","value":10}]', '{"/":9,"~1":10}'],
  ['{"foo":["bar"]}', '[{"op":"add","path":"/foo/2","value":1}]', /no place in the list/],
  ['{"foo":["bar"]}', '[{"op":"add","path":"/foo/01","value":1}]', /no place in the list/],
  ['{"foo":1}', '[{"op":"remove","path":"/none"}]', /nothing at/],
  ['{"a":{}}', '[{"op":"move","from":"/a","path":"/a/b"}]', /into itself/],
  ['{"a":1}', '[{"op":"nope","path":"/a"}]', /no operation "nope"/],
  ['{"a":1}', '[{"op":"add","path":"a","value":1}]', /no JSON pointer/],
  ['{"a":1}', '[{"op":"add","path":"/b"}]', /needs a value/],
  ['{"a":1}', "{}", /list of operations/],
  ['{"a":1}', '[{"op":"remove","path":""}]', /whole document/],
];
for (const [target, patch, result] of PATCHES) {
  test(`JSON patch ${patch} on ${target}`, () => {
    const apply = (): Json => jsonPatch(JSON.parse(target) as Json, JSON.parse(patch) as Json);
    if (typeof result === "string") assert.deepEqual(apply(), JSON.parse(result));
    else assert.throws(apply, (error: unknown) => error instanceof PatchError && result.test(error.message));
  });
}

test("a patch that fails in its middle changes nothing, and names like __proto__ are names", () => {
  const target = JSON.parse('{"a":1}') as Json;
  assert.throws(() =>
    jsonPatch(target, [
      { op: "add", path: "/b", value: 2 },
      { op: "remove", path: "/none" },
    ]),
  );
  assert.deepEqual(target, { a: 1 });
  const patched = jsonPatch(target, [{ op: "add", path: "/__proto__", value: { polluted: true } }]);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  assert.deepEqual(Object.keys(patched as object), ["a", "__proto__"]);
  mergePatch(target, JSON.parse('{"__proto__":{"polluted":true}}') as Json);
  assert.equal(({} as { polluted?: boolean }).polluted, undefined);
});

test("integers of 64 bits stay what they are", () => {
  const max = 18_446_744_073_709_551_615n;
  assert.deepEqual(mergePatch({ a: max, b: 1 }, { b: 2n }), { a: max, b: 2n });
  assert.deepEqual(jsonPatch({ a: max }, [{ op: "test", path: "/a", value: max }]), { a: max });
});

test("numbers stay as they were written, and compare by what they mean", () => {
  const text = '{"price":1.10,"id":18446744073709551615,"small":1e-400,"list":[0.1,-0]}';
  const merged = mergePatch(readJson(text), { more: true });
  assert.equal(
    writeJson(merged, text),
    '{"price":1.10,"id":18446744073709551615,"small":1e-400,"list":[0.1,-0],"more":true}',
  );
  const sameAs = (path: string, value: Json): Json => jsonPatch(readJson(text), [{ op: "test", path, value }]);
  assert.doesNotThrow(() => sameAs("/price", 1.1));
  assert.doesNotThrow(() => sameAs("/id", 18_446_744_073_709_551_615n));
  assert.throws(() => sameAs("/id", 18_446_744_073_709_551_614n), PatchError);
  assert.throws(() => sameAs("/price", 1.2), PatchError);
  assert.deepEqual(mergePatch(readJson('{"a":1.50}'), { a: { b: 1 } }), { a: { b: 1 } });
});

test("the indent of a text is kept", () => {
  for (const text of ['{\n  "a": 1\n}', "[\n\t1.0\n]", '{"a":1}', '{\n    "a": {}\n}\n', "7"]) {
    assert.equal(writeJson(readJson(text), text), text);
  }
});

test("a text that is no JSON is refused", () => {
  for (const text of ["", "{", "{a:1}", "01", "1.", "[1,]", "nul", '"\u0001"', "{} {}"]) {
    assert.throws(() => readJson(text), SyntaxError, text);
  }
});
