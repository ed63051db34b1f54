import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compileTextPattern, readPattern, type PatternMode } from "./text-pattern.ts";

const whole: PatternMode = { caseless: false, wildcard: "whole" };
const part: PatternMode = { caseless: false, wildcard: "part" };
const url: PatternMode = { caseless: false, wildcard: "url" };

function kindOf(pattern: string): string {
  const reading = readPattern(pattern, whole);
  return "kind" in reading ? reading.kind : `refused at ${reading.start}: ${reading.message}`;
}

test("texts that look like wildcards are wildcards, everything else is a regular expression if valid", () => {
  const cases: readonly (readonly [pattern: string, kind: string])[] = [
    ["/api/users", "regex"],
    ["api.example.com", "regex"],
    ["https?://a/", "regex"],
    ["/search?q=1", "regex"],
    [".*", "regex"],
    ["/api/.*", "regex"],
    ["^/api/*$", "regex"],
    ["/(v1|v2)/x*", "regex"],
    ["\\*", "regex"],
    ["a+", "regex"],
    ["*", "wildcard"],
    ["**", "wildcard"],
    ["*/api/users/*", "wildcard"],
    ["/api/*", "wildcard"],
    ["/api/*/users", "wildcard"],
    ["/api/**", "wildcard"],
    ["*.example.com", "wildcard"],
    ["https://*.example.com/*", "wildcard"],
    ["?x", "wildcard"],
    ["*/a(b)/*", "wildcard"],
    ["*/search?q=[1]", "wildcard"],
    ["(", "refused at 0: the group is not closed: `)` is missing"],
    ["(a*", "refused at 0: the group is not closed: `)` is missing"],
    ["+a", "refused at 0: nothing stands before `+` to be repeated"],
    ["a(?=b)", "refused at 1: look-ahead is not supported: it cannot run in linear time"],
  ];
  for (const [pattern, kind] of cases) assert.equal(kindOf(pattern), kind, pattern);
});

test("a wildcard matches the whole text, any part of it, or a URL from its scheme, host or path", () => {
  const cases: readonly (readonly [pattern: string, mode: PatternMode, text: string, expected: boolean])[] = [
    ["/api/*", whole, "/api/x/y", true],
    ["/api/*", whole, "/api/", true],
    ["/api/*", whole, "/v/api/x", false],
    ["*b?d*", whole, "abcde", true],
    ["*b?d", whole, "abcde", false],
    ["*.json", whole, "a.json", true],
    ["*.json", whole, "ajson", false],
    ["*\n*", whole, "a\nb", true],
    ["*", whole, "", true],
    ["b*d", part, "abcde", true],
    ["*x*", part, "abcde", false],
    ["*c*", part, "abcde", true],
    ["https://a.test/*", url, "https://a.test/x?y=1", true],
    ["https://a.test/*", url, "http://a.test/x", false],
    ["a.test/*", url, "https://a.test/x", true],
    ["a.test/*", url, "https://b.test/a.test/x", false],
    ["a.test/*", url, "https://aXtest/x", false],
    ["/x*", url, "https://a.test/x?y=1", true],
    ["/x*", url, "https://a.test:8443/x", true],
    ["/x*", url, "https://a.test/y/x", false],
    ["*/x/*", url, "https://a.test/y/x/z", true],
    ["http*://a.test/*", url, "https://a.test/", true],
    ["*.js", url, "https://a.test/b.js", true],
    ["*.js", url, "https://a.test/b.js?v=1", false],
  ];
  for (const [pattern, mode, text, expected] of cases) {
    assert.equal(compileTextPattern(pattern, mode).test(text), expected, `${pattern} in ${text}`);
  }
});

test("leading flags of a regular expression and caseless comparison apply", () => {
  assert.ok(compileTextPattern("(?i)ABC", whole).test("xabcx"));
  assert.ok(compileTextPattern("(?is)a.B", whole).test("A\nb"));
  assert.ok(!compileTextPattern("ABC", whole).test("abc"));
  assert.ok(compileTextPattern("ABC", { ...whole, caseless: true }).test("abc"));
  assert.ok(compileTextPattern("(?i)ABC", { ...whole, caseless: true }).test("abc"));
  assert.ok(compileTextPattern("*.TEST", { ...whole, caseless: true }).test("a.test"));
});

test("a wildcard equals the textbook matcher on any text", () => {
  const piece = fc.constantFrom("a", "b", ".", "/", "*", "?", "é", "\n", "(", "[", "-");
  const text = fc.array(piece, { maxLength: 8 }).map((list) => list.join(""));
  fc.assert(
    fc.property(text, text, (pattern, candidate) => {
      // A leading star always makes a wildcard.
      const wildcard = `*${pattern}`;
      assert.equal(compileTextPattern(wildcard, whole).test(candidate), covers(wildcard, candidate), wildcard);
    }),
    { numRuns: 2000 },
  );
});

/** The textbook recursion, memoized. */
function covers(pattern: string, text: string): boolean {
  let ends = new Set([0]);
  for (const char of pattern) {
    const next = new Set<number>();
    for (const at of ends) {
      if (char === "*") for (let end = at; end <= text.length; end += 1) next.add(end);
      else if (at < text.length && (char === "?" || text.charAt(at) === char)) next.add(at + 1);
    }
    ends = next;
  }
  return ends.has(text.length);
}

test("texts are matched up to one MiB", () => {
  const pattern = compileTextPattern("needle", part);
  assert.ok(pattern.test(`${"x".repeat(1_048_570)}needle`));
  assert.ok(!pattern.test(`${"x".repeat(1_048_576)}needle`));
});
