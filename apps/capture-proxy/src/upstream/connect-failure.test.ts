import assert from "node:assert/strict";
import { test } from "node:test";
import { brokenConnection, connectFailure, tlsFailure } from "./connect-failure.ts";
import { OwnListeners } from "./loop-detector.ts";

const error = (code: string): NodeJS.ErrnoException => Object.assign(new Error(code), { code });

const CONNECTS: readonly [string, string, string][] = [
  ["ENOTFOUND", "resolve", "DNS_NOT_FOUND"],
  ["EAI_AGAIN", "resolve", "DNS_FAILED"],
  ["ECONNREFUSED", "connect", "UPSTREAM_REFUSED"],
  ["ETIMEDOUT", "connect", "UPSTREAM_TIMEOUT"],
  ["ECONNRESET", "connect", "UPSTREAM_RESET"],
  ["EHOSTUNREACH", "connect", "UPSTREAM_UNREACHABLE"],
];
for (const [code, stage, failureCode] of CONNECTS) {
  test(`${code} while connecting is ${failureCode} at stage ${stage}`, () => {
    const failure = connectFailure(error(code), "h.example", 80);
    assert.deepEqual([failure.stage, failure.code, failure.side], [stage, failureCode, "upstream"]);
    assert.match(failure.message, /h\.example/);
  });
}

test("an IPv6 address is in brackets before its port", () => {
  assert.equal(connectFailure(error("ECONNREFUSED"), "::1", 80).message, "[::1]:80 refused the connection");
});

test("if all addresses of a name refuse, the first error is reported", () => {
  const both = Object.assign(new Error("all"), {
    code: "ECONNREFUSED",
    errors: [error("ECONNREFUSED"), error("ENETUNREACH")],
  });
  assert.equal(connectFailure(both, "h", 1).code, "UPSTREAM_REFUSED");
});

test("a host that ends TLS after requesting a client certificate is reported as requiring one", () => {
  const alert = error("ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED");
  for (const reported of [tlsFailure(alert, "h", "none"), brokenConnection(alert, "h", "send", "none")]) {
    assert.equal(reported.code, "UPSTREAM_CLIENT_CERTIFICATE");
    assert.match(reported.message, /^h requires a client certificate, but none is configured for it/);
  }
  assert.match(tlsFailure(alert, "h", "sent").message, /rejected the configured client certificate/);
  assert.equal(tlsFailure(alert, "h", undefined).code, "UPSTREAM_TLS");
  assert.equal(tlsFailure(error("ECONNRESET"), "h", "none").code, "UPSTREAM_RESET");
});

test("the failure of a host with outdated TLS names the setting", () => {
  for (const code of [
    "ERR_SSL_UNSUPPORTED_PROTOCOL",
    "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
    "ERR_SSL_DH_KEY_TOO_SMALL",
  ]) {
    assert.match(tlsFailure(error(code), "h", undefined).message, /tls_min_version/);
  }
  assert.doesNotMatch(tlsFailure(error("ERR_SSL_WRONG_VERSION_NUMBER"), "h", undefined).message, /tls_min_version/);
});

test("certificate problems are distinguished from other TLS problems", () => {
  assert.equal(tlsFailure(error("CERT_HAS_EXPIRED"), "h", undefined).code, "UPSTREAM_CERTIFICATE");
  assert.match(tlsFailure(error("CERT_HAS_EXPIRED"), "h", undefined).message, /expired/);
  assert.equal(tlsFailure(error("ERR_SSL_WRONG_VERSION_NUMBER"), "h", undefined).code, "UPSTREAM_TLS");
  assert.equal(tlsFailure(error("ECONNRESET"), "h", undefined).code, "UPSTREAM_RESET");
  assert.equal(brokenConnection(error("EPIPE"), "h:1", "send", undefined).code, "UPSTREAM_RESET");
  assert.equal(brokenConnection(error("EIO"), "h:1", "receive", undefined).code, "UPSTREAM_CLOSED");
});

test("own listeners are recognized by the connected address", () => {
  const own = new OwnListeners();
  own.add("127.0.0.1", 8888);
  own.add("0.0.0.0", 3001);
  assert.ok(own.includes("127.0.0.1", 8888, "127.0.0.1"));
  assert.ok(own.includes("::ffff:127.0.0.1", 8888, "::ffff:127.0.0.1"));
  assert.ok(!own.includes("127.0.0.2", 8888, "127.0.0.1"));
  assert.ok(!own.includes("127.0.0.1", 8889, "127.0.0.1"));
  assert.ok(own.includes("127.9.9.9", 3001, "127.0.0.1"));
  assert.ok(own.includes("192.0.2.7", 3001, "192.0.2.7"));
  assert.ok(!own.includes("192.0.2.8", 3001, "192.0.2.7"));
});
