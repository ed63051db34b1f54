import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Condition } from "@headworks/capture-contract";
import { conditions, subjects } from "../test/random-conditions.ts";
import { compileCondition, compileConditionSet, messageSubject, type CompiledCondition } from "./index.ts";

const itself = (condition: CompiledCondition): CompiledCondition => condition;

test("candidates include every matching rule, in the order of the rules", () => {
  fc.assert(
    fc.property(
      fc.array(conditions, { maxLength: 12 }),
      fc.array(subjects, { minLength: 1, maxLength: 4 }),
      (list, many) => {
        const compiled = list.map((condition) => compileCondition(condition));
        const set = compileConditionSet(compiled, itself);
        assert.equal(set.size, compiled.length);
        for (const subject of many) {
          const candidates = set.candidates(subject);
          assert.deepEqual(
            candidates,
            compiled.filter((condition) => candidates.includes(condition)),
          );
          for (const condition of compiled) {
            if (condition.decide(subject) !== false) assert.ok(candidates.includes(condition));
          }
        }
      },
    ),
    { numRuns: 600 },
  );
});

const get = (url: string, method = "GET"): ReturnType<typeof messageSubject> =>
  messageSubject({ method, url }, null, "request");

function candidateIndexes(list: readonly Condition[], url: string, method?: string): number[] {
  const rules = list.map((condition, index) => ({ index, compiled: compileCondition(condition) }));
  return compileConditionSet(rules, ({ compiled }) => compiled)
    .candidates(get(url, method))
    .map(({ index }) => index);
}

test("rules about other URLs are not candidates", () => {
  const list: Condition[] = Array.from({ length: 1000 }, (_, number) => ({
    type: "and",
    conditions: [
      { type: "host", pattern: `^api${number}\\.example\\.test$` },
      { type: "path_pattern", pattern: "/v1/*" },
    ],
  }));
  assert.deepEqual(candidateIndexes(list, "https://other.test/v1/users"), []);
  assert.deepEqual(candidateIndexes(list, "https://API417.example.test/v1/users"), [417]);
});

test("methods exclude rules, alone and with a URL", () => {
  const list: Condition[] = [
    { type: "method", method: "post" },
    {
      type: "and",
      conditions: [
        { type: "url_pattern", pattern: "/users/" },
        { type: "method", method: "PUT" },
      ],
    },
    {
      type: "or",
      conditions: [
        { type: "method", method: "GET" },
        { type: "method", method: "PUT" },
      ],
    },
    { type: "not", condition: { type: "method", method: "PUT" } },
    {
      type: "and",
      conditions: [
        { type: "method", method: "GET" },
        { type: "method", method: "PUT" },
      ],
    },
  ];
  assert.deepEqual(candidateIndexes(list, "http://a.test/users/1", "PUT"), [1, 2, 3]);
  assert.deepEqual(candidateIndexes(list, "http://a.test/users/1", "POST"), [0, 3]);
});

test("header fields exclude rules by name and by value, per side", () => {
  const list: Condition[] = [
    { type: "header", name: "X-Tenant", value: "t1" },
    { type: "header", name: "x-tenant", value: "t2" },
    { type: "header_pattern", name: "X-TENANT", pattern: "^z" },
    { type: "header", name: "x-other" },
    { type: "header", name: "x-tenant", value: "t1", side: "response" },
    {
      type: "or",
      conditions: [
        { type: "header", name: "x-none" },
        { type: "header", name: "x-tenant", value: "t1" },
      ],
    },
    {
      type: "and",
      conditions: [
        { type: "content_type", pattern: "json" },
        { type: "method", method: "GET" },
      ],
    },
    { type: "not", condition: { type: "header", name: "x-tenant" } },
  ];
  const rules = list.map((condition, index) => ({ index, compiled: compileCondition(condition) }));
  const set = compileConditionSet(rules, ({ compiled }) => compiled);
  const request = { method: "GET", url: "http://a.test/", headers: { "X-tenant": "t1" } };
  const indexes = (phase: "request" | "response", response: object): number[] =>
    set.candidates(messageSubject(request, { status_code: 200, ...response }, phase)).map(({ index }) => index);
  assert.deepEqual(indexes("request", {}), [0, 5, 7]);
  assert.deepEqual(indexes("response", { headers: { "x-TENANT": "t1", "content-type": "a/JSON" } }), [0, 4, 5, 6, 7]);
  assert.deepEqual(indexes("response", {}), [7]);
});

test("texts that may be percent-encoded are found in either form", () => {
  const list: Condition[] = [
    { type: "path_segment", index: 0, value: "users" },
    { type: "query_param", name: "search" },
    { type: "path_pattern", pattern: "/users" },
  ];
  assert.deepEqual(candidateIndexes(list, "http://a.test/users?search=1"), [0, 1, 2]);
  assert.deepEqual(candidateIndexes(list, "http://a.test/%75sers?s%65arch=1"), [0, 1]);
  assert.deepEqual(candidateIndexes(list, "http://a.test/"), []);
});

test("rules that cannot match in a phase are not candidates there", () => {
  const rules = [compileCondition({ type: "status_code", range: "5xx" }), compileCondition({ type: "all" })];
  const set = compileConditionSet(rules, itself);
  const request = { method: "GET", url: "http://a.test/" };
  assert.equal(set.candidates(messageSubject(request, null, "request")).length, 1);
  assert.equal(set.candidates(messageSubject(request, { status_code: 200 }, "response")).length, 2);
  assert.equal(compileConditionSet([], itself).candidates(get("http://a.test/")).length, 0);
});
