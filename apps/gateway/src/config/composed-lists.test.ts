import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Composer, isAlias, isCollection, isPair, isScalar, Lexer, Parser, stringify } from "yaml";
import type { CST, Document } from "yaml";
import { composedInSteps, YAML_OPTIONS } from "./yaml-source.ts";

function tokensOf(text: string): CST.Token[] {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  for (const lexeme of new Lexer().lex(text)) tokens.push(...parser.next(lexeme));
  return [...tokens, ...parser.end()];
}

function inSteps(text: string, membersOfAStep: number): { documents: Document.Parsed[]; steps: number } {
  const composing = composedInSteps(tokensOf(text), YAML_OPTIONS, membersOfAStep, text.length);
  for (let steps = 1; ; steps += 1) {
    const { done, value } = composing.next();
    if (done === true) return { documents: value, steps };
  }
}

const whole = (text: string): Document.Parsed[] => [
  ...new Composer(YAML_OPTIONS).compose(tokensOf(text), true, text.length),
];

/** All that anybody reads of a tree. */
function shown(node: unknown): unknown {
  if (isPair(node)) return { key: shown(node.key), value: shown(node.value) };
  if (isAlias(node)) return { alias: node.source, range: node.range };
  if (isScalar(node)) return { value: node.value, source: node.source, range: node.range, anchor: node.anchor };
  if (!isCollection(node)) return node;
  return { items: node.items.map(shown), range: node.range, anchor: node.anchor, tag: node.tag };
}

function assertSame(text: string, membersOfAStep: number): number {
  const { documents, steps } = inSteps(text, membersOfAStep);
  const expected = whole(text);
  assert.deepEqual(
    documents.map(({ contents, range }) => [shown(contents), range]),
    expected.map(({ contents, range }) => [shown(contents), range]),
  );
  const problems = (document: Document.Parsed | undefined): string[] =>
    [...(document?.errors ?? []), ...(document?.warnings ?? [])].map(({ code, pos }) => `${code} ${pos.join()}`);
  assert.deepEqual(problems(documents[0]).toSorted(), problems(expected[0]).toSorted());
  return steps;
}

const member = (at: number): string => `  - name: r${at}\n    match: { path: /p${at} }\n`;
const LISTED = Array.from({ length: 10 }, (_, at) => member(at)).join("");

const TEXTS: readonly (readonly [string, string])[] = [
  ["a list of mappings, and what follows it", `routes:\n${LISTED}services: []\nlast: 1\n`],
  ["two lists, one of them last", `routes:\n${LISTED}services:\n${LISTED}`],
  [
    "comments and empty lines between members",
    `routes:\n${LISTED.replaceAll("  - ", "\n  # why\n  - ")}\nx: 1 # end\n`,
  ],
  ["a comment behind the last member", "a:\n  - 1\n  - 2\n  - 3\n  # and no more\nb: 1\n"],
  ["a list without indentation", `routes:\n${LISTED.replaceAll(/^ {2}/gmu, "")}x: 1\n`],
  ["anchors and aliases across members", `a:\n  - &one {x: 1}\n${"  - *one\n".repeat(9)}b: *one\n`],
  ["an anchor and a tag of the list", `a: &all !!seq\n${LISTED}b: *all\n`],
  ["JSON in one line", JSON.stringify({ a: [1, 2, 3, 4, 5, { b: [6, 7] }, "8"], c: {} })],
  ["JSON in many lines", JSON.stringify({ a: [1, 2, 3, 4, 5, { b: [6, 7] }, "8"], c: {} }, null, 2)],
  ["a list in brackets with comments", "a: [1, # one\n  2,\n  # three\n  3, 4 # four\n  , 5, 6]\n"],
  ["pairs, explicit keys and empty items in brackets", "a: [1, x: 2, ? y : 3, 4, , 5, 6, 7,]\n"],
  ["a bracket that is not closed", '{"a": [1, 2, 3, 4, 5, 6, 7\n'],
  ["a bracket that opens at the end of the text", '{\n  "a": [\n'],
  ["a comma at the end of the text", '{"a": [1, 2,\n'],
  ["missing commas", '{"a": [1, 2 "3", "4" "5", 6, 7]}'],
  ["members without a dash, and with two", "a:\n  - 1\n  2\n  - - 3\n  - 4\n  -5\n  - 6\n  - 7\n"],
  ["a member that is indented wrongly", `a:\n${LISTED.replace("  - name: r4", "   - name: r4")}b: 1\n`],
  ["empty members", `a:\n${"  -\n".repeat(7)}b: 1\n`],
  ["texts over several lines", `a:\n${"  - |\n    x\n\n    y\n  - >-\n    z\n".repeat(4)}b: "c"\n`],
  ["a directive", `%TAG !e! tag:example.org,2000:\n---\na:\n${"  - !e!x 1\n".repeat(7)}`],
  ["unknown tags", `a:\n${"  - !mine 1\n".repeat(7)}`],
  ["two documents", `a:\n${LISTED}---\nb:\n${LISTED}`],
  ["a key that is there twice", `a:\n${LISTED}a:\n${LISTED}`],
  ["a long text behind a list", `a:\n${LISTED}b: ${"x".repeat(2000)}\nc: 1\n`],
  ["a list at the root", LISTED.replaceAll(/^ {2}/gmu, "")],
  ["a text at the root", "nothing\n"],
  ["nothing", ""],
];
for (const [what, text] of TEXTS) {
  test(`composed in steps as in one: ${what}`, () => {
    for (const membersOfAStep of [1, 2, 3, 100]) assertSame(text, membersOfAStep);
  });
}

test("composed in steps as in one: whatever is written, as YAML or JSON, and cut anywhere", () => {
  const value = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 3 },
      fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)),
      fc.array(tie("tree"), { maxLength: 6 }),
      fc.dictionary(fc.string({ maxLength: 5 }), tie("tree"), { maxKeys: 4 }),
    ),
  })).tree;
  const document = fc.dictionary(fc.constantFrom("routes", "services", "x"), fc.array(value, { maxLength: 12 }));
  const written = fc
    .tuple(document, fc.constantFrom(0, 2), fc.boolean())
    .map(([tree, indent, isJson]) => (isJson ? JSON.stringify(tree, null, indent) : stringify(tree)));
  const isCut = fc.option(fc.nat(400));
  fc.assert(
    fc.property(written, fc.integer({ min: 1, max: 5 }), isCut, (text, membersOfAStep, at) => {
      assertSame(text.slice(0, at ?? text.length), membersOfAStep);
    }),
    { numRuns: 500 },
  );
});

test("a list that is ten times as long takes ten times as many steps", () => {
  const listed = (count: number): string =>
    `routes:\n${Array.from({ length: count }, (_, at) => member(at)).join("")}x: 1\n`;
  assert.equal(assertSame(listed(100), 10), 10);
  assert.equal(assertSame(listed(1000), 10), 100);
});
