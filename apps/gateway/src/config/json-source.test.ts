import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isCollection, isPair, isScalar, parseDocument } from "yaml";
import { jsonSteps } from "./json-source.ts";
import { atOnce } from "./steps.ts";
import { YAML_OPTIONS } from "./yaml-source.ts";

const treeOf = (text: string): unknown => atOnce(jsonSteps(text, 3));

/** All that anybody reads of a tree. */
function shown(node: unknown): unknown {
  if (isPair(node)) return { key: shown(node.key), value: shown(node.value) };
  if (isScalar(node)) return { value: node.value, source: node.source, type: node.type, range: placeOf(node.range) };
  if (!isCollection(node)) return node;
  return { items: node.items.map(shown), kind: node.constructor.name, flow: node.flow, range: placeOf(node.range) };
}

const placeOf = (range: readonly number[] | null | undefined): unknown => range?.slice(0, 2);

/** A text of JSON with space, between marks, of its own. */
function written(value: unknown, space: () => string): string {
  const inside = (open: string, members: string[], close: string): string =>
    `${open}${space()}${members.join(`${space()},${space()}`)}${space()}${close}`;
  if (Array.isArray(value)) return inside("[", value.map((item) => written(item, space)), "]"); // prettier-ignore
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.entries(value).map(
    ([key, item]) => `${JSON.stringify(key)}${space()}:${space()}${written(item, space)}`,
  );
  return inside("{", members, "}");
}

test("strict JSON is what the library makes of it as YAML, wherever there is space", () => {
  const objects = fc.dictionary(fc.string({ maxLength: 6 }), fc.jsonValue({ maxDepth: 4 }), { maxKeys: 5 });
  const spaces = fc.array(fc.constantFrom("", "", " ", "  ", "\n", "\n ", " \n  "), { minLength: 1, maxLength: 9 });
  fc.assert(
    fc.property(objects, spaces, (value, choice) => {
      let count = 0;
      const text = written(value, () => choice[count++ % choice.length] ?? "");
      const document = parseDocument(text, YAML_OPTIONS);
      // What YAML does not take, such as a key and its colon on two lines, JSON does.
      fc.pre(document.errors.length === 0);
      assert.deepEqual(shown(treeOf(text)), shown(document.contents));
    }),
    { numRuns: 3000 },
  );
});

test("what JSON.parse takes is read, and means the same", () => {
  const texts = [
    '{"a":"\\u00e9\\ud83d\\ude00\\ud800\\/\\"\\\\\\b\\f\\n\\r\\t","b":[-0,0.5,1E+2,-1.25e-3,1e999,90071992547409931]}',
    '\t{\r\n"a"\n:\t1,"":{"":[[],{},[{}]]}}\n ',
    `{"${"k".repeat(2000)}":"\u2028\u0085\u007f\ufeff"}`,
  ];
  const valueOf = (node: unknown): unknown => {
    if (isScalar(node)) return typeof node.value === "bigint" ? Number(node.value) : node.value;
    if (!isCollection(node)) return assert.fail("no node");
    const items = node.items.map((item) => (isPair(item) ? [valueOf(item.key), valueOf(item.value)] : valueOf(item)));
    return node.constructor.name === "YAMLMap" ? Object.fromEntries(items as [string, unknown][]) : items;
  };
  // BigInt knows no negative zero.
  const parsed = (text: string): unknown => JSON.parse(text, (_key, value: unknown) => (value === 0 ? 0 : value));
  for (const text of texts) assert.deepEqual(valueOf(treeOf(text)), parsed(text));
});

const OTHERS: readonly (readonly [string, string])[] = [
  ["nothing", ""],
  ["no object", "[1]"],
  ["a scalar", '"a"'],
  ["YAML", "a: 1\n"],
  ["flow YAML", "{a: 1}"],
  ["a comma at the end", '{"a":1,}'],
  ["no comma", '{"a":1 "b":2}'],
  ["a comment", '{"a":1} # why'],
  ["something behind it", '{"a":1}{'],
  ["an end that is missing", '{"a":[1,2'],
  ["an end that is missing behind a text", '{"a":"b'],
  ["an end that is missing behind a backslash", '{"a":"b\\'],
  ["a line break in a text", '{"a":"b\n"}'],
  ["an escape of YAML", '{"a":"\\x41"}'],
  ["half an escape", '{"a":"\\u12"}'],
  ["a single quote", "{'a':1}"],
  ["a number with a zero in front", '{"a":01}'],
  ["a number without digits", '{"a":-}'],
  ["a number with a point at its end", '{"a":1.}'],
  ["an infinite number", '{"a":.inf}'],
  ["a word that goes on", '{"a":trueish}'],
  ["a word of YAML", '{"a":True}'],
  ["an anchor", '{"a":&x 1}'],
  ["space that is none of JSON", '{"a":\u00a01}'],
  ["a mark of byte order", '\ufeff{"a":1}'],
  ["a key that is there twice", '{"a":1,"b":2,"a":3}'],
  ["a key that is there twice further in", '{"a":[{"b":1,"\\u0062":2}]}'],
  ["one of many keys that is there twice", `{${Array.from({ length: 20 }, (_, at) => `"${at % 19}":1`).join()}}`],
  ["what is nested one deeper than a document may be", `{"a":${"[".repeat(64)}1${"]".repeat(64)}}`],
  ["a thousand lists in one another", `{"a":${"[".repeat(1000)}${"]".repeat(1000)}}`],
];
for (const [what, text] of OTHERS) {
  test(`JSON: ${what} is left to YAML`, () => {
    assert.equal(treeOf(text), undefined);
  });
}

test("as many keys as there are, and as deep as a document may be", () => {
  assert.ok(treeOf(`{${Array.from({ length: 20 }, (_, at) => `"${at}":1`).join()}}`));
  assert.ok(treeOf(`{"a":${"[".repeat(63)}1${"]".repeat(63)}}`));
});

test("a text that is cut or changed anywhere is read only where JSON.parse reads it, too", () => {
  const text = '{"a": [1, -2.5e3, true, null], "b\\n": {"c": "d\\u0041"}}';
  for (let at = 0; at < text.length; at += 1) {
    for (const put of ["", '"', "\\", "{", "]", ",", ":", "0", "-", ".", "e", "\n", " ", "x"]) {
      const changed = text.slice(0, at) + put + text.slice(at + 1);
      let isJson = true;
      try {
        JSON.parse(changed);
      } catch {
        isJson = false;
      }
      assert.equal(treeOf(changed) !== undefined, isJson && changed.startsWith("{"), changed);
    }
    assert.equal(treeOf(text.slice(0, at)), undefined);
  }
});

test("members of long lists below the root are read in steps", () => {
  const steps = jsonSteps(JSON.stringify({ a: Array.from({ length: 10 }, () => ({ b: [1, 2, 3, 4] })) }), 3);
  let count = 1;
  while (steps.next().done !== true) count += 1;
  assert.equal(count, 4);
});
