import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Condition } from "@headworks/capture-contract";
import { naiveDecision } from "../test/naive-interpreter.ts";
import { conditions, subjects } from "../test/random-conditions.ts";
import {
  compileCondition,
  compileConditionSet,
  messageSubject,
  NOT_READ,
  parseCondition,
  type MatchSubject,
} from "./index.ts";
import { parseStatusRange } from "./leaves.ts";

const request = {
  method: "POST",
  url: "https://API.example.test/v1/users/a%20b?page=2&tag=x&tag=y%26z",
  headers_list: [
    ["Content-Type", "application/json; charset=utf-8"],
    ["X-Trace", "one"],
    ["x-trace", "two"],
  ],
  body: '{"operationName":"Find","query":"query Find($id: ID) { user }","variables":{"id":7},"a":[{"b":1},{"b":"two"}]}',
  body_encoding: "utf8",
} as const;
const response = {
  status_code: 404,
  headers: { "content-type": "text/plain", "x-side": "answer" },
  body: "not found",
  body_encoding: "utf8",
} as const;

const atRequest = messageSubject(request, null, "request");
const atResponse = messageSubject(request, response, "response");

/** The outcome of a condition in both phases. */
function outcomes(condition: Condition): readonly [atRequest: boolean, atResponse: boolean] {
  const read = parseCondition(condition);
  assert.ok(read.ok, JSON.stringify(read));
  const compiled = compileCondition(read.condition);
  return [compiled.matches(atRequest), compiled.matches(atResponse)];
}

const BOTH = [true, true] as const;
const NEITHER = [false, false] as const;
const ASKED = [true, false] as const;
const ANSWERED = [false, true] as const;

