import assert from "node:assert/strict";
import { test } from "node:test";
import type { Failure } from "@headworks/capture-contract";
import { failureAdvice, tunnelReason } from "./failure-advice.ts";

const failure = (change: Partial<Failure>): Failure => ({
  stage: "connect",
  side: "upstream",
  code: "UPSTREAM_REFUSED",
  message: "Connection refused by 127.0.0.1:9",
  ...change,
});

test("a rejected certificate links to the setup", () => {
  const advice = failureAdvice(failure({ stage: "tls", side: "client", code: "CLIENT_TLS_REJECTED" }));
  assert.equal(advice.link?.to, "/connect");
  assert.match(advice.explanation, /certificate/u);
});

test("the same stage has different explanations per side", () => {
  const advice = failureAdvice(failure({ stage: "tls" }));
  assert.equal(advice.link?.to, "/settings#origin-tls");
  assert.match(advice.explanation, /server's certificate/u);
});

test("a blocked host links to the block list; other rules have their own explanation", () => {
  assert.equal(failureAdvice(failure({ stage: "policy", side: "internal", code: "BLOCKED" })).link?.to, "/blocklist");
  assert.match(
    failureAdvice(failure({ stage: "policy", side: "internal", code: "LOOP", message: "A loop" })).explanation,
    /A loop/u,
  );
});

test("failures of the upstream proxy are distinguished from those of the server", () => {
  for (const code of ["AUTH", "UNREACHABLE", "TIMEOUT", "DENIED", "CONNECT", "CLOSED", "TLS", "PROTOCOL"]) {
    const advice = failureAdvice(failure({ stage: "proxy-handshake", code: `UPSTREAM_PROXY_${code}` }));
    assert.equal(advice.title, "The upstream proxy failed");
    assert.match(advice.explanation, /proxy/u);
    assert.equal(advice.link?.to, "/settings#upstream-proxy");
  }
  assert.match(failureAdvice(failure({ code: "UPSTREAM_PROXY_CANNOT_TUNNEL" })).advice ?? "", /socks5/u);
});

test("every stage on every side has a title and an explanation", () => {
  for (const stage of [
    "resolve",
    "connect",
    "proxy-handshake",
    "tls",
    "send",
    "receive",
    "client-read",
    "client-write",
    "policy",
  ] as const) {
    for (const side of ["client", "upstream", "internal"] as const) {
      const advice = failureAdvice(failure({ stage, side }));
      assert.ok(advice.title.length > 10 && advice.explanation.length > 10, `${side} ${stage}`);
    }
  }
});

test("only tunnels have a reason for not being decrypted", () => {
  const over = (http_version: string) => ({ request: { http_version } });
  assert.equal(tunnelReason({ is_passthrough: false, ...over("HTTP/1.1") }), null);
  assert.match(tunnelReason({ is_passthrough: true, ...over("HTTP/1.1") }) ?? "", /without being decoded/u);
  assert.match(tunnelReason({ is_passthrough: true, ...over("SOCKS5") }) ?? "", /through SOCKS5/u);
});
