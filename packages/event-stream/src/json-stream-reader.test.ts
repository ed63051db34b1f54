import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import fc from "fast-check";
import { type JsonItem, type JsonStreamForm, JsonStreamReader } from "./json-stream-reader.ts";

function itemsOf(
  form: JsonStreamForm,
  pieces: readonly (string | Buffer)[],
  options: { limit?: number; ends?: boolean } = {},
): JsonItem[] {
  const items: JsonItem[] = [];
  const reader = new JsonStreamReader({
    form,
    maxItemBytes: options.limit ?? 1_000_000,
    // The bytes belong to the pieces; what is compared later must be a copy.
    onItem: (item) => void items.push({ ...item, bytes: Buffer.from(item.bytes) }),
  });
  for (const piece of pieces) reader.read(Buffer.from(piece));
  if (options.ends !== false) reader.end();
  return items;
}

/** Items as texts; one that is not whole with a mark. */
const texts = (items: readonly JsonItem[]) =>
  items.map(({ bytes, isComplete }) => `${bytes.toString()}${isComplete ? "" : " …"}`);

const RS = "\u{1E}";
const cases: readonly [form: JsonStreamForm, name: string, stream: string, items: readonly string[]][] = [
  ["lines", "one a line", '{"a":1}\n[2]\n3\n', ['{"a":1}', "[2]", "3"]],
  ["lines", "CR LF, empty and blank lines", '\r\n{"a":1}\r\n\n  \t\n2\r\n', ['{"a":1}', "2"]],
  ["lines", "a last line without an end", '{"a":1}\n{"b":2}', ['{"a":1}', '{"b":2}']],
  ["lines", "what is no JSON is told as it is", '{"a":\noops\n{"b":2}\n', ['{"a":', "oops", '{"b":2}']],
  ["lines", "characters that only look like line ends", '{"a":"\u{2028}"}\n', ['{"a":"\u{2028}"}']],
  ["concatenated", "with nothing between", '{"a":1}{"b":[{}]}[1,2]"x"', ['{"a":1}', '{"b":[{}]}', "[1,2]", '"x"']],
  ["concatenated", "over several lines", '{\n "a": 1\n}\n\n{\n "b": "}{"\n}\n', ['{\n "a": 1\n}', '{\n "b": "}{"\n}']],
  ["concatenated", "escapes in strings", '"a\\"b""\\\\""}"', ['"a\\"b"', '"\\\\"', '"}"']],
  ["concatenated", "numbers and words", "1 2\ntrue null -3e5{}7", ["1", "2", "true", "null", "-3e5", "{}", "7"]],
  ["concatenated", "a rest", '{"a":1}{"b":', ['{"a":1}', '{"b": …']],
  ["concatenated", "brackets that close nothing", '}]{"a":1}', ["}]", '{"a":1}']],
  ["sequence", "as RFC 7464 has it", `${RS}{"a":1}\n${RS}[2]\n${RS}3\n`, ['{"a":1}', "[2]", "3"]],
  ["sequence", "texts over several lines", `${RS}{\n"a":\n1}\n`, ['{\n"a":\n1}']],
  [
    "sequence",
    "a text that was cut off is told as broken, and the next is read",
    `${RS}{"a":"b${RS}{"c":1}\n`,
    ['{"a":"b …', '{"c":1}'],
  ],
  ["sequence", "separators in a row are one", `${RS}${RS}\n${RS}1\n`, ["1"]],
  ["array", "elements", '[{"a":1},\n{"b":[1,2]}\n, "x,]" ,3]\n', ['{"a":1}', '{"b":[1,2]}', '"x,]"', "3"]],
  ["array", "an empty one", " [ ] ", []],
  ["array", "no array at all", '{"error":{}}', ['{"error":{}}']],
  ["array", "elements that are arrays", "[[1],[2,[3]]]", ["[1]", "[2,[3]]"]],
  ["array", "that breaks off", '[{"a":1},{"b":', ['{"a":1}', '{"b": …']],
];

