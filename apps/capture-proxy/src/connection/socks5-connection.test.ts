import assert from "node:assert/strict";
import { test } from "node:test";
import type { FailureCode, FailureStage } from "#exchange/failure.ts";
import { entryStatusOf, entryText, replyOf } from "./socks5-connection.ts";

const cases: readonly [FailureCode, FailureStage, unknown, number, number][] = [
  ["DNS_NOT_FOUND", "resolve", undefined, 4, 502],
  ["DNS_FAILED", "resolve", undefined, 4, 502],
  ["UPSTREAM_REFUSED", "connect", undefined, 5, 502],
  ["UPSTREAM_TIMEOUT", "connect", undefined, 6, 504],
  ["UPSTREAM_TIMEOUT", "resolve", undefined, 4, 504],
  ["UPSTREAM_UNREACHABLE", "connect", { code: "ENETUNREACH" }, 3, 502],
  ["UPSTREAM_UNREACHABLE", "connect", { code: "EHOSTUNREACH" }, 4, 502],
  ["UPSTREAM_UNREACHABLE", "connect", { errors: [{ code: "ENETUNREACH" }, { code: "ECONNREFUSED" }] }, 3, 502],
  ["UPSTREAM_UNREACHABLE", "connect", { code: "EADDRNOTAVAIL" }, 1, 502],
  ["UPSTREAM_UNREACHABLE", "connect", undefined, 1, 502],
  ["UPSTREAM_RESET", "connect", undefined, 1, 502],
  ["BLOCKED", "policy", undefined, 2, 502],
  ["LOOP", "policy", undefined, 2, 502],
  ["NOT_ALLOWED", "policy", undefined, 2, 502],
  ["UPSTREAM_PROXY_DENIED", "proxy-handshake", undefined, 2, 502],
  ["UPSTREAM_PROXY_CONNECT", "proxy-handshake", undefined, 4, 502],
  ["UPSTREAM_PROXY_TIMEOUT", "proxy-handshake", undefined, 6, 504],
  ["UPSTREAM_PROXY_AUTH", "proxy-handshake", undefined, 1, 502],
  ["INTERNAL", "policy", undefined, 1, 502],
];

for (const [code, stage, cause, reply, status] of cases) {
  test(`${code} at ${stage} (${JSON.stringify(cause)}) is reply ${reply} and status ${status}`, () => {
    const failure = { code, stage, side: "upstream" as const, message: "x", cause };
    assert.equal(replyOf(failure), reply);
    assert.equal(entryStatusOf(failure), status);
  });
}

test("the body of a failed entry has the reply code, its meaning and the error", () => {
  const failure = { code: "UPSTREAM_REFUSED", stage: "connect", side: "upstream", message: "a:1 refused" } as const;
  assert.equal(entryText(5, failure), "SOCKS5 reply 5 (connection refused)\nUPSTREAM_REFUSED: a:1 refused\n");
});
