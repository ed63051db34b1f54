import assert from "node:assert/strict";
import { test } from "node:test";
import { compileQuery, fieldValues, formatQuery, parseQuery, type QueryRecord } from "@headworks/query-language";
import fc from "fast-check";
import { conditions, subjects } from "../test/random-conditions.ts";
import {
  compileCondition,
  conditionToQuery,
  NOT_READ,
  parseCondition,
  queryToCondition,
  type MatchSubject,
} from "./index.ts";

/** The subject as a record of the query language. */
function recordOf(subject: MatchSubject): QueryRecord {
  const text = (body: string | typeof NOT_READ | undefined): string | undefined =>
    body === NOT_READ ? undefined : body;
  return {
    id: "1",
    sessionId: "1",
    method: subject.method,
    scheme: subject.scheme,
    host: subject.host,
    port: subject.port,
    path: subject.path,
    query: subject.query,
    url: subject.url,
    status: subject.status,
    httpVersion: undefined,
    requestType: fieldValues(subject.requestFields(), "content-type")[0]?.split(";", 1)[0],
    responseType: undefined,
    resourceType: undefined,
    requestSizeBytes: 0,
    responseSizeBytes: 0,
    durationMs: 0,
    ttfbMs: 0,
    timestampMs: 0,
    clientAddress: undefined,
    state: "complete",
    isPassthrough: false,
    modified: false,
    applied: [],
    note: undefined,
    hasRequestBody: (text(subject.requestText()) ?? "") !== "",
    hasResponseBody: (text(subject.responseText()) ?? "") !== "",
    requestFields: () => subject.requestFields(),
    responseFields: () => subject.responseFields(),
    requestText: () => text(subject.requestText()),
    responseText: () => text(subject.responseText()),
  };
}

/** Subjects with a response and read bodies, for which both languages mean the same. */
const answered: fc.Arbitrary<MatchSubject> = subjects.map((subject) => {
  const body = subject.requestText() === NOT_READ ? '{"a":"One","n":2}' : subject.requestText();
  return {
    ...subject,
    phase: "response",
    status: subject.status ?? 200,
    requestText: () => body,
    responseText: () => '{"a":{"b":"one"},"n":2}',
  };
});

const text = fc.constantFrom(
  "a",
  "users",
  "One",
  "api",
  "*.test",
  "v*1",
  "a.b",
  "[::1]",
  "json",
  "/t.o/",
  "/^api/i",
  "/a*/",
  '"(x"',
);
const queries = fc
  .array(
    fc.oneof(
      fc.tuple(
        fc.constantFrom("host", "path", "url", "req.body", "resp.body", "body"),
        fc.constantFrom(":", ":=", ":!="),
        text,
      ),
      fc.tuple(
        fc.constantFrom("req.header[x-a]", "resp.header[Accept]", "header[X-A]"),
        fc.constantFrom(":", ":=", ":!="),
        text,
      ),
      fc.tuple(
        fc.constantFrom("method", "scheme"),
        fc.constantFrom(":", ":=", ":!="),
        fc.constantFrom("get", "POST", "https", "(get|PATCH)"),
      ),
      fc.tuple(
        fc.constant("status"),
        fc.constantFrom(":", ":!="),
        fc.constantFrom("404", "2xx", "200..204", "(404|5xx)"),
      ),
      fc.tuple(fc.constant("status"), fc.constant(":"), fc.constantFrom(">=404", "<404", "*", ">204")),
      fc.tuple(fc.constant("port"), fc.constantFrom(":", ":!="), fc.constantFrom("80", "79..81", "(80|443)")),
      fc.tuple(
        fc.constantFrom("json(req,$.a)", "json(resp,$.a.b)", "json(resp,$.n)", "json(resp,$..b)"),
        fc.constantFrom(":", ":=", ":!="),
        fc.constantFrom("one", "ONE", "o*e", "/o.e/"),
      ),
      fc.tuple(
        fc.constantFrom("json(req,$.n)", "json(resp,$.a)", "req.body", "header[x-a]"),
        fc.constant(":"),
        fc.constant("*"),
      ),
    ),
    { minLength: 1, maxLength: 3 },
  )
  .chain((terms) =>
    fc
      .tuple(fc.constantFrom(" ", " OR "), fc.array(fc.constantFrom("", "-"), { minLength: 3, maxLength: 3 }))
      .map(([join, signs]) => terms.map((parts, index) => `${signs[index]}${parts.join("")}`).join(join)),
  );

