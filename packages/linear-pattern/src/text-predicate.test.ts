import assert from "node:assert/strict";
import { test } from "node:test";
import { compileTextPredicate } from "./text-predicate.ts";

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
