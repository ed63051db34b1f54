import assert from "node:assert/strict";
import { test } from "node:test";
import type { Retries } from "@headworks/gateway-contract";
import { CHUNKED, lengthFraming, NO_BODY, type Framing } from "@headworks/http1";
import { backoffMs, retryRules } from "./proxied-request.ts";

const attemptsOf = (retries: Retries, method: string, framing: Framing = NO_BODY, upgrade?: string): number =>
  retryRules(retries, { method, framing, upgrade }).attempts;

test("retries: GET, HEAD, OPTIONS, TRACE and PUT; POST if configured; DELETE, PATCH and upgrades never", () => {
  for (const method of ["GET", "HEAD", "OPTIONS", "TRACE", "PUT"]) assert.equal(attemptsOf({ attempts: 2 }, method), 2);
  for (const method of ["POST", "DELETE", "PATCH", "CONNECT", "get"]) {
    assert.equal(attemptsOf({ attempts: 2 }, method), 0, method);
  }
  assert.equal(attemptsOf({ attempts: 2, retry_post: true }, "POST"), 2);
  assert.equal(attemptsOf({ attempts: 2, retry_post: true }, "PATCH"), 0);
  assert.equal(attemptsOf({ attempts: 2 }, "GET", NO_BODY, "websocket"), 0);
});

test("retries: a body is repeated only if it fits buffer_max_bytes, which is 0 by default", () => {
  for (const [maxBytes, framing, attempts] of [
    [undefined, lengthFraming(1), 0],
    [undefined, lengthFraming(0), 1],
    [10, lengthFraming(10), 1],
    [10, lengthFraming(11), 0],
    [10, CHUNKED, 1],
    [0, CHUNKED, 0],
  ] as const) {
    const retries = maxBytes === undefined ? { attempts: 1 } : { attempts: 1, buffer_max_bytes: maxBytes };
    assert.equal(attemptsOf(retries, "PUT", framing), attempts, JSON.stringify([maxBytes, framing]));
  }
});

test("retries: the defaults, and hedging without further attempts", () => {
  const plain = { method: "GET", framing: NO_BODY, upgrade: undefined };
  assert.deepEqual(retryRules({ attempts: 1 }, plain), {
    attempts: 1,
    maxKeptBytes: 0,
    onTransport: true,
    statuses: [502, 503, 504],
    baseMs: 25,
    capMs: 250,
    hedges: 0,
    hedgeAfterMs: 0,
  });
  const { attempts, hedges, hedgeAfterMs } = retryRules({ hedge: { hedge_after_ms: 7 } }, plain);
  assert.deepEqual([attempts, hedges, hedgeAfterMs], [0, 1, 7]);
  assert.deepEqual(retryRules({ attempts: 1, retry_statuses: [] }, plain).statuses, []);
  assert.equal(retryRules(undefined, plain).attempts, 0);
});

test("retries: the pause is random, up to a ceiling that doubles from the base to the cap", () => {
  const rules = retryRules({ attempts: 10 }, { method: "GET", framing: NO_BODY, upgrade: undefined });
  const ceilings = [2, 3, 4, 5, 6, 7].map((next) => backoffMs(rules, next, () => 1));
  assert.deepEqual(ceilings, [25, 50, 100, 200, 250, 250]);
  assert.equal(
    backoffMs(rules, 5, () => 0),
    0,
  );
});
