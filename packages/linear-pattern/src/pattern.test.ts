import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { processorMs } from "@headworks/testkit";
import { checkPattern, compilePattern } from "./pattern.ts";

const CATASTROPHIC: readonly (readonly [string, string, string])[] = [
  ["(a+)+$", "a", "!"],
  ["([a-zA-Z]+)*$", "a", "!"],
  ["(a|aa)+$", "a", "!"],
  ["(a|a?)+$", "a", "!"],
  ["(.*a){20}$", "a", "!"],
  ["^(([a-z])+.)+[A-Z]([a-z])+$", "a", "!"],
  ["(x+x+)+y", "x", ""],
  ["\\s+$", " ", "x"],
  ["^(\\d+)*\\.$", "1", "x"],
  ["(?:[^<]|<[^/])*</b>", "<", "x"],
  [".*.*.*=.*", "a", ""],
  ["^([\\w.-]+)+@([\\w-]+\\.)+[a-z]{2,}$", "a.", "@"],
  ["(\\w|_|[a-z])*!", "_", ""],
];

for (const [source, unit, tail] of CATASTROPHIC) {
  test(`/${source}/ takes time in proportion to the text`, () => {
    const pattern = compilePattern(source);
    const text = unit.repeat(Math.floor(1_000_000 / unit.length)) + tail;
    const tookMs = processorMs(() => void pattern.test(text));
    // A backtracking engine needs minutes to ages for these; one pass takes a few milliseconds.
    assert.ok(tookMs < 2000, `${tookMs} ms`);
  });
}

test("a pattern with very many states stays within its work budget", () => {
  const pattern = compilePattern("[ab]*a[ab]{300}c");
  let seed = 1;
  const text = Array.from({ length: 300_000 }, () =>
    (seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648) & 65_536 ? "a" : "b",
  ).join("");
  const tookMs = processorMs(() => assert.equal(pattern.test(text), false));
  assert.ok(tookMs < 2000, `${tookMs} ms`);
  assert.equal(pattern.test(`${"a".repeat(301)}c`), true);
});

const REFUSED: readonly (readonly [string, string, RegExp, number, number])[] = [
  ["(a)\\1", "", /backreferences/, 3, 5],
  ["(?<n>a)\\k<n>", "", /backreferences/, 7, 9],
  ["x(?=a)", "", /look-ahead/, 1, 4],
  ["x(?!a)", "", /look-ahead/, 1, 4],
  ["(?<=a)x", "", /look-behind/, 0, 4],
  ["(?<!a)x", "", /look-behind/, 0, 4],
  ["(a", "", /not closed/, 0, 2],
  ["a)", "", /no `\(`/, 1, 2],
  ["[a", "", /not closed/, 0, 2],
  ["[b-a]", "", /out of order/, 1, 4],
  ["*a", "", /nothing stands before/, 0, 1],
  ["a**", "", /follows a quantifier/, 2, 3],
  ["a{3,2}", "", /out of order/, 1, 6],
  ["a{1001}", "", /at most 1000/, 1, 7],
  ["^*", "", /assertion cannot be repeated/, 0, 2],
  ["a\\", "", /ends with a backslash/, 1, 2],
  ["\\q", "", /unknown escape/, 0, 2],
  ["\\xzz", "", /hexadecimal/, 0, 2],
  ["((a{900}){900})", "", /unfolds/, 0, 15],
  ["(((((){1000}){1000}){1000}){1000}){1000}", "", /unfolds/, 0, 40],
  ["a", "g", /flags/, 1, 3],
  ["a", "ii", /flags/, 1, 4],
  ["a".repeat(1001), "", /at most 1000 characters/, 1000, 1001],
];

for (const [source, flags, message, start, end] of REFUSED) {
  test(`/${source.slice(0, 40)}/${flags} is refused with its place`, () => {
    const checked = checkPattern(source, flags);
    assert.ok(!checked.ok);
    assert.match(checked.error.message, message);
    assert.deepEqual([checked.error.start, checked.error.end], [start, end]);
    assert.throws(() => compilePattern(source, flags), RangeError);
  });
}

test("patterns nested a hundred thousand deep are refused without a stack overflow", () => {
  assert.ok(!checkPattern("(".repeat(900)).ok);
  assert.ok(!checkPattern(`${"(".repeat(400)}a${")".repeat(400)}`).ok);
});

const units = ["a", "b", "A", "_", "1", " ", "\n", "-", "é", "É", "ſ", "K", "k", "s", "\u2028", "İ", "ß", "😀"];
const texts = fc.string({ unit: fc.constantFrom(...units), maxLength: 8 });
const atoms = fc.constantFrom(
  "a",
  "b",
  "A",
  "k",
  "s",
  "é",
  ".",
  "\\w",
  "\\W",
  "\\d",
  "\\s",
  "\\S",
  "[a-k]",
  "[^a]",
  "[^a-z_]",
  "[\\w-]",
  "[^\\W]",
  "\\b",
  "\\B",
  "^",
  "$",
  "\\x41",
  "\\u00e9",
  "-",
  "[]",
  "[^]",
  "{",
  "a{",
  "]",
  "[\\b-]",
  "\\n",
  "\\-",
  "[-a]",
  "ß",
  "[a-\\u212a]",
);
const patterns = fc.letrec<{ pattern: string }>((tie) => ({
  pattern: fc.oneof(
    { maxDepth: 4, depthIdentifier: "pattern" },
    atoms,
    fc.tuple(tie("pattern"), tie("pattern")).map(([left, right]) => left + right),
    fc.tuple(tie("pattern"), tie("pattern")).map(([left, right]) => `${left}|${right}`),
    fc
      .tuple(tie("pattern"), fc.constantFrom("*", "+", "?", "*?", "{2}", "{0,2}", "{1,}", "{0}"))
      .map(([item, count]) => `(?:${item})${count}`),
    tie("pattern").map((item) => `(${item})`),
  ),
})).pattern;

test("a pattern matches exactly when ECMAScript says so", () => {
  fc.assert(
    fc.property(
      patterns,
      fc.subarray(["i", "m", "s"]),
      fc.array(texts, { minLength: 1, maxLength: 5 }),
      (source, flagList, samples) => {
        const flags = flagList.join("");
        fc.pre(checkPattern(source, flags).ok);
        const ours = compilePattern(source, flags);
        const native = new RegExp(source, flags);
        for (const sample of samples) {
          assert.equal(ours.test(sample), native.test(sample), `/${source}/${flags} on ${JSON.stringify(sample)}`);
        }
      },
    ),
    { numRuns: 5000 },
  );
});

test("accepted patterns are valid ECMAScript", () => {
  const piece = fc.constantFrom(
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "1",
    ",",
    "*",
    "+",
    "?",
    "\\",
    "^",
    "$",
    "|",
    "-",
    "a",
    "(?:",
    "(?<n>",
    "\\u",
    "\\x",
    "\\c",
    "\\0",
    ".",
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 10 }).map((pieces) => pieces.join("")),
      (source) => {
        const checked = checkPattern(source);
        if (checked.ok) new RegExp(source);
        else assert.ok(checked.error.start <= checked.error.end && checked.error.end <= source.length + 1);
      },
    ),
    { numRuns: 5000 },
  );
});
