import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { chargeWindow } from "./rate-rule.ts";

/** A bucket of tokens in whole numbers: a token is `periodMs` parts, and `limit` parts come in each millisecond. */
class TokenBucket {
  readonly #maxParts: number;
  readonly #periodMs: number;
  readonly #limit: number;
  #parts: number;
  #atMs = 0;

  constructor(limit: number, periodMs: number, burst: number) {
    this.#maxParts = burst * periodMs;
    this.#parts = this.#maxParts;
    this.#periodMs = periodMs;
    this.#limit = limit;
  }

  take(nowMs: number): { readonly passes: boolean; readonly tokens: number } {
    this.#parts = Math.min(this.#maxParts, this.#parts + (nowMs - this.#atMs) * this.#limit);
    this.#atMs = nowMs;
    const passes = this.#parts >= this.#periodMs;
    if (passes) this.#parts -= this.#periodMs;
    return { passes, tokens: Math.floor(this.#parts / this.#periodMs) };
  }
}

test("GCRA: bucket of burst, steady refill: passes and keeps exactly what a bucket of tokens does", () => {
  const arrivals = fc.array(fc.oneof(fc.constant(0), fc.nat(50), fc.nat(5000)), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(
      fc.constantFrom(1000, 60_000, 3_600_000),
      fc.integer({ min: 1, max: 5000 }),
      fc.integer({ min: 1, max: 60 }),
      arrivals,
      (periodMs, limit, burst, gaps) => {
        const bucket = new TokenBucket(limit, periodMs, burst);
        const window = { burst, intervalMs: periodMs / limit };
        let nowMs = 0;
        let fullAtMs = 0;
        for (const gap of gaps) {
          nowMs += gap;
          const state = chargeWindow(window, fullAtMs, nowMs);
          const expected = bucket.take(nowMs);
          assert.deepEqual([state.waitMs === 0, state.remaining], [expected.passes, expected.tokens], `at ${nowMs}`);
          fullAtMs = state.fullAtMs;
        }
      },
    ),
    { numRuns: 300 },
  );
});

test("GCRA: the wait that a refusal names is enough, and nothing shorter is", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1000 }),
      fc.integer({ min: 1, max: 20 }),
      fc.nat(10_000),
      (limit, burst, now) => {
        const window = { burst, intervalMs: 60_000 / limit };
        let fullAtMs = 0;
        let state = chargeWindow(window, fullAtMs, now);
        for (let taken = 0; taken < burst; taken += 1) {
          assert.equal(state.waitMs, 0);
          fullAtMs = state.fullAtMs;
          state = chargeWindow(window, fullAtMs, now);
        }
        assert.ok(state.waitMs > 0);
        assert.equal(state.fullAtMs, fullAtMs, "a refusal charges nothing");
        assert.equal(chargeWindow(window, fullAtMs, now + state.waitMs).waitMs, 0);
        assert.ok(chargeWindow(window, fullAtMs, now + state.waitMs * 0.99).waitMs > 0);
      },
    ),
  );
});