for (const [form, name, stream, items] of cases) {
  test(`${form}: ${name}`, () => {
    assert.deepEqual(texts(itemsOf(form, [stream])), items);
    const bytes = Buffer.from(stream);
    for (let cut = 1; cut < bytes.length; cut += 1) {
      assert.deepEqual(texts(itemsOf(form, [bytes.subarray(0, cut), bytes.subarray(cut)])), items, `cut at ${cut}`);
    }
    assert.deepEqual(
      texts(
        itemsOf(
          form,
          Array.from(bytes, (byte) => Buffer.of(byte)),
        ),
      ),
      items,
      "byte by byte",
    );
  });
}

const prompt: readonly [form: JsonStreamForm, start: string][] = [
  ["lines", '{"a":1}\n'],
  ["concatenated", '{"a":1}'],
  ["concatenated", '"a"'],
  ["concatenated", "12 "],
  ["sequence", `${RS}{"a":1}`],
  ["array", '[{"a":1}'],
];

for (const [form, start] of prompt) {
  test(`${form}: ${JSON.stringify(start)} is told before anything follows, and not sooner`, () => {
    assert.equal(itemsOf(form, [start], { ends: false }).length, 1);
    assert.equal(itemsOf(form, [start.slice(0, -1)], { ends: false }).length, 0);
  });
}

test("an item larger than the limit is cut and counted whole, and the next one is read", () => {
  for (const form of ["lines", "concatenated"] as const) {
    const [large, next] = itemsOf(form, [`{"a":"${"x".repeat(100)}`, `${"y".repeat(100)}"}\n{"b":1}\n`], { limit: 20 });
    assert.deepEqual(
      [large?.bytes.toString(), large?.isCut, large?.sizeBytes, large?.isComplete],
      [`{"a":"${"x".repeat(14)}`, true, 208, true],
    );
    assert.deepEqual([next?.bytes.toString(), next?.isCut], ['{"b":1}', false]);
  }
});

const json = fc.jsonValue({ maxDepth: 3 });
const written: Readonly<Record<JsonStreamForm, (values: readonly string[]) => string>> = {
  lines: (values) => values.map((value) => `${value}\n`).join(""),
  concatenated: (values) => values.join(" "),
  sequence: (values) => values.map((value) => `${RS}${value}\n`).join(""),
  array: (values) => `[${values.join(", ")}]`,
};

for (const form of ["lines", "concatenated", "sequence", "array"] as const) {
  test(`${form}: what was written is read, wherever it is cut, and every byte is counted at most once`, () => {
    fc.assert(
      fc.property(fc.array(json, { maxLength: 8 }), fc.array(fc.nat(300), { maxLength: 8 }), (values, cuts) => {
        const all = values.map((value) => JSON.stringify(value));
        const bytes = Buffer.from(written[form](all));
        const at = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
          (a, b) => a - b,
        );
        const items = itemsOf(
          form,
          at.map((from, index) => bytes.subarray(from, at[index + 1] ?? bytes.length)),
        );
        assert.deepEqual(texts(items), all);
        assert.ok(items.reduce((sum, { wireBytes }) => sum + wireBytes, 0) <= bytes.length);
      }),
    );
  });

  test(`${form}: any bytes are read within the limit, and nothing is thrown`, () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.uint8Array({ maxLength: 30 }),
            fc.constantFrom(...['"', "{", "]", `${RS}`, "\\", "\n", ","].map((text) => Buffer.from(text))),
          ),
          { maxLength: 30 },
        ),
        (pieces) => {
          for (const { bytes, sizeBytes, isCut } of itemsOf(
            form,
            pieces.map((piece) => Buffer.from(piece)),
            { limit: 16 },
          )) {
            assert.ok(bytes.length <= 16 && bytes.length <= sizeBytes);
            assert.ok(isCut || bytes.length === sizeBytes);
          }
        },
      ),
    );
  });
}
