import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition } from "@headworks/capture-contract";
import { WrittenNumber } from "@headworks/json";
import fc from "fast-check";
import {
  asLiteral,
  conditionOf,
  conditionSentence,
  draftOfCondition,
  literalPattern,
  newGroup,
  newTest,
  replaceDraft,
  type Subject,
  SUBJECTS,
  withSubject,
} from "./condition-draft.ts";

const CONDITIONS: readonly Condition[] = [
  { type: "all" },
  { type: "url_pattern", pattern: "https://.*" },
  { type: "url_pattern", pattern: "^https://a\\.example/$" },
  { type: "path_pattern", pattern: "^/orders" },
  { type: "host", pattern: "*.example.com" },
  { type: "method", method: "PATCH" },
  { type: "scheme", scheme: "https" },
  { type: "port", port: 8443 },
  { type: "path_segment", index: 0, value: "" },
  { type: "query_param", name: "q" },
  { type: "query_param", name: "q", value: "" },
  { type: "query_param_pattern", name: "q", pattern: "a|b" },
  { type: "header", name: "x-a", side: "response" },
  { type: "header", name: "x-a", value: "1" },
  { type: "header_pattern", name: "x-a", pattern: "^plain$" },
  { type: "content_type", pattern: "json", side: "request" },
  { type: "body_pattern", pattern: "a.c" },
  { type: "json_path", path: "$.a" },
  { type: "json_path", path: "$.a", value: "42" },
  { type: "json_path", path: "$.a", value: 42 },
  { type: "json_path", path: "$.a", value: new WrittenNumber("17478252242305210114") },
  { type: "json_path", path: "$.a", value: null },
  { type: "json_path", path: "$.a", value: { b: [1, "x"] } },
  { type: "json_path_pattern", path: "$.a", pattern: "^x$", side: "response" },
  { type: "graphql_operation", operation_name: "GetOrders" },
  { type: "graphql_type", operation_type: "mutation" },
  { type: "graphql_variable", name: "id", value: [1] },
  { type: "status_code", range: "400-499" },
];

test("every kind of condition converted to a draft and back is unchanged, also negated and grouped", () => {
  for (const condition of CONDITIONS) {
    const grouped: Condition = { type: "or", conditions: [condition, { type: "not", condition }] };
    for (const each of [condition, { type: "not", condition } as const, grouped]) {
      assert.deepEqual(conditionOf(draftOfCondition(each)), { ok: true, condition: each });
    }
  }
});

test("the alternative names of GraphQL conditions are accepted", () => {
  const built = conditionOf(draftOfCondition({ type: "graph_q_l_operation", operation_name: "A" }));
  assert.deepEqual(built, { ok: true, condition: { type: "graphql_operation", operation_name: "A" } });
});

test("incomplete lines are reported by key", () => {
  const port = { ...newTest("port"), value: "70000" };
  const header = newTest("header");
  const host = newTest("host");
  const built = conditionOf(newGroup([port, newGroup([header]), host]));
  assert.ok(!built.ok);
  assert.deepEqual([...built.problems.keys()], [port.key, header.key, host.key]);
});

test("a line keeps its value when its subject changes", () => {
  const line = { ...newTest("host"), value: "api.example.com" };
  assert.equal(withSubject(line, "url").value, "api.example.com");
  assert.equal(withSubject(line, "graphql_type").value, "query");
  for (const subject of Object.keys(SUBJECTS) as Subject[]) {
    const next = withSubject(line, subject);
    assert.ok(SUBJECTS[subject].comparisons.includes(next.comparison), subject);
  }
});

test("lines inside groups are replaced and removed", () => {
  const inner = newTest("host");
  const outer = newGroup([newGroup([inner, newTest("path")])]);
  const changed = replaceDraft(outer, inner.key, { ...inner, value: "x" });
  const [group] = changed.items;
  assert.ok(group?.kind === "group");
  assert.deepEqual(group.items[0], { ...inner, value: "x" });
  const [left] = replaceDraft(outer, inner.key, null).items;
  assert.ok(left?.kind === "group");
  assert.equal(left.items.length, 1);
});

test("conditions are described in sentences", () => {
  const cases: readonly [Condition, string][] = [
    [{ type: "all" }, "Everything"],
    [
      {
        type: "and",
        conditions: [
          { type: "method", method: "get" },
          { type: "host", pattern: "^api\\.example\\.com$" },
          { type: "path_pattern", pattern: "^/orders" },
        ],
      },
      "GET, host api.example.com, path begins with /orders",
    ],
    [
      {
        type: "and",
        conditions: [
          { type: "not", condition: { type: "port", port: 80 } },
          {
            type: "or",
            conditions: [
              { type: "url_pattern", pattern: "a.*" },
              { type: "json_path", path: "$.a", value: "" },
            ],
          },
        ],
      },
      "not port 80, (URL matches a.* or JSON body $.a = nothing)",
    ],
    [{ type: "header", name: "x-a", side: "response" }, "response header x-a"],
  ];
  for (const [condition, sentence] of cases) assert.equal(conditionSentence(condition), sentence);
});

test("text becomes a pattern that matches it, and is recovered from it", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.constantFrom("is", "begins", "contains"), (text, comparison) => {
      const pattern = literalPattern(comparison, text);
      assert.deepEqual(asLiteral(pattern), { comparison, text });
      assert.ok(new RegExp(pattern, "u").test(text));
    }),
  );
});

test("a pattern with operators is not literal", () => {
  for (const pattern of ["a.*b", "^/v\\d+$", "(a|b)", "*.example.com", "^$", "^", "a$", "[x]", "tail\\"]) {
    assert.equal(asLiteral(pattern), null, pattern);
  }
});

test("an escaped dollar sign at the end is text", () => {
  assert.deepEqual(asLiteral("^price\\$"), { comparison: "begins", text: "price$" });
  assert.deepEqual(asLiteral("^a\\\\$"), { comparison: "is", text: "a\\" });
});
