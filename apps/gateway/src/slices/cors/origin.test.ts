import assert from "node:assert/strict";
import { test } from "node:test";
import { normalOrigin } from "./cors.slice.ts";

for (const [text, expected] of [
  ["https://a.test", "https://a.test"],
  ["HTTPS://A.Test:443", "https://a.test"],
  ["http://a.test:80", "http://a.test"],
  ["http://a.test:443", "http://a.test:443"],
  ["https://a.test:8443", "https://a.test:8443"],
  ["http://[::1]:8080", "http://[::1]:8080"],
  ["http://[::80]", "http://[::80]"],
  ["capacitor://localhost", "capacitor://localhost"],
  ["https://B\u00fccher.test:8443", "https://xn--bcher-kva.test:8443"],
  ["https://b\u00fccher.test", "https://xn--bcher-kva.test"],
  ["null", undefined],
  ["", undefined],
  ["*", undefined],
  ["https://*.a.test", undefined],
  ["https://", undefined],
  ["https://a.test/", undefined],
  ["https://a.test?x", undefined],
  ["https://a.test#x", undefined],
  ["https://user@a.test", undefined],
  ["https://a.test:", undefined],
  ["https://a.test:123456", undefined],
  ["https://a.test https://b.test", undefined],
  ["https://a.test\r\nX: y", undefined],
  ["//a.test", undefined],
  ["a.test", undefined],
  ["constructor://a", "constructor://a"],
] as const) {
  test(`${JSON.stringify(text)} ${expected === undefined ? "is no origin" : `is ${expected}`}`, () => {
    assert.equal(normalOrigin(text), expected);
  });
}
