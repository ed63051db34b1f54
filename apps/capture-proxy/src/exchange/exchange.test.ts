// Also tests failure.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { exchangeUrl, newExchangeId, newMoments, type RequestMessage, type Scheme, stageTimings } from "./exchange.ts";
import { failureStatus } from "./failure.ts";
import type { FailureCode } from "./failure.ts";

const URLS: readonly [scheme: Scheme, host: string, port: number, path: string, url: string, method?: string][] = [
  ["http", "a.example", 80, "/x", "http://a.example/x"],
  ["http", "a.example", 8080, "/", "http://a.example:8080/"],
  ["https", "a.example", 443, "/?q", "https://a.example/?q"],
  ["wss", "::1", 443, "/s", "wss://[::1]/s"],
  ["tcp", "a.example", 22, "/", "tcp://a.example:22/", "CONNECT"],
  ["https", "a.example", 443, "/", "https://a.example:443/", "CONNECT"],
  ["https", "::1", 443, "/", "https://[::1]:443/", "CONNECT"],
  ["wss", "a.example", 443, "/chat", "wss://a.example/chat", "CONNECT"],
  ["http", "a.example", 80, "*", "http://a.example/*"],
];
for (const [scheme, host, port, path, url, method = "GET"] of URLS) {
  test(`the URL of a ${method} is written ${url}`, () =>
    assert.equal(exchangeUrl({ method, scheme, host, port, path } as RequestMessage), url));
}

test("ids are UUIDs of version 7 that ascend, also within a millisecond and when the clock steps back", () => {
  const now = Date.now();
  const ids = Array.from({ length: 10_000 }, (_, index) => newExchangeId(index === 5000 ? now - 1000 : now));
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual([...ids].sort(), ids);
  assert.ok(ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id)));
});

test("stages that did not happen are null, the others are milliseconds", () => {
  const moments = {
    ...newMoments(),
    started: 100,
    connectStarted: 110,
    upstreamReady: 130,
    sendStarted: 131,
    sendEnded: 132,
    firstByte: 150,
    ended: 160,
  };
  assert.deepEqual(stageTimings(moments), {
    blocked: 10,
    dns: null,
    connect: 20,
    tls: null,
    send: 1,
    wait: 18,
    receive: 10,
  });
  const reused = { ...newMoments(), started: 100, sendStarted: 101, sendEnded: 101, firstByte: 105, ended: 106 };
  assert.deepEqual(stageTimings(reused), {
    blocked: 1,
    dns: null,
    connect: null,
    tls: null,
    send: 0,
    wait: 4,
    receive: 1,
  });
});

const STATUSES: readonly [FailureCode, number][] = [
  ["UPSTREAM_TIMEOUT", 504],
  ["DNS_NOT_FOUND", 502],
  ["UPSTREAM_CERTIFICATE", 502],
  ["LOOP", 508],
  ["BLOCKED", 403],
  ["SHUTDOWN", 503],
];
for (const [code, status] of STATUSES) {
  test(`${code} has status ${status}`, () =>
    assert.equal(failureStatus({ stage: "connect", side: "upstream", code, message: "" }), status));
}
