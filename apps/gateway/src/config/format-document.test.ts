import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parse } from "yaml";
import { formatDocument } from "./format-document.ts";
import { readDocument } from "./read-document.ts";
import { toYaml } from "./write-document.ts";

for (const [name, text, expected] of [
  [
    "comments at every place stay",
    "# top\n\na: 1 # one\n\n# before b\nb:\n    # inside\n    - x # item\n# end\n",
    "# top\n\na: 1 # one\n\n# before b\nb:\n  # inside\n  - x # item\n# end\n",
  ],
  ["anchors and aliases stay", "a: &x\n   - 1\nb: *x\n", "a: &x\n  - 1\nb: *x\n"],
  ["quotes and forms of numbers stay", "a: 'x'\nb: \"y\"\nc: 0x10\nd: 1.50\n", "a: 'x'\nb: \"y\"\nc: 0x10\nd: 1.50\n"],
  ["long lines stay", `a: ${"word ".repeat(60)}end\n`, `a: ${"word ".repeat(60)}end\n`],
  [
    "blocks of text stay",
    "a: |\n    one\n      two\nb: >-\n    folded\n    text\n",
    "a: |\n  one\n    two\nb: >-\n  folded text\n",
  ],
  [
    "what is commented out below an empty section stays there",
    "webhooks:\n#  - url: x\n#    events: []\n\n\n#  - url: y\nroutes: # none\n\n  # - name: a\ngateway:\n    via:\n        # requests: true\n    name: x\n",
    "webhooks:\n#  - url: x\n#    events: []\n\n#  - url: y\nroutes: # none\n\n  # - name: a\ngateway:\n  via:\n      # requests: true\n  name: x\n",
  ],
  [
    "what is commented out behind a member stays beside it",
    "a:\n    - b: 1\n      # c: 2\n    # - b: 3\n# - b: 4\nd: |+\n    # text\n\n\n# end\n",
    "a:\n  - b: 1\n    # c: 2\n  # - b: 3\n# - b: 4\nd: |+\n  # text\n\n\n# end\n",
  ],
  ["comments inside of brackets stay", "a: [\n  # one\n  1, 2 ]\n", "a:\n  [\n    # one\n    1,\n    2\n  ]\n"],
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

const SHOP = `gateway:
  name: shop
  via:
    requests: true
routes:
  - name: a
    match:
      path: { type: exact, value: / }
    transforms:
      request:
        headers:
          set:
            X-A: "1"
    action:
      type: respond
      body: |
        # no comment
          of several lines
  - name: b
    action: { type: respond }
consumers:
  - name: c
    groups:
      - g
      - h
`;

const indentOf = (line: string): number => line.search(/[^ ]/);

void test("what is commented out can be put back after the text was written evenly, whatever it is", () => {
  for (const indent of [2, 3, 4]) {
    const lines = SHOP.trimEnd()
      .split("\n")
      .map(
        (line) =>
          " ".repeat((indentOf(line) / 2) * indent) + line.trimStart().replace(/^- /, `-${" ".repeat(indent - 1)}`),
      );
    for (const [from, line] of lines.entries()) {
      if (/no comment|several lines/.test(line)) continue;
      const below = lines.findIndex((other, at) => at > from && indentOf(other) <= indentOf(line));
      const end = below === -1 ? lines.length : below;
      const commented = lines.map((other, at) =>
        at < from || at >= end ? other : `${" ".repeat(indentOf(line))}#: ${other.slice(indentOf(line))}`,
      );
      const formatted = formatDocument(`${commented.join("\n")}\n`);
      assert.ok(formatted !== undefined, commented.join("\n"));
      assert.equal(formatDocument(formatted), formatted);
      assert.deepEqual(parse(formatted.replaceAll("#: ", "")), parse(lines.join("\n")), formatted);
    }
  }
});
