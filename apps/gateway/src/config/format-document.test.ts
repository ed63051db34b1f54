import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatDocument } from "./format-document.ts";
import { readDocument } from "./read-document.ts";
import { toYaml } from "./write-document.ts";

for (const [name, text, expected] of [
  [
    "comments at every place stay",
    "# top\n\na: 1 # one\n\n# before b\nb:\n    # inside\n    - x # item\n# end\n",
    "# top\n\na: 1 # one\n\n# before b\nb:\n  # inside\n  - x # item\n\n# end\n",
  ],
  ["anchors and aliases stay", "a: &x\n   - 1\nb: *x\n", "a: &x\n  - 1\nb: *x\n"],
  ["quotes and forms of numbers stay", "a: 'x'\nb: \"y\"\nc: 0x10\nd: 1.50\n", "a: 'x'\nb: \"y\"\nc: 0x10\nd: 1.50\n"],
  ["long lines stay", `a: ${"word ".repeat(60)}end\n`, `a: ${"word ".repeat(60)}end\n`],
  [
    "blocks of text stay",
    "a: |\n    one\n      two\nb: >-\n    folded\n    text\n",
    "a: |\n  one\n    two\nb: >-\n  folded text\n",
  ],
  ["line ends are those of Unix", "a: 1\r\nb: 2\r\n", "a: 1\nb: 2\n"],
  ["a line end at the end", "a: 1", "a: 1\n"],
] as const) {
  void test(`a text is written evenly: ${name}`, () => assert.equal(formatDocument(text), expected));
}

for (const text of ["", "a: [", "a: 1\na: 2", "{}\n---\n{}", "a: !x 1", "\ta: 1"]) {
  void test(`a text with errors of syntax is left alone: ${JSON.stringify(text)}`, () => {
    assert.equal(formatDocument(text), undefined);
  });
}

void test("what is written evenly means the same, and stays the same the next time", () => {
  const words = fc.oneof(
    fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }),
    fc.constantFrom("yes", "1e3", "- a", "#", "x: y", "\n", "null"),
  );
  const values = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "small" },
      words,
      fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
      fc.boolean(),
      fc.array(tie("value"), { maxLength: 3 }),
      fc.dictionary(words, tie("value"), { maxKeys: 3, noNullPrototype: true }),
    ),
  })).value;
  let formattedCount = 0;
  fc.assert(
    fc.property(
      fc.dictionary(words, values, { minKeys: 1, maxKeys: 4, noNullPrototype: true }),
      fc.integer({ min: 2, max: 8 }),
      (document, indent) => {
        const text = toYaml(document).replaceAll(/^( {2})+/gm, (spaces) => " ".repeat((spaces.length / 2) * indent));
        const formatted = formatDocument(text);
        if (formatted === undefined) return;
        formattedCount += 1;
        assert.equal(formatDocument(formatted), formatted);
        assert.deepEqual(readDocument(formatted).input, readDocument(text).input);
      },
    ),
    { numRuns: 500 },
  );
  assert.ok(formattedCount > 300, `${formattedCount} of 500`);
});

void test("aliases that stand for endlessly much are left alone, without a throw", () => {
  const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"];
  for (let at = 1; at < 10; at++) {
    const nine = Array.from({ length: 9 }, () => `*a${at - 1}`).join(", ");
    lines.push(`a${at}: &a${at} [${nine}]`);
  }
  assert.equal(formatDocument(lines.join("\n")), undefined);
});
