import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { processorMs } from "@headworks/testkit";
import { checkPattern, compilePattern } from "./pattern.ts";

/** Pattern, text, and captures by ECMAScript's rules. */
const CASES: readonly (readonly [string, string, readonly (string | undefined)[]])[] = [
  ["a", "xay", ["a"]],
  ["^/v(\\d+)/(.*)$", "/v12/users/7", ["/v12/users/7", "12", "users/7"]],
  ["(a|ab)(c|bcd)(d*)", "abcd", ["abcd", "a", "bcd", ""]],
  ["(a+?)(a*)", "aaa", ["aaa", "a", "aa"]],
  ["(a)|(b)", "b", ["b", undefined, "b"]],
  ["(z)((a+)?(b+)?(c))*", "zaacbbbcac", ["zaacbbbcac", "z", "ac", "a", undefined, "c"]],
  ["(a*)*", "b", ["", undefined]],
  ["(?:a*?)*?b", "ab", ["ab"]],
  ["(?:(a)|b)*", "ab", ["ab", undefined]],
  ["((a)|(b)){2}", "ab", ["ab", "b", undefined, "b"]],
  ["(?:|(a)){0,3}", "aa", ["aa", "a"]],
  ["(\\b|a)+", "a ", ["a", "a"]],
  ["x*", "aaa", [""]],
];
for (const [source, text, groups] of CASES) {
  test(`/${source}/ captures in ${text} like ECMAScript`, () => {
    assert.deepEqual([...(new RegExp(source).exec(text) ?? [])], groups, "the expectation itself");
    const match = compilePattern(source).match(text);
    assert.ok(match !== undefined && match !== "gave-up");
    assert.deepEqual(match.groups, groups);
    assert.equal(text.slice(match.start, match.end), groups[0]);
  });
}

test("groups are found by name, even names that objects inherit", () => {
  const pattern = compilePattern("(?<version>v\\d)/(?<__proto__>.)(?<toString>x)?");
  assert.deepEqual(pattern.groupNames, ["version", "__proto__", "toString"]);
  assert.equal(pattern.groupCount, 3);
  assert.equal(compilePattern("(a)(?:b)(?<n>c)").groupCount, 2);
  const match = pattern.match("/v2/y");
  assert.ok(match !== undefined && match !== "gave-up");
  assert.equal(match.named["version"], "v2");
  assert.equal(match.named["__proto__"], "y");
  assert.equal(match.named["toString"], undefined);
  assert.equal(match.named["valueOf"], undefined);
});

test("a text without a match gives undefined, and does not affect the next text", () => {
  const pattern = compilePattern("(a)(b)?$");
  assert.equal(pattern.match("ac"), undefined);
  for (const [text, groups] of [
    ["ab", ["ab", "a", "b"]],
    ["xa", ["a", "a", undefined]],
    ["ab", ["ab", "a", "b"]],
  ] as const) {
    const match = pattern.match(text);
    assert.ok(match !== undefined && match !== "gave-up");
    assert.deepEqual(match.groups, groups);
  }
});

for (const source of [
  "(a+)+(b?)$",
  "(a|aa)+(!|$)",
  "((a*)*)*$",
  "(.*)(.*)(.*)=?$",
  "(?:(a)|(a)|(a))*$",
  "(a{0,20}){0,20}$",
]) {
  test(`matching /${source}/ takes time in proportion to the text`, () => {
    const pattern = compilePattern(source);
    const tookMs = processorMs(() => {
      const match = pattern.match("a".repeat(20_000));
      assert.ok(match === "gave-up" || match?.end === 20_000);
    });
    assert.ok(tookMs < 3000, `${tookMs} ms`);
  });
}

test("a text beyond the work budget is given up, never matched wrongly", () => {
  const pattern = compilePattern("([ab]*)a[ab]{300}(c)", "", 100_000);
  let seed = 1;
  const noise = Array.from({ length: 100_000 }, () =>
    (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) & 65_536 ? "a" : "b",
  ).join("");
  const tookMs = processorMs(() => {
    assert.equal(pattern.search(noise), "gave-up");
    assert.equal(pattern.match(`${noise}a${"b".repeat(300)}c`), "gave-up");
    assert.equal(pattern.test(noise), false);
  });
  assert.ok(tookMs < 1500, `${tookMs} ms`);
});

