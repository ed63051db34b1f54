import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Condition } from "@headworks/capture-contract";
import { conditions, subjects } from "../test/random-conditions.ts";
import {
  compileCondition,
  describeCondition,
  messageSubject,
  NOT_READ,
  type Explanation,
  type MatchSubject,
} from "./index.ts";

const request = {
  method: "POST",
  url: "https://a.test/users/1?page=2",
  headers: { "content-type": "application/json", "x-a": "1" },
  body: '{"a":[1,{"b":2}]}',
};
const subject = messageSubject(request, { status_code: 200, body: "x" }, "response");

test("a failing part states the actual value", () => {
  const cases: readonly (readonly [condition: Condition, text: string])[] = [
    [{ type: "host", pattern: "*.b.test" }, "The host matches `*.b.test`: no, it is `a.test`"],
    [{ type: "path_segment", index: 5, value: "x" }, "Segment 5 of the path is `x`: no, the path is shorter"],
    [{ type: "query_param", name: "page", value: "3" }, "The query parameter `page` is `3`: no, it is `2`"],
    [{ type: "query_param", name: "q" }, "The query parameter `q` exists: no, it does not exist"],
    [
      { type: "header", name: "X-A", value: "2", side: "request" },
      "The header `X-A` of the request is `2`: no, it is `1`",
    ],
    [{ type: "header", name: "X-A" }, "The header `X-A` exists: no, it does not exist"],
    [
      { type: "json_path", path: "$.a[*]", value: 3, side: "request" },
      "The JSON value `$.a[*]` of the request is `3`: no, it is `1`, `{…}`",
    ],
    [{ type: "json_path", path: "$.a" }, "The JSON value `$.a` exists: no, the body is not JSON"],
    [{ type: "status_code", range: "5xx" }, "The status is 5xx: no, it is 200"],
    [
      { type: "graphql_type", operation_type: "query" },
      "The GraphQL operation is a query: no, the request has other values",
    ],
  ];
  for (const [condition, text] of cases) {
    assert.deepEqual(compileCondition(condition).explain(subject), { outcome: "fails", pointer: "", text, parts: [] });
  }
});

test("parts are nested, each with its pointer", () => {
  const condition: Condition = {
    type: "and",
    conditions: [
      { type: "method", method: "POST" },
      { type: "not", condition: { type: "host", pattern: "^a" } },
      { type: "body_pattern", pattern: "x", side: "request" },
    ],
  };
  const unread: MatchSubject = { ...subject, requestText: () => NOT_READ };
  assert.deepEqual(compileCondition(condition).explain(unread), {
    outcome: "fails",
    pointer: "",
    text: "All of 3 must hold: 1 does",
    parts: [
      { outcome: "holds", pointer: "/conditions/0", text: "The method is `POST`", parts: [] },
      {
        outcome: "fails",
        pointer: "/conditions/1",
        text: "Negated: the condition does not hold",
        parts: [{ outcome: "holds", pointer: "/conditions/1/condition", text: "The host matches `^a`", parts: [] }],
      },
      {
        outcome: "needs-body",
        pointer: "/conditions/2",
        text: "The body of the request matches `x`: unknown, the body was not read",
        parts: [],
      },
    ],
  });
});

test("parts about the response fail before there is one", () => {
  const early = messageSubject(request, { status_code: 200 }, "request");
  const { text } = compileCondition({ type: "header", name: "a", side: "response" }).explain(early);
  assert.equal(text, "The header `a` of the response exists: no, there is no response yet");
});

test("every outcome equals the decision, and every pointer refers to its part", () => {
  const check = (condition: Condition, explained: Explanation): void => {
    for (const part of explained.parts) {
      const found = part.pointer
        .split("/")
        .slice(1)
        .reduce<unknown>((value, name) => Reflect.get(value as object, name), condition);
      assert.equal(typeof (found as Condition).type, "string");
      check(condition, part);
    }
  };
  fc.assert(
    fc.property(conditions, subjects, (condition, random) => {
      const compiled = compileCondition(condition);
      const decision = compiled.decide(random);
      const explained = compiled.explain(random);
      assert.equal(explained.outcome, decision === true ? "holds" : decision === false ? "fails" : decision);
      check(condition, explained);
    }),
  );
});

test("long values are cut", () => {
  const { text } = compileCondition({ type: "url_pattern", pattern: "x{3}" }).explain(
    messageSubject({ method: "GET", url: `http://a.test/${"y".repeat(5000)}` }, null, "request"),
  );
  assert.ok(text.length < 400);
});

test("a condition reads as a sentence", () => {
  const condition: Condition = {
    type: "and",
    conditions: [
      { type: "host", pattern: "*.a.test" },
      {
        type: "or",
        conditions: [
          { type: "method", method: "PUT" },
          { type: "status_code", range: "5xx" },
        ],
      },
      { type: "not", condition: { type: "header", name: "x-a" } },
    ],
  };
  assert.equal(
    describeCondition(condition),
    "the host matches `*.a.test` and (the method is `PUT` or the status is 5xx) and not (the header `x-a` exists)",
  );
});
