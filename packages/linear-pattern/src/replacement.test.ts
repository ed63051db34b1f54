import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { checkPattern, compilePattern } from "./pattern.ts";
import { readReplacement } from "./replacement.ts";

function replaced(source: string, text: string, replacement: string, flags = ""): string {
  const pattern = compilePattern(source, flags);
  const read = readReplacement(replacement, pattern);
  assert.ok(read.ok, read.ok ? "" : read.error.message);
  const result = pattern.replaceAll(text, read.replacement);
  assert.notEqual(result, "gave-up");
  return (result as { text: string }).text;
}

/** Pattern, text, replacement; ECMAScript gives the expected result. */
const LIKE_ECMASCRIPT: readonly (readonly [string, string, string, string?])[] = [
  ["a", "banana", "o"],
  ["(b)(a)", "baba", "$2$1"],
  ["a", "aaa", "$$1"],
  ["(a)|b", "ab", "[$1]"],
  ["x*", "axb", "-"],
  ["", "ab", "-"],
  ["^a", "aa\naa", "b"],
  ["^a", "aa\naa", "b", "m"],
  ["a$", "aa\naa", "b", "m"],
  ["\\bcat\\b", "cat concat cat,cat", "dog"],
  ["\\Ba", "aaa", "b"],
  ["(?<y>\\d{4})-(?<m>\\d\\d)", "2026-11 and 2027-01", "$<m>/$<y>"],
  ["(a)", "a", "$12"],
  ["(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)(k)(l)", "abcdefghijkl", "$12$1"],
  ["a", "a", "$ $x $"],
  ["A", "aAa", "<$&>", "i"],
  [".", "a\nb", "x", "s"],
];
for (const [source, text, replacement, flags = ""] of LIKE_ECMASCRIPT) {
  test(`/${source}/${flags} by ${JSON.stringify(replacement)} in ${JSON.stringify(text)}`, () => {
    const expected = text.replaceAll(new RegExp(source, `g${flags}`), replacement);
    assert.equal(replaced(source, text, replacement, flags), expected);
  });
}

test("braces and group 0 work too, and surrogate pairs are not split", () => {
  assert.equal(replaced("(?<x>a)(b)", "ab", "${2}0${x}"), "b0a");
  assert.equal(replaced("a+", "baa", "$0$0"), "baaaa");
  assert.equal(replaced("", "a😀", "-"), "-a-😀-");
});

test("a group that the pattern does not have is refused with its position", () => {
  for (const [source, replacement, start, end] of [
    ["a", "x$1", 1, 3],
    ["(a)", "$2", 0, 2],
    ["(a)", "$<no>", 0, 5],
    ["(?<a>a)", "${b}", 0, 4],
    ["(a)", "${2}", 0, 4],
    ["(a)", "$<__proto__>", 0, 12],
  ] as const) {
    const read = readReplacement(replacement, compilePattern(source));
    assert.ok(!read.ok, replacement);
    assert.deepEqual([read.error.start, read.error.end], [start, end]);
  }
});

test("a match from an offset considers the text before it", () => {
  const match = compilePattern("\\bb").match("ab b", 1);
  assert.ok(match !== undefined && match !== "gave-up");
  assert.equal(match.start, 3);
  assert.equal(compilePattern("^b").match("ab", 1), undefined);
});

const pieces = fc.constantFrom("a", "b", "[ab]", ".", "(a|b)", "a?", "b*", "(ab)+", "^", "$", "\\b", "c");

test("replacing does what ECMAScript does, whatever pattern and text", () => {
  fc.assert(
    fc.property(
      fc.array(pieces, { minLength: 1, maxLength: 6 }),
      fc.array(fc.constantFrom("a", "b", "c", " ", "\n", "é"), { maxLength: 30 }),
      fc.constantFrom("", "m", "i", "s"),
      (parts, units, flags) => {
        const source = parts.join("");
        const text = units.join("");
        fc.pre(checkPattern(source, flags).ok);
        assert.equal(replaced(source, text, "<$&>", flags), text.replaceAll(new RegExp(source, `g${flags}`), "<$&>"));
      },
    ),
    { numRuns: 3000 },
  );
});

test("matches that look far ahead again and again are given up, and long texts are not", () => {
  const ahead = compilePattern("a.*b|a", "s");
  assert.equal(
    ahead.replaceAll("a".repeat(20_000), () => "x"),
    "gave-up",
  );
  const plain = compilePattern("needle (\\d+)").replaceAll(`${"hay ".repeat(250_000)}needle 7`, () => "found");
  assert.deepEqual(plain === "gave-up" ? plain : [plain.count, plain.text.slice(-8)], [1, "ay found"]);
  const many = compilePattern("[aeiou]").replaceAll("hello ".repeat(50_000), () => "");
  assert.equal(many === "gave-up" ? many : many.count, 100_000);
});
