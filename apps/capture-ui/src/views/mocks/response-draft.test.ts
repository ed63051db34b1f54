import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition, MockRequestCondition, MockResponse, MockResponseConfig } from "@headworks/capture-contract";
import { conditionOfResponse } from "@headworks/match-condition";
import { conditionOf, draftOfCondition, newGroup, newTest, withSubject } from "../../rules/condition-draft.ts";
import {
  configOf,
  draftOfConfig,
  mockFields,
  newResponse,
  RESPONSE_VOCABULARY,
  toResponseCondition,
} from "./response-draft.ts";

const response: MockResponse = {
  status_code: 503,
  headers: { A: "1", "Set-Cookie": ["a", "b"] },
  body: "busy",
  body_base64: null,
  body_file: null,
  delay_ms: 5,
  delay_variance_ms: null,
  template_enabled: true,
};
const bytes: MockResponse = { ...response, body: null, body_base64: "AAE=" };
const file: MockResponse = { ...response, body: null, body_file: "x.json" };

const CONFIGS: readonly MockResponseConfig[] = [
  { type: "single", response },
  { type: "sequence", responses: [response, bytes], cycle: false },
  { type: "probabilistic", responses: [{ weight: 0, response: file }] },
  {
    type: "conditional",
    conditions: [{ condition: { type: "header_equals", name: "a", value: "b" }, response: bytes }],
    default_response: response,
  },
];

/** Without null members: absent and null are equivalent. */
const bare = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, inner: unknown) => (inner === null ? undefined : inner)));

test("every kind of response converted to a draft and back is unchanged", () => {
  for (const config of CONFIGS) {
    const built = configOf(draftOfConfig(config));
    assert.ok(built.ok);
    assert.deepEqual(bare(built.config), bare(config));
  }
});

test("incomplete responses are reported", () => {
  const draft = draftOfConfig({ type: "single", response });
  const broken = [{ status: "99" }, { status: "600" }, { delayMs: "soon" }, { source: "file" as const, file: " " }];
  for (const change of broken) {
    const result = configOf({ ...draft, responses: [{ ...newResponse(), ...change }] });
    assert.ok(!result.ok, JSON.stringify(change));
  }
  assert.ok(!configOf({ ...draft, responses: [] }).ok);
  assert.ok(!configOf({ ...draft, kind: "probabilistic", responses: [{ ...newResponse(), weight: "half" }] }).ok);
  assert.ok(!configOf({ ...draft, kind: "conditional", responses: [newResponse()] }).ok);
  const everything = { condition: { type: "all" as const }, isWhole: true };
  assert.ok(!configOf({ ...draft, kind: "conditional", responses: [{ ...newResponse(), when: everything }] }).ok);
  assert.ok(configOf({ ...draft, kind: "conditional", responses: [] }).ok);
});

test("fields about framing and coding are not repeated", () => {
  assert.deepEqual(
    mockFields([
      ["Content-Length", "5"],
      ["content-encoding", "br"],
      ["ETag", "x"],
    ]),
    [["ETag", "x"]],
  );
});

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

test("every response condition passes through the builder unchanged, also in groups", () => {
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

test("all subjects of the vocabulary can be expressed in a response condition", () => {
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

test("conditions that a response cannot express are rejected, also nested ones", () => {
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
