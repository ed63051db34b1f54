import assert from "node:assert/strict";
import { test } from "node:test";
import { deniedWords, findWordProblems, partsOf } from "./check-words.ts";
import { fixtureTree } from "./fixture-tree.ts";

const GLOSSARY = `
| Word     | Meaning          | Not                          |
| -------- | ---------------- | ---------------------------- |
| response | the second one   | \`answer\`, reply            |
| max      | a limit          | \`most\`, \`least\` as a prefix of constants |
`;

function problemsWith(files: Readonly<Record<string, string>>): string[] {
  using tree = fixtureTree({ "GLOSSARY.md": GLOSSARY, ...files });
  return findWordProblems(tree.root).map(({ where, message }) => `${where}: ${message}`);
}

test("words in backticks in the last column are denied, others are advice", () => {
  assert.deepEqual(
    deniedWords(GLOSSARY).map(({ text, instead, isPrefix }) => [text, instead, isPrefix]),
    [
      ["answer", "response", false],
      ["most", "max", true],
      ["least", "max", true],
    ],
  );
});

test("a name is split into words in any case style", () => {
  for (const name of ["readHTTPAnswer", "read_http_answer", "READ_HTTP_ANSWER", "read-http-answer"]) {
    assert.deepEqual(partsOf(name), ["read", "http", "answer"], name);
  }
});

test("identifiers and file names with a denied word are reported once, with the replacement", () => {
  const file = "packages/http1/src/a.ts";
  const found: readonly [source: string, name: string][] = [
    ["const answer = 1; f(answer);", "answer"],
    ["class A { #lateAnswers = 1; }", "#lateAnswers"],
    ["const MOST_BYTES = 1;", "MOST_BYTES"],
    ["export interface AnswerHead {}", "AnswerHead"],
  ];
  for (const [source, name] of found) {
    const [problem = "", ...rest] = problemsWith({ [file]: source });
    assert.match(problem, /the glossary says (?:response|max)$/u, source);
    assert.ok(problem.includes(name.replace("#", "")), problem);
    assert.deepEqual(rest, []);
  }
  assert.match(problemsWith({ "packages/http1/src/answer-head.ts": "" }).join(), /answer-head: .* response/u);
});

test("texts, comments, other words, and words after a prefix are allowed", () => {
  const source = `// answer\nconst text = "answer"; const answered = \`answer\`; const atMost = almost; let mostBytes = atLeast;`;
  assert.deepEqual(problemsWith({ "packages/http1/src/a.ts": source }), []);
});