test("each kind matches as documented, in the request and response phase", () => {
  const cases: readonly (readonly [condition: Condition, expected: readonly [boolean, boolean]])[] = [
    [{ type: "all" }, BOTH],
    [{ type: "url_pattern", pattern: "v1/users" }, BOTH],
    [{ type: "url_pattern", pattern: "^http:" }, NEITHER],
    [{ type: "url_pattern", pattern: "https://api.example.test/v1/*" }, NEITHER],
    [{ type: "url_pattern", pattern: "*/v1/users/*" }, BOTH],
    [{ type: "url_pattern", pattern: "/v1/*" }, BOTH],
    [{ type: "path_pattern", pattern: "^/v1/users/[^/]+$" }, BOTH],
    [{ type: "path_pattern", pattern: "page" }, NEITHER],
    [{ type: "path_pattern", pattern: "/v1/*" }, BOTH],
    [{ type: "path_pattern", pattern: "/v1/*/users" }, NEITHER],
    [{ type: "host", pattern: "Example\\.TEST$" }, BOTH],
    [{ type: "host", pattern: "*.example.test" }, BOTH],
    [{ type: "host", pattern: "*.test" }, BOTH],
    [{ type: "host", pattern: "*.example" }, NEITHER],
    [{ type: "method", method: "post" }, BOTH],
    [{ type: "method", method: "GET" }, NEITHER],
    [{ type: "scheme", scheme: "HTTPS" }, BOTH],
    [{ type: "scheme", scheme: "http" }, NEITHER],
    [{ type: "port", port: 443 }, BOTH],
    [{ type: "port", port: 80 }, NEITHER],
    [{ type: "path_segment", index: 0, value: "v1" }, BOTH],
    [{ type: "path_segment", index: 2, value: "a b" }, BOTH],
    [{ type: "path_segment", index: 2, value: "a%20b" }, BOTH],
    [{ type: "path_segment", index: 3, value: "" }, NEITHER],
    [{ type: "query_param", name: "page" }, BOTH],
    [{ type: "query_param", name: "page", value: "2" }, BOTH],
    [{ type: "query_param", name: "page", value: null }, BOTH],
    [{ type: "query_param", name: "tag", value: "y&z" }, BOTH],
    [{ type: "query_param", name: "page", value: "" }, NEITHER],
    [{ type: "query_param", name: "toString" }, NEITHER],
    [{ type: "query_param_pattern", name: "tag", pattern: "^y.z$" }, BOTH],
    [{ type: "query_param_pattern", name: "tag", pattern: "x*z" }, NEITHER],
    [{ type: "header", name: "X-TRACE" }, ASKED],
    [{ type: "header", name: "x-trace", value: "two" }, ASKED],
    [{ type: "header", name: "x-trace", value: "one, two" }, NEITHER],
    [{ type: "header", name: "x-trace", side: "request" }, BOTH],
    [{ type: "header", name: "X-Side" }, ANSWERED],
    [{ type: "header", name: "X-Side", side: "response" }, ANSWERED],
    [{ type: "header_pattern", name: "x-trace", pattern: "^t" }, ASKED],
    [{ type: "header_pattern", name: "x-side", pattern: "ans*" }, ANSWERED],
    [{ type: "content_type", pattern: "JSON" }, ASKED],
    [{ type: "content_type", pattern: "^text/" }, ANSWERED],
    [{ type: "content_type", pattern: "application/json*", side: "request" }, BOTH],
    [{ type: "body_pattern", pattern: "not.*found" }, ANSWERED],
    [{ type: "body_pattern", pattern: "operationName" }, ASKED],
    [{ type: "body_pattern", pattern: '*"Find"*' }, ASKED],
    [{ type: "json_path", path: "$.variables.id", value: 7 }, ASKED],
    [{ type: "json_path", path: "$.variables.id", value: "7" }, NEITHER],
    [{ type: "json_path", path: "$.a[*].b", value: "two" }, ASKED],
    [{ type: "json_path", path: "$..b", value: 1, side: "request" }, BOTH],
    [{ type: "json_path", path: "$.a[0]", value: { b: 1 } }, ASKED],
    [{ type: "json_path", path: "$.a" }, ASKED],
    [{ type: "json_path", path: "$.constructor" }, NEITHER],
    [{ type: "json_path_pattern", path: "$.a[*].b", pattern: "^1$" }, ASKED],
    [{ type: "json_path_pattern", path: "$.a", pattern: "." }, NEITHER],
    [{ type: "graph_q_l_operation", operation_name: "Find" }, BOTH],
    [{ type: "graphql_operation", operation_name: "find" }, NEITHER],
    [{ type: "graph_q_l_type", operation_type: "query" }, BOTH],
    [{ type: "graphql_type", operation_type: "mutation" }, NEITHER],
    [{ type: "graph_q_l_variable", name: "id", value: 7 }, BOTH],
    [{ type: "graphql_variable", name: "toString", value: null }, NEITHER],
    [{ type: "status_code", range: "4xx" }, ANSWERED],
    [{ type: "status_code", range: 404 }, ANSWERED],
    [{ type: "status_code", range: "200, 400-403" }, NEITHER],
    [
      {
        type: "and",
        conditions: [
          { type: "method", method: "POST" },
          { type: "status_code", range: "404" },
        ],
      },
      ANSWERED,
    ],
    [
      {
        type: "or",
        conditions: [
          { type: "method", method: "GET" },
          { type: "status_code", range: "404" },
        ],
      },
      ANSWERED,
    ],
    [{ type: "not", condition: { type: "host", pattern: "example" } }, NEITHER],
    [{ type: "not", condition: { type: "status_code", range: "5xx" } }, BOTH],
  ];
  for (const [condition, expected] of cases) {
    assert.deepEqual(outcomes(condition), expected, JSON.stringify(condition));
  }
  const kinds = new Set(cases.map(([{ type }]) => type));
  assert.equal(kinds.size, 26, "every name of every kind is in the table");
});

test("a list of GraphQL operations matches when one of them does", () => {
  const body = JSON.stringify([null, { operationName: "A" }, { operationName: "B", query: "subscription B { a }" }]);
  const subject = messageSubject({ method: "POST", url: "http://a.test/", body }, null, "request");
  assert.ok(compileCondition({ type: "graphql_operation", operation_name: "B" }).matches(subject));
  assert.ok(compileCondition({ type: "graphql_type", operation_type: "subscription" }).matches(subject));
  assert.ok(!compileCondition({ type: "graphql_operation", operation_name: "C" }).matches(subject));
});

test("compiled conditions decide as the naive interpreter does", () => {
  fc.assert(
    fc.property(conditions, subjects, (condition, subject) => {
      const compiled = compileCondition(condition);
      assert.equal(compiled.decide(subject), naiveDecision(condition, subject));
      assert.equal(compiled.matches(subject), naiveDecision(condition, subject) === true);
    }),
    { numRuns: 2000 },
  );
});

