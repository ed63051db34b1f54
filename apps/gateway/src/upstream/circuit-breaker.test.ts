import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { breakerRules, CircuitBreaker } from "./circuit-breaker.ts";

function rig(block: Parameters<typeof breakerRules>[0] = {}) {
  const seen: string[] = [];
  let nowMs = 1000;
  const breaker = new CircuitBreaker(
    breakerRules(block),
    {
      opened: (detail) => seen.push(`opened ${detail}`),
      halfOpen: () => seen.push("half_open"),
      closed: () => seen.push("closed"),
    },
    () => nowMs,
  );
  const attempt = (ok: boolean | undefined): "passed" | number => {
    const pass = breaker.admit();
    if ("waitMs" in pass) return pass.waitMs;
    breaker.settle(pass.epoch, ok);
    return "passed";
  };
  return { breaker, seen, attempt, wait: (ms: number) => (nowMs += ms) };
}

test("breaker: closed trips on consecutive_failures and emits an event", () => {
  const { breaker, seen, attempt } = rig({ consecutive_failures: 3 });
  attempt(false);
  attempt(false);
  attempt(true);
  attempt(false);
  attempt(false);
  assert.equal(breaker.state, "closed");
  attempt(false);
  assert.deepEqual([breaker.state, seen], ["open", ["opened consecutive_failures"]]);
});

test("breaker: closed trips on error_ratio once there is enough volume in the window", () => {
  const { breaker, seen, attempt, wait } = rig({ consecutive_failures: 1000, error_ratio: 0.5, error_volume: 10 });
  for (let at = 0; at < 4; at++) attempt(false);
  wait(60_000);
  for (let at = 0; at < 9; at++) attempt(at % 2 === 1);
  assert.equal(breaker.state, "closed");
  attempt(false);
  assert.deepEqual(seen, ["opened error_ratio"]);
});

test("breaker: it turns half-open at the first request after open_ms, not before", () => {
  const { breaker, seen, attempt, wait } = rig({ consecutive_failures: 1, open_ms: 5000 });
  attempt(false);
  assert.equal(attempt(true), 5000);
  wait(4999);
  assert.equal(attempt(true), 1);
  wait(60_000);
  assert.equal(breaker.state, "open");
  const pass = breaker.admit();
  assert.equal(breaker.state, "half_open");
  assert.ok("epoch" in pass);
  assert.deepEqual(breaker.admit(), { waitMs: 1000 });
  breaker.settle(pass.epoch, true);
  assert.deepEqual(seen, ["opened consecutive_failures", "half_open", "closed"]);
  assert.equal(attempt(true), "passed");
});

test("breaker: a new open_ms also applies to an open breaker, counted from its opening", () => {
  const { breaker, attempt, wait } = rig({ consecutive_failures: 1, open_ms: 60_000 });
  attempt(false);
  wait(800);
  breaker.adopt(breakerRules({ consecutive_failures: 1, open_ms: 1000 }));
  assert.equal(attempt(true), 200);
  wait(200);
  assert.equal(attempt(true), "passed");
});

test("breaker: a failed probe opens it again", () => {
  const { breaker, seen, attempt, wait } = rig({ consecutive_failures: 1, open_ms: 10 });
  attempt(false);
  wait(10);
  attempt(false);
  assert.equal(breaker.state, "open");
  assert.equal(seen.at(-1), "opened half_open_probe_failed");
});

test("breaker: an abandoned probe frees its slot and has no result", () => {
  const { breaker, attempt, wait } = rig({ consecutive_failures: 1, open_ms: 10 });
  attempt(false);
  wait(10);
  assert.equal(attempt(undefined), "passed");
  assert.equal(breaker.state, "half_open");
  assert.equal(attempt(true), "passed");
  assert.equal(breaker.state, "closed");
});

