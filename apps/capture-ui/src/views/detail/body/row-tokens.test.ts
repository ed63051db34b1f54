import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { markTokens, rowTokens } from "./row-tokens.ts";
import type { TokenLanguage } from "./row-tokens.ts";

const tones = (text: string, language: TokenLanguage, inString = false) =>
  rowTokens(text, language, inString).map(({ text: piece, tone }) => `${tone}:${piece}`);

test("JSON keys, strings, numbers and literals have different tones", () => {
  assert.deepEqual(tones('  "a\\"b": ["x", -1.5e3, null]', "json"), [
    "plain:  ",
    'key:"a\\"b"',
    "plain::",
    "plain: [",
    'string:"x"',
    "plain:, ",
    "number:-1.5e3",
    "plain:, ",
    "word:null",
    "plain:]",
  ]);
});

test("a row that begins inside a string continues the string", () => {
  assert.deepEqual(tones('rest of it", 1', "json", true), ['string:rest of it"', "plain:, ", "number:1"]);
});

test("tags, attributes and values of markup have different tones", () => {
  assert.deepEqual(tones('<a href="x">t</a>', "markup"), [
    "key:<a",
    "plain: ",
    "number:href",
    "plain:=",
    'string:"x"',
    "key:>",
    "plain:t",
    "key:</a",
    "key:>",
  ]);
});

test("tokens and marks preserve the text in every language", () => {
  const language = fc.constantFrom(
    "json" as const,
    "markup" as const,
    "script" as const,
    "style" as const,
    "plain" as const,
  );
  const text = fc.oneof(
    fc.string(),
    fc.array(fc.constantFrom('"', "\\", "<", ">", "a", ":", "1", "/*", "*/", "'", " ")).map((parts) => parts.join("")),
  );
  fc.assert(
    fc.property(
      text,
      language,
      fc.boolean(),
      fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 6 }),
      (row, kind, inString, edges) => {
        const tokens = rowTokens(row, kind, inString);
        assert.equal(tokens.map((token) => token.text).join(""), row);
        const sorted = [...new Set(edges)].toSorted((a, b) => a - b);
        const marks = sorted.flatMap((start, index) =>
          index % 2 === 0 && sorted[index + 1] !== undefined
            ? [{ start, end: sorted[index + 1] ?? start, current: false }]
            : [],
        );
        const marked = markTokens(tokens, marks);
        assert.equal(marked.map((token) => token.text).join(""), row);
        const inMarks = marks.map(({ start, end }) => row.slice(start, end)).join("");
        assert.equal(
          marked
            .filter((token) => token.mark)
            .map((token) => token.text)
            .join(""),
          inMarks,
        );
      },
    ),
  );
});

test("a row of thousands of quotes is tokenized quickly", () => {
  const started = performance.now();
  for (const language of ["json", "markup", "script", "style"] as const) {
    rowTokens(`${'"\\'.repeat(5000)}<<<<`, language);
  }
  assert.ok(performance.now() - started < 1000);
});