test("the declared needs of a condition are accurate", () => {
  fc.assert(
    fc.property(conditions, subjects, (condition, subject) => {
      const compiled = compileCondition(condition);
      const facts = subject.phase === "request" ? compiled.atRequest : compiled.atResponse;
      const asked = { request: false, response: false };
      const watched: MatchSubject = {
        ...subject,
        requestText: () => {
          asked.request = true;
          return subject.requestText();
        },
        responseText: () => {
          asked.response = true;
          return subject.responseText();
        },
      };
      const decision = compiled.decide(watched);
      if (decision === true) assert.ok(facts.possible, "it held although it could not");
      if (decision === "needs-body") assert.ok(facts.request || facts.response, "it waits for a body it does not need");
      if (!facts.request && !facts.response && facts.possible && decision !== false) {
        assert.equal(decision, true);
      }
      const isDecidedWithout = compiled.decide({
        ...subject,
        requestText: () => NOT_READ,
        responseText: () => NOT_READ,
      });
      if (!facts.request && !facts.response) assert.notEqual(isDecidedWithout, "needs-body");
      if (isDecidedWithout !== "needs-body") assert.equal(decision, isDecidedWithout);
    }),
    { numRuns: 2000 },
  );
});

test("bodies are requested last, and only when nothing else decides", () => {
  const condition: Condition = {
    type: "and",
    conditions: [
      { type: "body_pattern", pattern: "x" },
      { type: "host", pattern: "^other$" },
    ],
  };
  const subject: MatchSubject = {
    ...atRequest,
    requestText: () => {
      throw new Error("the body was asked for");
    },
  };
  assert.equal(compileCondition(condition).decide(subject), false);
});

test("a JSON body is parsed once for all conditions, and again when the subject has another body", () => {
  let text = '{"a":1}';
  const subject: MatchSubject = { ...atRequest, requestText: () => text };
  const one = compileCondition({ type: "json_path", path: "$.a", value: 1 });
  assert.ok(one.matches(subject));
  text = '{"a":2}';
  assert.ok(!one.matches(subject));
  assert.ok(compileCondition({ type: "json_path", path: "$.a", value: 2 }).matches(subject));
});

test("needs are declared per phase", () => {
  const body = compileCondition({ type: "body_pattern", pattern: "x" });
  assert.deepEqual([body.needsRequestBody, body.needsResponse, body.needsResponseBody], [true, false, true]);
  assert.deepEqual(body.atResponse, { possible: true, avoidable: true, request: false, response: true });
  const graphql = compileCondition({ type: "graphql_type", operation_type: "query" });
  assert.deepEqual([graphql.atResponse.request, graphql.atResponse.response], [true, false]);
  const status = compileCondition({
    type: "and",
    conditions: [
      { type: "status_code", range: "5xx" },
      { type: "body_pattern", pattern: "x" },
    ],
  });
  assert.deepEqual([status.atRequest.possible, status.needsRequestBody, status.needsResponse], [false, false, true]);
  const any = compileCondition({ type: "or", conditions: [{ type: "all" }, { type: "body_pattern", pattern: "x" }] });
  assert.deepEqual([any.needsRequestBody, any.needsResponseBody], [false, false]);
});

test("hostile patterns take linear time and are decided", () => {
  const text = `${"a".repeat(100_000)}!`;
  const subject: MatchSubject = { ...atRequest, requestText: () => text, url: `http://a.test/${text}` };
  for (const pattern of ["(a+)+$", "(a|a)*b", "(a*)*c", "a*a*a*a*a*a*b", "([a-z]+)*d", "(.*)*Q"]) {
    assert.equal(compileCondition({ type: "body_pattern", pattern }).matches(subject), false, pattern);
    assert.equal(compileCondition({ type: "url_pattern", pattern }).matches(subject), false, pattern);
  }
});

test("compiling an invalid condition throws", () => {
  assert.throws(() => compileCondition({ type: "host", pattern: "(" }), RangeError);
  assert.throws(() => compileCondition({ type: "json_path", path: "a" }), RangeError);
  assert.throws(() => compileCondition({ type: "status_code", range: "x" }), RangeError);
});

