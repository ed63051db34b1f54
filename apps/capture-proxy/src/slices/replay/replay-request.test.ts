// Also tests target-url.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { anyCharacter } from "@headworks/testkit";
import { ApiError } from "#api/api-error.ts";
import { bodyBytes, parseTarget, requestOf, showRequest } from "./replay-request.ts";

const TARGETS: readonly [string, string, string | [string, string, number, string, string]][] = [
  ["http://a.example", "GET", ["http", "a.example", 80, "/", "a.example"]],
  ["HTTPS://A.Example:8443/p?q#f", "GET", ["https", "a.example", 8443, "/p?q", "a.example:8443"]],
  ["https://a.example:443/", "GET", ["https", "a.example", 443, "/", "a.example"]],
  ["http://[::1]:81/x", "GET", ["http", "::1", 81, "/x", "[::1]:81"]],
  ["http://a?q=1", "GET", ["http", "a", 80, "/?q=1", "a"]],
  ["http://a", "OPTIONS", ["http", "a", 80, "*", "a"]],
  ["http://a/", "OPTIONS", ["http", "a", 80, "/", "a"]],
  ["http://a/ü b/%2f/..//", "GET", ["http", "a", 80, "/%C3%BC%20b/%2f/..//", "a"]],
  ["http://bücher.example/", "GET", ["http", "xn--bcher-kva.example", 80, "/", "xn--bcher-kva.example"]],
  ["ftp://a/", "GET", "must be an absolute http or https URL"],
  ["/path", "GET", "must be an absolute http or https URL"],
  ["http://u:p@a/", "GET", "must not contain credentials: use the Authorization header"],
];
for (const [url, method, expected] of TARGETS) {
  test(`${method} ${url} parses to ${JSON.stringify(expected)}`, () => {
    const target = parseTarget(url, method);
    if (typeof target === "string") return assert.equal(target, expected);
    return assert.deepEqual([target.scheme, target.host, target.port, target.path, target.authority], expected);
  });
}

for (const url of [
  "http://",
  "http:///x",
  "http://a:b/",
  "http://a:0x50/",
  "http://a b/",
  "http://a:99999/",
  "http://[::1/",
]) {
  test(`${url} is rejected`, () => assert.equal(typeof parseTarget(url, "GET"), "string"));
}

test("the path of any URL is valid in a request line", () => {
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter }), (rest) => {
      const target = parseTarget(`http://a/${rest}`, "GET");
      if (typeof target !== "string") assert.match(target.path, /^\/[\x21-\x7e]*$/u);
    }),
  );
});

test("a request survives being shown and parsed again", () => {
  const name = fc.stringMatching(/^[A-Za-z-]{1,8}$/u);
  const value = fc.stringMatching(/^[\x21-\x7e]{0,12}$/u);
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value), { maxLength: 6 }), fc.uint8Array({ maxLength: 30 }), (pairs, bytes) => {
      const body = bytes.length === 0 ? undefined : Buffer.from(bytes);
      const request = { method: "POST", url: "http://a.example/x?y", fields: pairs.flat(), body };
      const { content_type: _type, ...shown } = showRequest(request, body, body?.length ?? 0);
      assert.deepEqual(requestOf(shown), request);
    }),
  );
});

test("a content type becomes a field unless there is one, and text beyond Latin-1 is sent as UTF-8", () => {
  const written = { url: "http://a/", headers: { "X-A": " ü " }, content_type: "text/plain" };
  assert.deepEqual(requestOf(written).fields, ["X-A", "ü", "Content-Type", "text/plain"]);
  const twice = requestOf({ ...written, headers: { "content-type": "a/b", "X-B": "中" } });
  assert.deepEqual(twice.fields, ["content-type", "a/b", "X-B", Buffer.from("中").toString("latin1")]);
});

test("base64 is decoded, and invalid base64 is rejected", () => {
  assert.deepEqual([...(bodyBytes("base64:AP8=", "x") ?? [])], [0, 255]);
  assert.equal(bodyBytes("base64:", "x"), undefined);
  assert.equal(bodyBytes("", "x"), undefined);
  for (const text of ["base64:A", "base64:AP8=x", "base64:A P8"]) {
    assert.throws(() => bodyBytes(text, "x"), ApiError, text);
  }
});
