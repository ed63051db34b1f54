import assert from "node:assert/strict";
import { test } from "node:test";
import { focusMatcher } from "./focus-match.ts";

test("patterns mean what they mean in rules", () => {
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

test("no pattern matches nothing, and one of several is enough", () => {
  assert.equal(focusMatcher([])("a"), false);
  assert.equal(focusMatcher(["x", "a"])("a"), true);
});

test("many different hosts do not fill the memory and stay right", () => {
  const focused = focusMatcher(["*.yes"]);
  for (let index = 0; index < 12_000; index += 1) {
    assert.equal(focused(`${index}.${index % 2 === 0 ? "yes" : "no"}`), index % 2 === 0);
  }
});