test("a query and its condition match the same completed exchanges", () => {
  let converted = 0;
  fc.assert(
    fc.property(queries, answered, (source, subject) => {
      const parsed = parseQuery(source);
      if (!parsed.ok) return;
      const result = queryToCondition(parsed.query);
      if (!result.ok) return;
      converted += 1;
      assert.ok(parseCondition(result.condition).ok, JSON.stringify(result.condition));
      const expected = compileQuery(parsed.query, { nowMs: 0 })(recordOf(subject));
      assert.equal(compileCondition(result.condition).matches(subject), expected, JSON.stringify(result.condition));
    }),
    { numRuns: 3000 },
  );
  assert.ok(converted > 1500, `${converted} were converted`);
});

test("a condition and its query match the same completed exchanges, and the query has a text form", () => {
  let converted = 0;
  fc.assert(
    fc.property(conditions, answered, (condition, subject) => {
      const result = conditionToQuery(condition, "response");
      if (!result.ok) return;
      converted += 1;
      const expected = compileCondition(condition).matches(subject);
      assert.equal(compileQuery(result.query, { nowMs: 0 })(recordOf(subject)), expected, formatQuery(result.query));
      const read = parseQuery(formatQuery(result.query));
      assert.ok(read.ok, formatQuery(result.query));
      assert.equal(compileQuery(read.query, { nowMs: 0 })(recordOf(subject)), expected, formatQuery(result.query));
    }),
    { numRuns: 3000 },
  );
  assert.ok(converted > 800, `${converted} were converted`);
});

test("a query converted to a condition and back finds the same", () => {
  fc.assert(
    fc.property(queries, answered, (source, subject) => {
      const parsed = parseQuery(source);
      const condition = parsed.ok ? queryToCondition(parsed.query) : undefined;
      if (!parsed.ok || condition?.ok !== true) return;
      const back = conditionToQuery(condition.condition, "response");
      if (!back.ok) return;
      const record = recordOf(subject);
      assert.equal(
        compileQuery(back.query, { nowMs: 0 })(record),
        compileQuery(parsed.query, { nowMs: 0 })(record),
        formatQuery(back.query),
      );
    }),
    { numRuns: 2000 },
  );
});

const CALLS = [
  "orders",
  "=shop.Orders",
  "=SHOP.orders",
  "!=shop.Orders",
  "(get|Put)",
  "s*ers",
  "*",
  "get",
  "!=Get",
  "G*t",
];
test("a query about gRPC calls and its condition match the same exchanges", () => {
  const sample = fc.sample(answered, { numRuns: 1, seed: 1 })[0];
  assert.ok(sample);
  for (const path of [
    "/shop.Orders/Get",
    "/api/shop.Orders/Put",
    "//Get",
    "/shop.Orders/",
    "/Get",
    "/",
    "/get/orders",
  ]) {
    for (const type of [
      "application/grpc",
      "Application/grpc-web+proto; x=1",
      "application/grpc;x",
      "application/json",
    ]) {
      const subject: MatchSubject = { ...sample, path, requestFields: () => ["Content-Type", type] };
      for (const [field, value] of CALLS.flatMap((one) => [
        ["grpc.service", one] as const,
        ["grpc.method", one] as const,
      ])) {
        const parsed = parseQuery(`${field}:${value}`);
        assert.ok(parsed.ok);
        const result = queryToCondition(parsed.query);
        assert.ok(result.ok && parseCondition(result.condition).ok, `${field}:${value}`);
        const expected = compileQuery(parsed.query, { nowMs: 0 })(recordOf(subject));
        const holds = compileCondition(result.condition).matches(subject);
        assert.equal(holds, expected, `${field}:${value} of ${path} in ${type}`);
      }
    }
  }
});

