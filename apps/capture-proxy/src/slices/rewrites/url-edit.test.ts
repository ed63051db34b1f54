import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { parseQuery } from "@headworks/http-fields";
import type { RequestMessage, Scheme } from "#exchange/exchange.ts";
import { withoutQueryParameter, withQueryParameter } from "./rewrite-actions.ts";
import { changesUrl, mappedTarget, moveRequest, parseUrlTarget } from "#rules/url-edit.ts";
import type { UrlTarget } from "#rules/url-edit.ts";

const PLACES: readonly (readonly [string, UrlTarget])[] = [
  ["http://A.test/x?y=%2f&z#f", { scheme: "http", host: "a.test", port: 80, path: "/x?y=%2f&z" }],
  ["https://a.test", { scheme: "https", host: "a.test", port: 443, path: "" }],
  ["https://a.test?q", { scheme: "https", host: "a.test", port: 443, path: "/?q" }],
  ["https://a.test:80/", { scheme: "https", host: "a.test", port: 80, path: "/" }],
  ["HTTP://[::1]:8080/a/../b//c", { scheme: "http", host: "::1", port: 8080, path: "/a/../b//c" }],
  ["wss://a.test/s", { scheme: "https", host: "a.test", port: 443, path: "/s" }],
  ["http://bücher.test/ü x\t", { scheme: "http", host: "xn--bcher-kva.test", port: 80, path: "/%C3%BC%20x%09" }],
];
for (const [url, target] of PLACES) {
  test(`${url} is parsed with its path unchanged`, () => assert.deepEqual(parseUrlTarget(url), target));
}

test("invalid target URLs are rejected with a reason", () => {
  for (const url of [
    "",
    "/path",
    "a.test/x",
    "ftp://a.test/",
    "http://",
    "http:///x",
    "http://u:p@a.test/",
    "http://a.test:99999/",
    "http://a b/",
    "http://a\\b/",
    "javascript:alert(1)",
    "https://[::1",
  ]) {
    assert.equal(typeof parseUrlTarget(url), "string", url);
  }
});

const MAPPINGS: readonly (readonly [target: string, request: string, result: string])[] = [
  ["http://b.test", "/p/q?x=1", "/p/q?x=1"],
  ["http://b.test/", "/p?x=1", "/p?x=1"],
  ["http://b.test/base/", "/p?x=1", "/base/p?x=1"],
  ["http://b.test/base", "/p?x=1", "/base?x=1"],
  ["http://b.test/base?y=2", "/p?x=1", "/base?y=2"],
  ["http://b.test/base/?y=2", "/p?x=1", "/base/p?y=2"],
  ["http://b.test/base?", "/p?x=1", "/base"],
  ["http://b.test/base/", "/p", "/base/p"],
  ["http://b.test/base/", "*", "/base/*"],
];
for (const [target, request, result] of MAPPINGS) {
  test(`${request} mapped to ${target} is ${result}`, () => {
    const parsed = parseUrlTarget(target);
    assert.ok(typeof parsed !== "string");
    assert.equal(mappedTarget(parsed, request).path, result);
  });
}

const SET: readonly (readonly [path: string, name: string, value: string, result: string])[] = [
  ["/p", "a", "1", "/p?a=1"],
  ["/p?", "a", "1", "/p?a=1"],
  ["/p?b=2", "a", "1", "/p?b=2&a=1"],
  ["/p?a=0&b=%20+&&c", "a", "x y&z", "/p?a=x%20y%26z&b=%20+&&c"],
  ["/p?b&a=0&a=2&c", "a", "1", "/p?b&a=1&c"],
  ["/p?%61=0", "a", "1", "/p?a=1"],
  ["/p?a=%31", "a", "1", "/p?a=%31"],
  ["/p?a", "a", "1", "/p?a=1"],
  ["/p?ab=1", "a", "1", "/p?ab=1&a=1"],
  ["/p?b&", "a", "1", "/p?b&a=1"],
  ["/p?x=a=1", "a", "2", "/p?x=a=1&a=2"],
  ["/p?a=1?b", "ü", "\ud800", "/p?a=1?b&%C3%BC=%EF%BF%BD"],
];
for (const [path, name, value, result] of SET) {
  test(`setting ${name} in ${path} gives ${result}`, () => assert.equal(withQueryParameter(path, name, value), result));
}

const REMOVED: readonly (readonly [path: string, name: string, result: string])[] = [
  ["/p?a=1", "a", "/p"],
  ["/p?a=1&b=%2f+", "a", "/p?b=%2f+"],
  ["/p?b&a=1", "a", "/p?b"],
  ["/p?b&a&a=2&&c", "a", "/p?b&&c"],
  ["/p?b", "a", "/p?b"],
  ["/p", "a", "/p"],
  ["/p?", "a", "/p?"],
  ["/p?a+b=1&c", "a b", "/p?c"],
];
for (const [path, name, result] of REMOVED) {
  test(`removing ${name} from ${path} gives ${result}`, () => assert.equal(withoutQueryParameter(path, name), result));
}

test("appending keeps existing values", () => {
  assert.equal(withQueryParameter("/p?a=1", "a", "2", true), "/p?a=1&a=2");
});

const piece = fc.stringMatching(/^[a-c%+=0-9]{0,6}$/);

test("a set parameter occurs once, a removed one never, and other parameters stay byte for byte", () => {
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 6 }),
      fc.constantFrom("a", "b=", "c d"),
      fc.string(),
      (pieces, name, value) => {
        const path = `/p?${pieces.join("&")}`;
        const others = (text: string): string[] =>
          (text.split("?").slice(1).join("?").split("&") ?? []).filter(
            (own) => own !== "" && parseQuery(`?${own}`)[0]?.name !== name,
          );
        const set = withQueryParameter(path, name, value);
        const found = parseQuery(set).filter((own) => own.name === name);
        assert.deepEqual(
          found.map((own) => own.value),
          [value.toWellFormed()],
        );
        assert.deepEqual(others(set), others(path));
        if (parseQuery(path).every((own) => own.name !== name)) assert.ok(set.startsWith(path), set);
        const gone = withoutQueryParameter(path, name);
        assert.equal(
          parseQuery(gone).some((own) => own.name === name),
          false,
        );
      },
    ),
    { numRuns: 500 },
  );
});

test("a mapped request changes its scheme, and a WebSocket stays one", () => {
  const table: readonly (readonly [Scheme, string, Scheme, boolean])[] = [
    ["http", "https://a.test/p", "https", true],
    ["https", "https://a.test/p", "https", false],
    ["https", "wss://a.test/p", "https", false],
    ["ws", "http://a.test/p", "ws", true],
    ["ws", "https://a.test/p", "wss", true],
    ["wss", "wss://a.test/p", "wss", false],
    ["wss", "http://a.test:443/p", "ws", true],
  ];
  for (const [scheme, url, expected, isMoved] of table) {
    const request = { scheme, host: "a.test", port: 443, path: "/p" } as RequestMessage;
    const target = parseUrlTarget(url);
    assert.ok(typeof target !== "string");
    assert.equal(changesUrl(request, target), isMoved, `${scheme} ${url}`);
    moveRequest(request, target);
    assert.deepEqual([request.scheme, changesUrl(request, target)], [expected, false], `${scheme} ${url}`);
  }
});
