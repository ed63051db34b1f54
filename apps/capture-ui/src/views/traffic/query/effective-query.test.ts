import assert from "node:assert/strict";
import { test } from "node:test";
import { compileQuery, parseQuery, type QueryRecord } from "@headworks/query-language";
import fc from "fast-check";
import {
  addTerm,
  effectiveQuery,
  focusMatcher,
  hostTerm,
  nodeTerms,
  PILLS,
  type QueryParts,
  queryValue,
  readPills,
  readRange,
  refuseUnreadable,
} from "./effective-query.ts";

const NOTHING: QueryParts = { q: "", pills: [], range: null, hosts: [] };
const parses = (q: string): void => {
  const result = parseQuery(q);
  assert.ok(result.ok, result.ok ? "" : `${q}: ${result.error.message}`);
};

test("without filters the query is empty", () => {
  assert.equal(effectiveQuery(NOTHING), "");
});

test("a text without other filters is unchanged", () => {
  assert.equal(effectiveQuery({ ...NOTHING, q: " host:a OR host:b " }), "host:a OR host:b");
});

test("types are alternatives, and errors narrow them", () => {
  assert.equal(effectiveQuery({ ...NOTHING, pills: ["js", "css"] }), "(type:script OR type:stylesheet)");
  assert.equal(effectiveQuery({ ...NOTHING, pills: ["js", "errors"] }), "type:script (status:>=400 OR state:failed)");
});

test("the pill for errors comes first, so that narrow rows show it", () => {
  assert.equal(PILLS[0].id, "errors");
});

test("an OR in the text does not absorb the other filters", () => {
  assert.equal(effectiveQuery({ ...NOTHING, q: "host:a OR host:b", pills: ["js"] }), "(host:a OR host:b) type:script");
});

test("any combination of filters is a valid query", () => {
  const range = { fromMs: 1_795_000_000_000, toMs: 1_795_000_001_000 };
  for (const pill of PILLS) {
    parses(effectiveQuery({ q: "host:x", pills: [pill.id], range, hosts: ["*.a.example", ".b.example", "c"] }));
  }
});

test("counts can omit filters", () => {
  const parts: QueryParts = { q: "x", pills: ["js"], range: { fromMs: 0, toMs: 1 }, hosts: [] };
  assert.equal(effectiveQuery(parts, { pills: true, range: true }), "x");
});

test("a tree node becomes terms that match its entries", () => {
  const table: readonly (readonly [name: string, path: string | null, expected: string])[] = [
    ["example.com", null, "host:=example.com"],
    ["example.com:8443", "/a b", 'host:=example.com port:8443 path:="/a b"'],
    ["[::1]", null, "host:=::1"],
    ["[::1]:80", "/", 'host:=::1 port:80 path:="/"'],
  ];
  for (const [name, path, expected] of table) {
    const q = nodeTerms(name, path).join(" ");
    assert.equal(q, expected);
    const result = parseQuery(q);
    assert.ok(result.ok, q);
    const holds = compileQuery(result.query, { nowMs: 0 });
    const ports: Readonly<Record<string, number>> = { "example.com:8443": 8443, "[::1]:80": 80 };
    const host = name.includes("::1") ? "::1" : "example.com";
    assert.ok(holds({ host, port: ports[name] ?? 443, path: path ?? "/x" } as QueryRecord), q);
    assert.ok(!holds({ host: "other.example.com", port: ports[name] ?? 443, path: path ?? "/x" } as QueryRecord), q);
  }
});

test("any value is quoted so that it parses as one value", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (value) => {
      const result = parseQuery(`path:=${queryValue(value)}`);
      assert.ok(result.ok, value);
      assert.ok(result.query.kind === "field" && result.query.test.kind === "text", value);
      assert.deepEqual(result.query.test.values, [{ kind: "literal", text: value }]);
    }),
    { numRuns: 500 },
  );
});

test("host patterns become host terms", () => {
  assert.equal(hostTerm("API.example"), "host:=api.example");
  assert.equal(hostTerm("*.example"), "host:*.example");
  assert.equal(hostTerm(".example"), "(host:=example OR host:*.example)");
});

test("a term is added once, and an OR is parenthesised", () => {
  assert.equal(addTerm("", "a"), "a");
  assert.equal(addTerm("a b", "b"), "a b");
  assert.equal(addTerm("ab", "b"), "ab b");
  assert.equal(addTerm("a OR b", "c"), "(a OR b) c");
});

test("invalid URL parameters are ignored", () => {
  assert.deepEqual(readPills("errors,js,nonsense,js"), ["errors", "js"]);
  assert.deepEqual(readPills(null), []);
  assert.deepEqual(readRange("5-10"), { fromMs: 5, toMs: 10 });
  for (const text of ["10-5", "a-b", "-1-5", "", null, "5-5", "9".repeat(40)]) assert.equal(readRange(text), null);
});

test("focus patterns have the semantics of rules", () => {
  const cases: readonly [string, string, boolean][] = [
    ["example.com", "example.com", true],
    ["example.com", "EXAMPLE.com:8443", true],
    ["example.com", "www.example.com", false],
    [".example.com", "example.com", true],
    [".example.com", "a.b.example.com", true],
    [".example.com", "badexample.com", false],
    ["*.example.com", "a.example.com", true],
    ["*.example.com", "example.com", false],
    ["api-*.example.com", "api-7.example.com", true],
    ["*shop*", "my.shop.example", true],
    ["a*b*a", "aba", true],
    ["a*a", "a", false],
    ["пример.рф", "xn--e1afmkfd.xn--p1ai:8443", true],
    ["*.пример.рф", "api.xn--e1afmkfd.xn--p1ai", true],
    ["example.com.", "example.com", true],
    ["10.0.0.0/8", "10.1.2.3:80", true],
    ["::1", "[0:0:0:0:0:0:0:1]:443", true],
    ["::1", "::1", true],
  ];
  for (const [pattern, host, expected] of cases) {
    assert.equal(focusMatcher([pattern])(host), expected, `${pattern} ${host}`);
  }
});

test("without patterns nothing matches; one matching pattern suffices", () => {
  assert.equal(focusMatcher([])("a"), false);
  assert.equal(focusMatcher(["x", "a"])("a"), true);
});

test("many different hosts use limited memory and match correctly", () => {
  const focused = focusMatcher(["*.yes"]);
  for (let index = 0; index < 12_000; index += 1) {
    assert.equal(focused(`${index}.${index % 2 === 0 ? "yes" : "no"}`), index % 2 === 0);
  }
});

test("an invalid query fails with the service's error", () => {
  refuseUnreadable("");
  refuseUnreadable("status:>=400");
  assert.throws(() => refuseUnreadable("foo:bar"), { name: "ApiFailure", status: 400, message: /foo/u });
});