test("a text of header fields matches whether its octets are Latin-1 or UTF-8, alone and among many conditions", () => {
  const subjectWith = (value: string): MatchSubject =>
    messageSubject(
      {
        method: "GET",
        url: "http://a/",
        headers_list: [
          ["X-Size", value],
          ["Content-Type", value],
        ],
      },
      null,
      "request",
    );
  const subjects = ["größe", Buffer.from("größe").toString("latin1"), "groesse"].map(subjectWith);
  const asked: readonly (readonly [condition: Condition, expected: readonly boolean[]])[] = [
    [{ type: "header", name: "X-Size", value: "größe" }, [true, true, false]],
    [{ type: "header_pattern", name: "X-Size", pattern: "größe" }, [true, true, false]],
    [{ type: "header_pattern", name: "X-Size", pattern: "gr*ß*" }, [true, true, false]],
    [{ type: "header_pattern", name: "X-Size", pattern: "^gr\\u00f6.e$" }, [true, true, false]],
    [{ type: "content_type", pattern: "GRÖßE" }, [true, true, false]],
    [{ type: "not", condition: { type: "header", name: "X-Size", value: "größe" } }, [false, false, true]],
    [{ type: "header", name: "X-Size", value: "groesse" }, [false, false, true]],
  ];
  const rules = asked.map(([condition]) => compileCondition(condition));
  const set = compileConditionSet(rules, (rule) => rule);
  for (const [key, [condition, expected]] of asked.entries()) {
    const rule = rules[key] ?? assert.fail();
    for (const [index, subject] of subjects.entries()) {
      assert.equal(rule.matches(subject), expected[index], JSON.stringify(condition));
      if (expected[index] === true) assert.ok(set.candidates(subject).includes(rule), JSON.stringify(condition));
    }
  }
});

test("hosts and paths compare as typed and as sent", () => {
  const octets = Buffer.from("/путь?ключ=да").toString("latin1");
  const subjects = [
    "https://xn--e1afmkfd.xn--p1ai/%d0%bf%D1%83%D1%82%D1%8C?%D0%BA%D0%BB%D1%8E%D1%87=%D0%B4%D0%B0",
    `https://xn--e1afmkfd.xn--p1ai${octets}`,
  ].map((url) => messageSubject({ method: "GET", url }, null, "request"));
  const matching: readonly Condition[] = [
    { type: "host", pattern: "пример.рф" },
    { type: "host", pattern: "*.РФ" },
    { type: "host", pattern: "^xn--e1afmkfd\\." },
    { type: "path_pattern", pattern: "/путь" },
    { type: "path_pattern", pattern: "/пу*" },
    { type: "path_segment", index: 0, value: "путь" },
    { type: "url_pattern", pattern: "https://пример.рф/путь*" },
    { type: "url_pattern", pattern: "/путь*" },
    { type: "query_param", name: "ключ", value: "да" },
    { type: "query_param_pattern", name: "ключ", pattern: "^д" },
  ];
  const others: readonly Condition[] = [
    { type: "host", pattern: "пример.рус" },
    { type: "path_pattern", pattern: "/иной" },
    { type: "query_param", name: "путь" },
  ];
  const rules = [...matching, ...others].map((condition) => compileCondition(condition));
  for (const subject of subjects) {
    const found = compileConditionSet(rules, (rule) => rule)
      .candidates(subject)
      .filter((rule) => rule.matches(subject));
    assert.deepEqual(found, rules.slice(0, matching.length), subject.url);
  }
});

/** Both ends included. */
const range = (min: number, max: number) => ({ min, max, minExcluded: false, maxExcluded: false });

test("statuses, classes, ranges and lists are parsed; other texts are not", () => {
  assert.deepEqual(parseStatusRange("404"), [range(404, 404)]);
  assert.deepEqual(parseStatusRange(404), [range(404, 404)]);
  assert.deepEqual(parseStatusRange("5XX"), [range(500, 599)]);
  assert.deepEqual(parseStatusRange(" 2xx , 301 - 308,404"), [range(200, 299), range(301, 308), range(404, 404)]);
  for (const wrong of ["", "x", "2x", "0xx", "40", "4044", "-404", "404-", "500-400", "404,", "4xx-5xx", "1e2", 40.5]) {
    assert.equal(parseStatusRange(wrong), undefined, String(wrong));
  }
});
