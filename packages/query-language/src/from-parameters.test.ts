import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compileQuery } from "./compile.ts";
import { formatQuery } from "./format.ts";
import { fromParameters, type QueryParameters } from "./from-parameters.ts";
import { parseQuery } from "./parse.ts";
import { recordOf } from "../test/random-queries.ts";

const CASES: readonly (readonly [QueryParameters, string])[] = [
  [{}, ""],
  [{ method: "POST,put", host: undefined }, "method:(POST|put)"],
  [{ url: "/v1/", host: "*.example.com" }, 'url:"/v1/" host:*.example.com'],
  [{ host: "*" }, "host:*"],
  [{ status_code: "404" }, "status:404"],
  [{ status_code: "4xx, 500,502-504" }, "status:(4xx|500|502..504)"],
  [{ status: "200" }, "status:200"],
  [{ content_type: "application/json", search: "a b" }, 'type:application/json "a b"'],
  [{ content_type: "text/html; charset=utf-8" }, 'resp.header[content-type]:"text/html; charset=utf-8"'],
  [{ host: "[::1]" }, "host:::1"],
  [{ file_type: ".js,css" }, "ext:(js|css)"],
  [{ header: "X-Request-Id: 7" }, "header[x-request-id]:7"],
  [{ header: "X-Request-Id:" }, "header[x-request-id]:*"],
  [{ header: "x-request" }, "header:x-request"],
  [{ cookie: "Sid=abc" }, "cookie[Sid]:abc"],
  [{ cookie: "sid" }, "cookie:sid"],
  [{ is_passthrough: "false" }, "passthrough:false"],
  [
    { min_size: "10kb", max_size: "20000", min_time: "250", max_time: "1s" },
    "size:>=10kb size:<=20kb dur:>=250ms dur:<=1s",
  ],
];

for (const [parameters, text] of CASES) {
  test(`${JSON.stringify(parameters)} is the query \`${text}\``, () => {
    const result = fromParameters(parameters);
    assert.ok(result.ok);
    assert.equal(formatQuery(result.query), text);
    const parsed = parseQuery(text);
    assert.ok(parsed.ok);
    assert.deepEqual(result.query, parsed.query);
  });
}

const REFUSED: readonly (readonly [QueryParameters, keyof QueryParameters, RegExp])[] = [
  [{ status_code: "abc" }, "status_code", /`status_code` is a status such as/],
  [{ status_code: "4xx," }, "status_code", /is a status/],
  [{ is_passthrough: "1" }, "is_passthrough", /`true` or `false`/],
  [{ min_size: "big" }, "min_size", /is a size/],
  [{ max_time: "-1" }, "max_time", /is a duration/],
  [{ host: " " }, "host", /is empty/],
  [{ file_type: "." }, "file_type", /file extension/],
  [{ method: "," }, "method", /is a method/],
  [{ search: "a".repeat(5000) }, "search", /at most 4096/],
];

for (const [parameters, parameter, message] of REFUSED) {
  test(`${JSON.stringify(parameters).slice(0, 60)} is refused by name`, () => {
    const result = fromParameters(parameters);
    assert.ok(!result.ok);
    assert.equal(result.error.parameter, parameter);
    assert.match(result.error.message, message);
  });
}

test("whatever the parameters hold, the query can be written and read back", () => {
  const value = fc.string({
    unit: fc.constantFrom(
      "a",
      "A",
      "*",
      " ",
      '"',
      "/",
      ":",
      "=",
      ",",
      "-",
      ".",
      "(",
      "|",
      "\\",
      "é",
      "]",
      "@",
      "4",
      "x",
    ),
    maxLength: 6,
  });
  const names = [
    "method",
    "url",
    "status_code",
    "content_type",
    "host",
    "search",
    "file_type",
    "header",
    "cookie",
    "min_size",
    "max_time",
  ];
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom(...names), value), (parameters) => {
      const result = fromParameters(parameters);
      if (!result.ok) return;
      const parsed = parseQuery(formatQuery(result.query));
      assert.ok(parsed.ok, parsed.ok ? "" : parsed.error.message);
      assert.deepEqual(parsed.query, result.query);
    }),
    { numRuns: 3000 },
  );
});

test("a name that the language does not know is refused, inherited ones included", () => {
  for (const name of ["limit", "toString", "__proto__"]) {
    const result = fromParameters(Object.fromEntries([[name, "1"]]));
    assert.ok(!result.ok && result.error.parameter === name);
  }
});

test("the parameters select what they say", () => {
  const holds = (parameters: QueryParameters): boolean => {
    const result = fromParameters(parameters);
    assert.ok(result.ok);
    return compileQuery(result.query, { nowMs: 0 })(recordOf());
  };
  assert.ok(
    holds({
      method: "get",
      url: "orders",
      status_code: "2xx",
      content_type: "json",
      host: "example",
      search: "räder",
      file_type: "json",
      header: "host:api",
      cookie: "sid",
      is_passthrough: "false",
      min_size: "1",
      max_time: "1s",
    }),
  );
  assert.ok(!holds({ method: "get", min_time: "121" }));
});
