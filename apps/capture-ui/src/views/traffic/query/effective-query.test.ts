import assert from "node:assert/strict";
import { test } from "node:test";
import { compileQuery, parseQuery } from "@headworks/query-language";
import type { QueryRecord } from "@headworks/query-language";
import fc from "fast-check";
import {
  addTerm,
  effectiveQuery,
  hostTerm,
  nodeTerms,
  PILLS,
  queryValue,
  readPills,
  readRange,
  type QueryParts,
} from "./effective-query.ts";

const NOTHING: QueryParts = { q: "", pills: [], range: null, hosts: [] };
const parses = (q: string): void => {
  const result = parseQuery(q);
  assert.ok(result.ok, result.ok ? "" : `${q}: ${result.error.message}`);
};

test("nothing chosen is the empty query", () => {
  assert.equal(effectiveQuery(NOTHING), "");
});

test("a text alone stays as it is written", () => {
  assert.equal(effectiveQuery({ ...NOTHING, q: " host:a OR host:b " }), "host:a OR host:b");
});

test("types are alternatives, and errors narrow them", () => {
  assert.equal(effectiveQuery({ ...NOTHING, pills: ["js", "css"] }), "(type:script OR type:stylesheet)");
  assert.equal(effectiveQuery({ ...NOTHING, pills: ["js", "errors"] }), "type:script (status:>=400 OR state:failed)");
});

test("errors stand first, where no narrow row cuts them off", () => {
  assert.equal(PILLS[0].id, "errors");
});

test("an OR in the text does not swallow the other choices", () => {
  assert.equal(effectiveQuery({ ...NOTHING, q: "host:a OR host:b", pills: ["js"] }), "(host:a OR host:b) type:script");
});

test("whatever is chosen, the result is a query", () => {
  const range = { fromMs: 1_795_000_000_000, toMs: 1_795_000_001_000 };
  for (const pill of PILLS) {
    parses(effectiveQuery({ q: "host:x", pills: [pill.id], range, hosts: ["*.a.example", ".b.example", "c"] }));
  }
});

test("counts can leave out what they must not depend on", () => {
  const parts: QueryParts = { q: "x", pills: ["js"], range: { fromMs: 0, toMs: 1 }, hosts: [] };
  assert.equal(effectiveQuery(parts, { pills: true, range: true }), "x");
});

test("a node of the tree becomes terms that find its entries", () => {
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

test("any value can be written so that it is read back as a whole", () => {
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

test("host patterns become terms about the host", () => {
  assert.equal(hostTerm("API.example"), "host:=api.example");
  assert.equal(hostTerm("*.example"), "host:*.example");
  assert.equal(hostTerm(".example"), "(host:=example OR host:*.example)");
});

test("a term is added once, and an OR is put in parentheses", () => {
  assert.equal(addTerm("", "a"), "a");
  assert.equal(addTerm("a b", "b"), "a b");
  assert.equal(addTerm("ab", "b"), "ab b");
  assert.equal(addTerm("a OR b", "c"), "(a OR b) c");
});

test("parameters of the address are read with care", () => {
  assert.deepEqual(readPills("errors,js,nonsense,js"), ["errors", "js"]);
  assert.deepEqual(readPills(null), []);
  assert.deepEqual(readRange("5-10"), { fromMs: 5, toMs: 10 });
  for (const text of ["10-5", "a-b", "-1-5", "", null, "5-5", "9".repeat(40)]) assert.equal(readRange(text), null);
});