test("common queries become the conditions a person would write", () => {
  const cases: readonly (readonly [query: string, condition: unknown])[] = [
    ["", { type: "all" }],
    ["host:*.example.com", { type: "host", pattern: "*.example.com" }],
    ["host:example.com", { type: "host", pattern: "example\\.com" }],
    ["path:/v1/", { type: "path_pattern", pattern: "(?i)/v1/" }],
    ["url:/a*/", { type: "url_pattern", pattern: "(?:a*)" }],
    [
      "method:(GET|post)",
      {
        type: "or",
        conditions: [
          { type: "method", method: "GET" },
          { type: "method", method: "post" },
        ],
      },
    ],
    ["status:5xx", { type: "status_code", range: "5xx" }],
    ["status:>=400", { type: "status_code", range: "400-999" }],
    ["-resp.header[x-a]:*", { type: "not", condition: { type: "header", name: "x-a", side: "response" } }],
    ["req.header[x-a]:=1", { type: "header", name: "x-a", value: "1", side: "request" }],
    [
      "json(req,$.id):=7",
      {
        type: "or",
        conditions: [
          { type: "json_path_pattern", path: "$.id", pattern: "^7$", side: "request" },
          { type: "json_path", path: "$.id", value: 7, side: "request" },
        ],
      },
    ],
  ];
  for (const [source, expected] of cases) {
    const parsed = parseQuery(source);
    assert.ok(parsed.ok, source);
    assert.deepEqual(queryToCondition(parsed.query), { ok: true, condition: expected }, source);
  }
});

test("parts without an equivalent are rejected with a message", () => {
  for (const [source, message] of [
    ["word", /name a field/],
    ["dur:>1s", /^dur: cannot be used in rules$/],
    ["ws.text:a", /^ws\.text: is about messages of streams; use rules for WebSocket messages/],
    ["host:a dir:in", /^dir: is about messages of streams/],
    ["grpc.status:!=0", /^grpc\.status: is known only after the call/],
    ["grpc.service:/a+/", /^grpc\.service: cannot be a pattern in rules/],
    ["grpc.method:a/b", /^grpc\.method: must be one segment of the path/],
    ["type:image", /^type: cannot be used/],
    ["since:10m", /^since: is about stored entries/],
    ["header:x", /write header\[name\]:/],
    ["json(req,$.a):>5", /one number/],
    ["port:1..1000", /at most 64/],
    ["port:0", /no such port/],
    ["body:!=x", /write req\.body: or resp\.body:/],
  ] as const) {
    const parsed = parseQuery(source);
    assert.ok(parsed.ok, source);
    const result = queryToCondition(parsed.query);
    assert.ok(!result.ok, source);
    assert.match(result.message, message);
  }
  const query = conditionToQuery({ type: "query_param", name: "a" }, "request");
  assert.deepEqual(query, {
    ok: false,
    message: "the query language cannot express: the query parameter `a` exists",
  });
  assert.ok(!conditionToQuery({ type: "status_code", range: "5xx" }, "request").ok);
  assert.ok(!conditionToQuery({ type: "header", name: "a", side: "response" }, "request").ok);
  assert.ok(!conditionToQuery({ type: "json_path", path: "$.a", value: "7" }, "response").ok);
});

test("without a side, conditions of the request phase apply to the request", () => {
  const result = conditionToQuery({ type: "header", name: "X-A", value: "1" }, "request");
  assert.ok(result.ok);
  assert.equal(formatQuery(result.query), "req.header[x-a]:=1");
});
