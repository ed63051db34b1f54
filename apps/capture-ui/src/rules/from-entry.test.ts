import assert from "node:assert/strict";
import { test } from "node:test";
import { conditionForRequest, copyName, nameForRequest } from "./from-entry.ts";

test("a rule created from a request matches its method, host, port and path", () => {
  assert.deepEqual(conditionForRequest({ method: "PUT", url: "http://a.example:8080/v1/x?q=1" }), {
    type: "and",
    conditions: [
      { type: "method", method: "PUT" },
      { type: "host", pattern: "^a\\.example$" },
      { type: "port", port: 8080 },
      { type: "path_pattern", pattern: "^/v1/x$" },
    ],
  });
  const plain = conditionForRequest({ method: "GET", url: "https://a.example/" });
  assert.ok(plain.type === "and");
  assert.equal(plain.conditions.length, 3);
});

test("an invalid URL still gives a condition", () => {
  assert.deepEqual(conditionForRequest({ method: "GET", url: "not an address" }), {
    type: "url_pattern",
    pattern: "^not an address$",
  });
});

test("names are short and derived from the request", () => {
  assert.equal(nameForRequest({ method: "GET", url: "https://a.example/?q=1" }), "GET a.example");
  assert.equal(nameForRequest({ method: "GET", url: "https://a.example/orders?q=1" }), "GET a.example/orders");
  assert.ok(nameForRequest({ method: "GET", url: `https://a.example/${"x".repeat(500)}` }).length <= 100);
  assert.ok(copyName("x".repeat(255)).length <= 255);
});