test("patterns with more than 100 groups, or whose groups unfold too far, are refused", () => {
  assert.ok(checkPattern("(a)".repeat(100)).ok);
  const many = checkPattern("(a)".repeat(101));
  assert.ok(!many.ok);
  assert.match(many.error.message, /at most 100 groups/);
  assert.deepEqual([many.error.start, many.error.end], [300, 301]);
  const unfolded = checkPattern("((()){100}){100}");
  assert.ok(!unfolded.ok);
  assert.match(unfolded.error.message, /unfolds/);
});

for (const [source, flags, start] of [
  ["^/v1/users", "", "/v1/users"],
  ["^/v1/(\\d+)", "", "/v1/"],
  ["^/v1s?", "", "/v1"],
  ["^/a|^/b", "", ""],
  ["(^/a)", "", ""],
  ["/a", "", ""],
  ["^/a", "i", "/"],
  ["^/a", "m", ""],
  ["^\\x2fa[b]c$", "", "/abc"],
  ["", "", ""],
] as const) {
  test(`/${source}/${flags} requires the start "${start}"`, () => {
    assert.equal(compilePattern(source, flags).requiredStart, start);
  });
}

test("the text after a literal start decides, for the first text as for later ones", () => {
  for (const [source, yes, no] of [
    ["^/v1/x", ["/v1/x", "/v1/xy"], ["/v1/", "/v1", "", "/v1/y", "x/v1/x"]],
    ["^/v1/$", ["/v1/"], ["/v1/x", "/v1"]],
    ["^/v1\\b", ["/v1", "/v1/"], ["/v10"]],
    ["^ab*", ["a", "abb", "ac"], ["", "b"]],
    ["^a[ab]{30}c", [`a${"ab".repeat(15)}c`], [`a${"ab".repeat(15)}d`, "a"]],
  ] as const) {
    for (const order of [yes, no, yes]) {
      const pattern = compilePattern(source);
      for (const text of [...order, ...no, ...yes]) {
        assert.equal(pattern.test(text), (yes as readonly string[]).includes(text), `/${source}/ on ${text}`);
      }
    }
  }
});

const texts = fc.string({ unit: fc.constantFrom("a", "b", "c", "A", "/", "-", "\n", "é", "😀"), maxLength: 9 });
const atoms = fc.constantFrom(
  "a",
  "b",
  "c",
  ".",
  "\\w",
  "\\W",
  "[^a]",
  "[a-c]",
  "\\b",
  "\\B",
  "^",
  "$",
  "/",
  "é",
  "[^]",
  "[]",
);
const patterns = fc.letrec<{ pattern: string }>((tie) => ({
  pattern: fc.oneof(
    { maxDepth: 5, depthIdentifier: "pattern" },
    atoms,
    fc.tuple(tie("pattern"), tie("pattern")).map(([left, right]) => left + right),
    fc.tuple(tie("pattern"), tie("pattern")).map(([left, right]) => `(?:${left}|${right})`),
    tie("pattern").map((item) => `(?:|${item})`),
    fc
      .tuple(
        tie("pattern"),
        fc.constantFrom("*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{0,2}?", "{1,}", "{2,3}"),
      )
      .map(([item, count]) => `(${item})${count}`),
    tie("pattern").map((item) => `(${item})`),
  ),
})).pattern;

test("a match is the one that ECMAScript finds, group by group", () => {
  fc.assert(
    fc.property(
      patterns,
      fc.subarray(["i", "m", "s"]),
      fc.array(texts, { minLength: 1, maxLength: 6 }),
      (source, flagList, samples) => {
        const flags = flagList.join("");
        fc.pre(checkPattern(source, flags).ok);
        const ours = compilePattern(source, flags);
        const native = new RegExp(source, flags);
        for (const sample of samples) {
          const expected = native.exec(sample);
          const match = ours.match(sample);
          assert.ok(match !== "gave-up");
          const place = `/${source}/${flags} on ${JSON.stringify(sample)}`;
          assert.deepEqual(match?.groups, expected === null ? undefined : [...expected], place);
          assert.equal(match?.start, expected?.index, place);
          if (match !== undefined) assert.ok(sample.startsWith(ours.requiredStart), place);
        }
      },
    ),
    { numRuns: 3000 },
  );
});