test("breaker: results of attempts from before a state change are ignored", () => {
  const { breaker, attempt, wait } = rig({ consecutive_failures: 1, open_ms: 10 });
  const old = breaker.admit();
  assert.ok("epoch" in old);
  const { epoch } = old;
  attempt(false);
  wait(10);
  const probe = breaker.admit();
  assert.ok("epoch" in probe);
  breaker.settle(epoch, true);
  assert.equal(breaker.state, "half_open");
});

test("breaker: a trial without a result frees its slot after open_ms, and counts once when it ends", () => {
  for (const [late, next, state, last] of [
    // The late success closes the breaker; the result of the replacement is then outdated.
    [true, false, "closed", "closed"],
    [false, true, "closed", "closed"],
    [false, false, "open", "opened half_open_probe_failed"],
    [undefined, undefined, "half_open", "half_open"],
  ] as const) {
    const { breaker, seen, attempt, wait } = rig({ consecutive_failures: 1, open_ms: 3000 });
    attempt(false);
    wait(3000);
    const hanging = breaker.admit();
    assert.ok("epoch" in hanging);
    assert.deepEqual(breaker.admit(), { waitMs: 1000 }, "it may end at any time");
    wait(2500);
    assert.deepEqual(breaker.admit(), { waitMs: 500 });
    wait(500);
    const another = breaker.admit();
    assert.ok("epoch" in another);
    assert.deepEqual(breaker.admit(), { waitMs: 1000 }, "one at a time");
    breaker.settle(hanging.epoch, late);
    if (late !== true) assert.equal(breaker.state, "half_open");
    breaker.settle(hanging.epoch, late);
    if (late !== true) assert.deepEqual(breaker.admit(), { waitMs: 1000 }, "the slot had been given away");
    breaker.settle(another.epoch, next);
    assert.deepEqual([breaker.state, seen.at(-1)], [state, last]);
  }
});

test("breaker: forced changes emit events only for real changes, and opening again restarts open_ms", () => {
  const { breaker, seen, wait } = rig({ open_ms: 1000 });
  breaker.force("closed");
  breaker.force("open");
  wait(900);
  breaker.force("open");
  assert.equal(breaker.opensAgainInMs, 1000);
  breaker.force("closed");
  assert.deepEqual(seen, ["opened consecutive_failures", "closed"]);
});

test("breaker, random sequences: nothing passes while it is open, concurrent trials are bounded, and it never locks up", () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("admit" as const) }),
    fc.record({ do: fc.constant("settle" as const), ok: fc.constantFrom(true, false, undefined), at: fc.nat(20) }),
    fc.record({ do: fc.constant("wait" as const), ms: fc.nat(50) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: "max" }), fc.integer({ min: 1, max: 3 }), (steps, probes) => {
      const { breaker, wait } = rig({ consecutive_failures: 2, open_ms: 30, half_open_probes: probes });
      const out: { epoch: number; changes: number | undefined; startMs: number }[] = [];
      let nowMs = 0;
      let changes = 0;
      let state = breaker.state;
      for (const each of steps) {
        if (each.do === "wait") nowMs = wait(each.ms);
        else if (each.do === "admit") {
          const before = breaker.opensAgainInMs;
          const pass = breaker.admit();
          if ("epoch" in pass) {
            assert.equal(before, 0, "nothing passes while it is open");
            const isTrial = breaker.state === "half_open";
            if (breaker.state !== state) changes += 1;
            out.push({ epoch: pass.epoch, changes: isTrial ? changes : undefined, startMs: nowMs });
          }
        } else {
          const [settled] = out.splice(each.at % Math.max(1, out.length), 1);
          if (settled) breaker.settle(settled.epoch, each.ok);
        }
        if (breaker.state !== state && each.do === "settle") changes += 1;
        state = breaker.state;
        if (state !== "half_open") continue;
        const trials = out.filter((pass) => pass.changes === changes && nowMs - pass.startMs < 30);
        assert.ok(trials.length <= probes);
      }
      wait(31);
      const pass = breaker.admit();
      assert.ok("epoch" in pass, "after open_ms one attempt passes");
    }),
  );
});
