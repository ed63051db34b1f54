import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { processorMs } from "@headworks/testkit";
import { checkPattern, compilePattern, compileTextPredicate, readReplacement } from "./pattern.ts";

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

const MAX_EXAMINED_LENGTH = 1_048_576;

test("a predicate searches a text like its pattern, up to the limit", () => {
  const { test: holds, search, requiredText } = compileTextPredicate("end[0-9]", "i");
  assert.equal(requiredText, "end");
  for (const [before, expected] of [
    [0, true],
    [MAX_EXAMINED_LENGTH - 4, true],
    [MAX_EXAMINED_LENGTH - 3, false],
    [MAX_EXAMINED_LENGTH, false],
  ] as const) {
    const text = `${"x".repeat(before)}END1`;
    assert.deepEqual([holds(text), search(text)], [expected, expected], `${before} characters before it`);
  }
});

test("a text beyond the work budget counts as no match", () => {
  const { test: holds, search } = compileTextPredicate("(a|aa|aaa){1,200}b", "", 10_000);
  const text = "a".repeat(20_000);
  assert.deepEqual([holds(text), search(text)], [false, "gave-up"]);
});
