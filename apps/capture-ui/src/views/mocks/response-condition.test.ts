import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition, MockRequestCondition } from "@headworks/capture-contract";
import { conditionOfResponse } from "@headworks/match-condition";
import { conditionOf, draftOfCondition, newTest, withSubject, newGroup } from "../../rules/condition-draft.ts";
import { RESPONSE_VOCABULARY, toResponseCondition } from "./response-condition.ts";

const CONDITIONS: readonly MockRequestCondition[] = [
  { type: "header_equals", name: "x-a", value: "" },
  { type: "header_matches", name: "x-a", pattern: "^plain$" },
  { type: "query_param_equals", name: "q", value: "42" },
  { type: "json_path_equals", path: "$.a", value: 42 },
  { type: "json_path_equals", path: "$.a", value: "42" },
  { type: "json_path_equals", path: "$.a", value: null },
  { type: "json_path_equals", path: "$.a", value: { b: [1] } },
  { type: "json_path_matches", path: "$.a", pattern: "^x" },
  { type: "body_matches", pattern: "a.c" },
  { type: "body_matches", pattern: "order_id" },
];

test("every condition of an answer goes through the lines of the builder unchanged, in groups too", () => {
  for (const condition of CONDITIONS) {
    const grouped: MockRequestCondition = {
      type: "or",
      conditions: [condition, { type: "and", conditions: [condition, condition] }],
    };
    for (const each of [condition, grouped]) {
      const built = conditionOf(draftOfCondition(conditionOfResponse(each)));
      assert.ok(built.ok);
      assert.deepEqual(toResponseCondition(built.condition), each);
    }
  }
});

test("what the vocabulary of answers offers can be said of an answer", () => {
  for (const [subject, comparisons] of RESPONSE_VOCABULARY.comparisons) {
    const begun = withSubject({ ...newTest("host"), comparison: "there" }, subject, RESPONSE_VOCABULARY);
    assert.ok(comparisons.includes(begun.comparison), subject);
    for (const comparison of comparisons) {
      const built = conditionOf(newGroup([{ ...begun, comparison, name: "$.a", value: "1" }]));
      assert.ok(built.ok);
      assert.notEqual(toResponseCondition(built.condition), null, `${subject} ${comparison}`);
    }
  }
});

test("what an answer cannot ask is refused, deep inside too", () => {
  const refused: readonly Condition[] = [
    { type: "all" },
    { type: "header", name: "x-a" },
    { type: "json_path", path: "$.a" },
    { type: "not", condition: { type: "body_pattern", pattern: "a" } },
    { type: "host", pattern: "a" },
    { type: "and", conditions: [] },
    { type: "or", conditions: [{ type: "body_pattern", pattern: "a" }, { type: "all" }] },
  ];
  for (const condition of refused) assert.equal(toResponseCondition(condition), null, JSON.stringify(condition));
});
