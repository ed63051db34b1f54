import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { backoffMs, nextStep, retryAfterMs, type AttemptResult } from "./webhooks.slice.ts";

const rule = { maxAttempts: 5, backoffBaseMs: 100, backoffCapMs: 1000 };

test("delivery rule 2: waits double from the base up to the cap", () => {
  const waits = [1, 2, 3, 4, 5, 6].map((attempt) => backoffMs(attempt, rule));
  assert.deepEqual(waits, [100, 200, 400, 800, 1000, 1000]);
  assert.equal(backoffMs(10, { maxAttempts: 10, backoffBaseMs: 0, backoffCapMs: 0 }), 0);
});

const values: [value: string | undefined, waitMs: number | undefined][] = [
  ["0", 0],
  ["1", 1000],
  ["007", 7000],
  [undefined, undefined],
  ["", undefined],
  [" 1", undefined],
  ["-1", undefined],
  ["1.0", undefined],
  ["0x10", undefined],
  ["١", undefined],
  ["Fri, 31 Dec 2027 23:59:59 GMT", undefined],
];
for (const [value, waitMs] of values) {
  test(`delivery rule 3: Retry-After ${value ?? "(absent)"} means ${waitMs ?? "the computed wait"}`, () => {
    assert.equal(retryAfterMs(value), waitMs);
  });
}

test("delivery rule 4: only 429, 502, 503, 504 and missing responses are retried, and only 2xx is delivered", () => {
  for (let status = 200; status < 600; status += 1) {
    const { step } = nextStep({ kind: "response", status, retryAfter: undefined }, 1, rule, 10_000);
    const expected = status < 300 ? "delivered" : [429, 502, 503, 504].includes(status) ? "retry" : "failed";
    assert.equal(step, expected, String(status));
  }
  assert.equal(nextStep({ kind: "no-response", isFinal: false }, 1, rule, 10_000).step, "retry");
});

test("egress rule 3: what the egress filter refused is not tried again", () => {
  assert.deepEqual(nextStep({ kind: "no-response", isFinal: true }, 1, rule, 10_000), {
    step: "failed",
    reason: "not_allowed",
  });
});

const results: fc.Arbitrary<AttemptResult> = fc.oneof(
  fc.constant({ kind: "no-response", isFinal: false } as const),
  fc.record({
    kind: fc.constant("response" as const),
    status: fc.constantFrom(200, 404, 429, 500, 502, 503, 504),
    retryAfter: fc.option(fc.oneof(fc.nat(9).map(String), fc.constant("soon")), { nil: undefined }),
  }),
);

test("delivery rules 2 and 5: whatever the responses, no delivery exceeds its attempts or time", () => {
  fc.assert(
    fc.property(
      fc.array(results, { minLength: 12, maxLength: 12 }),
      fc.integer({ min: 1, max: 10 }),
      fc.integer({ min: 0, max: 5000 }),
      fc.integer({ min: 1, max: 60_000 }),
      (responses, maxAttempts, backoffBaseMs, timeoutMs) => {
        const bounds = { maxAttempts, backoffBaseMs, backoffCapMs: 2 * backoffBaseMs };
        let waitedMs = 0;
        let attempt = 0;
        for (const result of responses) {
          attempt += 1;
          const next = nextStep(result, attempt, bounds, timeoutMs - waitedMs);
          if (next.step !== "retry") break;
          waitedMs += next.waitMs;
        }
        assert.ok(attempt <= maxAttempts);
        assert.ok(waitedMs < timeoutMs);
      },
    ),
    { numRuns: 2000 },
  );
});
