import assert from "node:assert/strict";
import { test } from "node:test";
import type { Condition } from "@headworks/capture-contract";
import { conditionOfQuery, queryOfCondition } from "./condition-query.ts";

test("conditions become queries that say the same", () => {
  const cases: readonly [Condition, string | null][] = [
    [{ type: "all" }, ""],
    [{ type: "host", pattern: "^api\\.example\\.com$" }, "host:=api.example.com"],
    [{ type: "host", pattern: "*.example.com" }, "host:*.example.com"],
    [{ type: "path_pattern", pattern: "^/v[12]/" }, "path:/^\\/v[12]\\//"],
    [{ type: "method", method: "POST" }, "method:POST"],
    [{ type: "port", port: 8443 }, "port:8443"],
    [{ type: "status_code", range: "5xx" }, "status:5xx"],
    [{ type: "header", name: "x-a" }, "resp.header[x-a]:*"],
    [{ type: "header", name: "x-a", side: "request", value: "1" }, "req.header[x-a]:=1"],
    [{ type: "json_path", path: "$.id", value: "7" }, "json(resp,$.id):=7"],
    [{ type: "not", condition: { type: "method", method: "GET" } }, "-method:GET"],
    [{ type: "graphql_type", operation_type: "query" }, null],
    [{ type: "and", conditions: [{ type: "all" }, { type: "query_param", name: "q" }] }, null],
    [{ type: "status_code", range: "what" }, null],
  ];
  for (const [condition, text] of cases) assert.equal(queryOfCondition(condition, "response"), text);
});

test("queries become conditions", () => {
  const cases: readonly [string, Condition][] = [
    ["", { type: "all" }],
    ["host:=api.example.com", { type: "host", pattern: "^api\\.example\\.com$" }],
    ["host:*.example.com", { type: "host", pattern: "^.*\\.example\\.com$" }],
    ["path:/^.v[12]/", { type: "path_pattern", pattern: "^.v[12]" }],
    [
      "method:(PUT|POST)",
      {
        type: "or",
        conditions: [
          { type: "method", method: "PUT" },
          { type: "method", method: "POST" },
        ],
      },
    ],
    ["status:>=500", { type: "status_code", range: "500-999" }],
    ["status:!=404", { type: "not", condition: { type: "status_code", range: "404" } }],
    ["resp.header[x-a]:*", { type: "header", name: "x-a", side: "response" }],
    [
      "host:a -body:b",
      {
        type: "and",
        conditions: [
          { type: "host", pattern: "a" },
          { type: "not", condition: { type: "body_pattern", pattern: "b" } },
        ],
      },
    ],
  ];
  for (const [text, condition] of cases) assert.deepEqual(conditionOfQuery(text), { ok: true, condition }, text);
});

test("what a rule cannot ask is said in a sentence", () => {
  for (const text of ["needle", "since:10m", "dur:>1s", "port:1-5", "header:x", "host:("]) {
    const result = conditionOfQuery(text);
    assert.ok(!result.ok, text);
    assert.ok(result.message.length > 8);
  }
});
