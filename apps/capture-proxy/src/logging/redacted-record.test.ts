import assert from "node:assert/strict";
import { test } from "node:test";
import { isSecretName, textWithoutSecrets, withoutSecrets } from "./log-record.ts";

test("values are hidden by their names, however these are spelled and however deep they lie", () => {
  for (const name of [
    "authorization",
    "Authorization",
    "proxy-authorization",
    "Cookie",
    "set-cookie",
    "x-api-key",
    "apiKey",
    "api_key",
    "password",
    "socks_auth_password",
    "upstreamAuthPassword",
    "token",
    "access_token",
    "clientSecret",
    "private_key",
  ]) {
    assert.equal(isSecretName(name), true, name);
    assert.deepEqual(withoutSecrets({ a: [{ b: { [name]: "hunter2" } }] }), { a: [{ b: { [name]: "[REDACTED]" } }] });
  }
  for (const name of [
    "path",
    "key",
    "url",
    "tokens_per_second",
    "author",
    "cookies_count",
    "passed",
    "x".repeat(5000),
  ]) {
    assert.equal(isSecretName(name), false, name);
  }
  assert.deepEqual(withoutSecrets({ password: null, token: "" }), { password: null, token: "" });
});

test("secrets in texts are hidden by their shape, and what is around them stays", () => {
  for (const [text, expected] of [
    ["GET https://u:hunter2@a.test/x", "GET https://[REDACTED]@a.test/x"],
    ["socks5://user@proxy:1080", "socks5://[REDACTED]@proxy:1080"],
    ["sent Authorization: Bearer abc.def-123", "sent Authorization: Bearer [REDACTED]"],
    ["basic dTpodW50ZXIy!", "basic [REDACTED]!"],
    ["/a?token=abc&x=1&api_key=k#f", "/a?token=[REDACTED]&x=1&api_key=[REDACTED]#f"],
    ["-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----, then", "[REDACTED], then"],
    ["mail to a@b.test about it", "mail to a@b.test about it"],
    ["https://a.test/x?q=token", "https://a.test/x?q=token"],
  ] as const) {
    assert.equal(textWithoutSecrets(text), expected);
  }
});

test("a long hostile text costs its length and no more", () => {
  for (const text of [
    "://".repeat(300_000),
    "Bearer ".repeat(100_000),
    "-----BEGIN ".repeat(80_000),
    "?token=".repeat(100_000),
  ]) {
    const startMs = performance.now();
    textWithoutSecrets(text);
    assert.ok(performance.now() - startMs < 3000, text.slice(0, 20));
  }
});

test("what lies too deep is left out", () => {
  let deep: unknown = "end";
  for (let at = 0; at < 1000; at += 1) deep = { deep };
  assert.match(JSON.stringify(withoutSecrets(deep)), /…/);
});
