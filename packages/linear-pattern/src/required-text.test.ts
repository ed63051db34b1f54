import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { checkPattern, compilePattern } from "./pattern.ts";

test("the required text is the longest one that is sure", () => {
  const cases: readonly (readonly [source: string, flags: string, expected: string])[] = [
    ["abc", "", "abc"],
    ["ABC", "", "abc"],
    ["aBc", "i", "abc"],
    ["[aA]bc", "", "abc"],
    ["[ab]cde", "", "cde"],
    ["", "", ""],
    [".*", "", ""],
    ["a|b", "", ""],
    ["(?:abc|abc)d", "", "abcd"],
    ["(abc)?de", "", "de"],
    ["(abc)+de", "", "abcde"],
    ["(?:ab){3}", "", "ababab"],
    ["(?:ab){2,}c", "", "ababc"],
    ["^https://api\\.example\\.com/v\\d+/users/", "", "https://api.example.com/v"],
    ["^a.*longest-part.*b$", "", "longest-part"],
    ["x\\by", "", "xy"],
    ["É", "i", ""],
    ["éa", "", "éa"],
    ["(?:a(?:b(?:c)?)?)?", "", ""],
  ];
  for (const [source, flags, expected] of cases) {
    assert.equal(compilePattern(source, flags).requiredText, expected, `/${source}/${flags}`);
  }
});

test("counts do not make the required text long", () => {
  assert.ok(compilePattern("(?:(?:abc){40}){4}").requiredText.length <= 200);
  assert.equal(compilePattern("a{1000}").requiredText, "a".repeat(200));
});

const atom = fc.constantFrom("a", "B", "\\.", "[ab]", "[aA]", ".", "^", "$", "\\b", "é", "/");
const pattern: fc.Arbitrary<string> = fc.letrec<{ node: string }>((tie) => ({
  node: fc.oneof(
    { depthSize: "small" },
    atom,
    fc.tuple(tie("node"), tie("node")).map(([left, right]) => left + right),
    fc.tuple(tie("node"), tie("node")).map(([left, right]) => `(?:${left}|${right})`),
    fc
      .tuple(tie("node"), fc.constantFrom("*", "+", "?", "{2}", "{2,}", "{1,2}"))
      .map(([inside, count]) => `(?:${inside})${count}`),
  ),
})).node;

test("every match contains the required text", () => {
  fc.assert(
    fc.property(
      pattern,
      fc.constantFrom("", "i", "m", "s", "is"),
      fc.array(fc.constantFrom("a", "A", "b", "B", ".", "é", "É", "/", "\n", "aB."), { maxLength: 12 }),
      (source, flags, pieces) => {
        fc.pre(checkPattern(source, flags).ok);
        const text = pieces.join("");
        const compiled = compilePattern(source, flags);
        if (!compiled.test(text)) return;
        const lower = text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
        assert.ok(lower.includes(compiled.requiredText), `${compiled.requiredText} in ${lower}`);
      },
    ),
    { numRuns: 3000 },
  );
});
