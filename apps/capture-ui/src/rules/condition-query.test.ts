import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition } from "@headworks/capture-contract";
import { conditionOfQuery, queryOfCondition } from "./condition-query.ts";
import type { RulePhase } from "./condition-query.ts";

test("conditions become equivalent queries, with words instead of patterns if possible", () => {
  const cases: readonly [Condition, RulePhase, string | null][] = [
    [{ type: "all" }, "both", ""],
    [{ type: "host", pattern: "^api\\.example\\.com$" }, "both", "host:=api.example.com"],
    [{ type: "host", pattern: "^API\\.example\\.com$" }, "both", "host:/^API\\.example\\.com$/i"],
    [{ type: "host", pattern: "example" }, "request", "host:example"],
    [{ type: "host", pattern: "*.example.com" }, "request", "host:*.example.com"],
    [{ type: "path_pattern", pattern: "^/orders$" }, "request", 'path:="/orders"'],
    [{ type: "path_pattern", pattern: "orders" }, "request", "path:/(?:orders)/"],
    [{ type: "path_pattern", pattern: "^/v[12]/" }, "request", "path:/^\\/v[12]\\//"],
    [{ type: "method", method: "POST" }, "request", "method:POST"],
    [{ type: "port", port: 8443 }, "request", "port:8443"],
    [{ type: "status_code", range: "5xx" }, "response", "status:5xx"],
    [{ type: "status_code", range: "5xx" }, "both", "status:5xx"],
    [{ type: "status_code", range: "5xx" }, "request", null],
    [{ type: "header", name: "x-a" }, "response", "resp.header[x-a]:*"],
    [{ type: "header", name: "x-a" }, "both", "req.header[x-a]:* OR resp.header[x-a]:*"],
    [{ type: "header", name: "x-a", side: "request", value: "1" }, "both", "req.header[x-a]:=1"],
    [{ type: "not", condition: { type: "method", method: "GET" } }, "request", "-method:GET"],
    [{ type: "graphql_type", operation_type: "query" }, "request", null],
    [{ type: "and", conditions: [{ type: "all" }, { type: "query_param", name: "q" }] }, "request", null],
    [{ type: "host", pattern: "(" }, "both", null],
  ];
  for (const [condition, phase, text] of cases) {
    assert.equal(queryOfCondition(condition, phase), text, `${JSON.stringify(condition)} at ${phase}`);
  }
});

test("queries become conditions; fields without a side mean the request before the response exists", () => {
  const cases: readonly [string, RulePhase, Condition][] = [
    ["", "both", { type: "all" }],
    ["host:=api.example.com", "both", { type: "host", pattern: "^api\\.example\\.com$" }],
    ["path:/^.v[12]/", "request", { type: "path_pattern", pattern: "^.v[12]" }],
    ["status:>=500", "both", { type: "status_code", range: "500-999" }],
    ["resp.header[x-a]:*", "both", { type: "header", name: "x-a", side: "response" }],
    ["header[x-a]:=1", "request", { type: "header", name: "x-a", value: "1", side: "request" }],
    [
      "host:a -body:/b/",
      "request",
      {
        type: "and",
        conditions: [
          { type: "host", pattern: "a" },
          { type: "not", condition: { type: "body_pattern", pattern: "b", side: "request" } },
        ],
      },
    ],
    [
      "body:/b/",
      "both",
      {
        type: "or",
        conditions: [
          { type: "body_pattern", pattern: "b", side: "request" },
          { type: "body_pattern", pattern: "b", side: "response" },
        ],
      },
    ],
  ];
  for (const [text, phase, condition] of cases) {
    assert.deepEqual(conditionOfQuery(text, phase), { ok: true, condition }, text);
  }
});

test("queries that a rule cannot express are reported", () => {
  for (const text of ["needle", "since:10m", "dur:>1s", "port:1-500", "header:x", "host:("]) {
    const result = conditionOfQuery(text, "both");
    assert.ok(!result.ok, text);
    assert.ok(result.message.length > 8);
  }
});
