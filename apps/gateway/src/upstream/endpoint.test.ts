import assert from "node:assert/strict";
import { test } from "node:test";
import type { PassiveHealth } from "@headworks/gateway-contract";
import { Endpoint, endpointKey, healthRules } from "./endpoint.ts";

function rig(block: PassiveHealth = {}, mayEject = true) {
  const seen: string[] = [];
  const time = { nowMs: 1000 };
  const endpoint = new Endpoint("10.0.0.1", 80, {
    nowMs: () => time.nowMs,
    ejected: ({ key }) => seen.push(`ejected ${key}`),
    recovered: ({ key }) => seen.push(`recovered ${key}`),
    mayEject: () => mayEject,
  });
  endpoint.adopt(healthRules(block));
  const attempt = (status: number): void => {
    endpoint.picked(time.nowMs);
    const epoch = endpoint.dispatched();
    endpoint.answered(epoch, status, 1);
    if (status < 500) endpoint.completed(epoch);
  };
  return { endpoint, seen, attempt, time, wait: (ms: number) => (time.nowMs += ms) };
}

const isIn = ({ endpoint, time }: ReturnType<typeof rig>): boolean => endpoint.isAvailable(time.nowMs);

test("health: 500 and above and lost attempts are failures, everything below is a success, including 408 and 429", () => {
  for (const status of [100, 200, 301, 404, 408, 429, 499]) {
    const { endpoint, attempt } = rig({ consecutive_failures: 2 });
    for (const each of [500, status, 503, status]) attempt(each);
    assert.equal(endpoint.health, "healthy", String(status));
  }
  const { endpoint, seen } = rig({ consecutive_failures: 2 });
  endpoint.failed(endpoint.dispatched());
  endpoint.answered(endpoint.dispatched(), 500, 1);
  assert.deepEqual([endpoint.health, seen], ["ejected", ["ejected 10.0.0.1:80"]]);
});

test("health: a share of failures in the window ejects once there is enough volume, not before", () => {
  const { endpoint, attempt, wait } = rig({ failure_ratio: 0.5, failure_min_volume: 10, consecutive_failures: 1000 });
  for (let at = 0; at < 4; at++) attempt(500);
  wait(60_000);
  for (let at = 0; at < 9; at++) attempt(at % 2 === 1 ? 200 : 500);
  assert.equal(endpoint.health, "healthy", "nine observations are too few, and the old window is discarded");
  attempt(200);
  assert.equal(endpoint.health, "healthy", "the share is evaluated on failures only");
  attempt(500);
  assert.equal(endpoint.health, "ejected");
});

test("health: after eject_ms the next picks are probes: a success resets the state, a failure ejects for a full period", () => {
  const state = rig({ consecutive_failures: 1, eject_ms: 1000, half_open_probes: 2 });
  const { endpoint, seen, attempt, wait, time } = state;
  attempt(500);
  wait(999);
  assert.equal(isIn(state), false);
  wait(1);
  assert.equal(isIn(state), true);
  endpoint.picked(time.nowMs);
  const probes = [endpoint.dispatched(), endpoint.dispatched()] as const;
  assert.deepEqual([endpoint.health, isIn(state)], ["half_open", false], "no more than half_open_probes");
  endpoint.answered(probes[0], 503, 1);
  assert.deepEqual([endpoint.health, seen.length], ["ejected", 1], "still ejected: no second event");
  endpoint.answered(probes[1], 200, 1);
  assert.equal(endpoint.health, "ejected", "an earlier probe is ignored after the ejection");
  wait(999);
  assert.equal(isIn(state), false);
  wait(1);
  attempt(200);
  assert.deepEqual(seen, ["ejected 10.0.0.1:80", "recovered 10.0.0.1:80"]);
});

test("health: results of attempts from before an ejection are ignored", () => {
  const state = rig({ consecutive_failures: 1, eject_ms: 1000 });
  const { endpoint, attempt, wait, time } = state;
  const slow = endpoint.dispatched();
  const slowest = endpoint.dispatched();
  attempt(500);
  wait(1000);
  endpoint.picked(time.nowMs);
  const probe = endpoint.dispatched();
  endpoint.answered(slow, 200, 2000);
  assert.equal(endpoint.health, "half_open");
  endpoint.failed(slowest);
  assert.deepEqual([endpoint.health, isIn(state)], ["half_open", false], "the slot of the probe is still taken");
  endpoint.answered(probe, 200, 1);
  assert.deepEqual([endpoint.health, endpoint.inFlight], ["healthy", 0]);
});

test("health: an abandoned probe frees its slot and has no result", () => {
  const state = rig({ consecutive_failures: 1, eject_ms: 10 });
  const { endpoint, attempt, wait, time } = state;
  attempt(500);
  wait(10);
  endpoint.picked(time.nowMs);
  endpoint.abandoned(endpoint.dispatched());
  assert.deepEqual([endpoint.health, isIn(state), endpoint.inFlight], ["half_open", true, 0]);
});

test("health: a probe without a result frees its slot after eject_ms, and counts once when it ends", () => {
  for (const [late, next, health, told] of [
    [200, 500, "healthy", "recovered"],
    [500, 200, "healthy", "recovered"],
    [500, 500, "ejected", "ejected"],
  ] as const) {
    const state = rig({ consecutive_failures: 1, eject_ms: 1000 });
    const { endpoint, seen, attempt, wait, time } = state;
    attempt(500);
    wait(1000);
    endpoint.picked(time.nowMs);
    const hanging = endpoint.dispatched();
    wait(999);
    assert.equal(isIn(state), false);
    wait(1);
    assert.equal(isIn(state), true);
    const another = endpoint.dispatched();
    assert.equal(isIn(state), false, "one at a time");
    endpoint.answered(hanging, late, 1);
    if (late !== 200) assert.deepEqual([endpoint.health, isIn(state)], ["half_open", false]);
    if (late !== 200) endpoint.answered(another, next, 1);
    assert.equal(endpoint.health, health);
    assert.equal(seen.at(-1), `${told} 10.0.0.1:80`);
  }
});

test("health: an incomplete body counts against the endpoint in rotation", () => {
  const { endpoint, attempt } = rig({ consecutive_failures: 2 });
  attempt(500);
  endpoint.bodyBroke();
  assert.equal(endpoint.health, "ejected");
  endpoint.bodyBroke();
  assert.equal(endpoint.health, "ejected");
});

test("health: incomplete bodies in a row eject like missing responses", () => {
  const { endpoint } = rig({ consecutive_failures: 3 });
  const breakOff = (): void => {
    endpoint.answered(endpoint.dispatched(), 200, 1);
    endpoint.bodyBroke();
  };
  for (const _ of [1, 2]) breakOff();
  const whole = endpoint.dispatched();
  endpoint.answered(whole, 200, 1);
  endpoint.completed(whole);
  for (const _ of [1, 2]) breakOff();
  assert.equal(endpoint.health, "healthy", "a complete response ended the streak");
  breakOff();
  assert.equal(endpoint.health, "ejected");
});

test("health: an incomplete body turns its response into a failure of the window, and is not counted twice", () => {
  const { endpoint, attempt } = rig({ failure_ratio: 0.6, failure_min_volume: 5, consecutive_failures: 1000 });
  for (const _ of [1, 2, 3, 4]) {
    endpoint.answered(endpoint.dispatched(), 200, 1);
    endpoint.bodyBroke();
  }
  assert.equal(endpoint.health, "healthy", "four observations are too few");
  attempt(500);
  assert.equal(endpoint.health, "ejected");
});

test("health: every further ejection lasts eject_backoff times as long, an hour at most, until it recovers", () => {
  const { endpoint, attempt, wait, time } = rig({ consecutive_failures: 1, eject_ms: 1000, eject_backoff: 10 });
  const lastsMs = (): number => {
    attempt(500);
    for (const ms of [1000, 9000, 90_000, 900_000, 2_600_000]) {
      wait(ms);
      if (endpoint.isAvailable(time.nowMs)) return ms;
    }
    return Number.POSITIVE_INFINITY;
  };
  assert.deepEqual([lastsMs(), lastsMs(), lastsMs(), lastsMs(), lastsMs()], [1000, 9000, 90_000, 900_000, 2_600_000]);
  attempt(200);
  assert.equal(lastsMs(), 1000);
});

test("health: an endpoint that may not be ejected stays in rotation, and is ejected as soon as allowed", () => {
  const { endpoint, attempt, seen } = rig({ consecutive_failures: 1 }, false);
  attempt(500);
  assert.deepEqual([endpoint.health, seen], ["healthy", []]);
});

test("health: without rules nothing ejects, and removing the rules ends ejections", () => {
  const { endpoint, attempt, seen } = rig({ consecutive_failures: 1 });
  attempt(500);
  endpoint.adopt(undefined);
  assert.deepEqual([endpoint.health, seen.at(-1)], ["healthy", "recovered 10.0.0.1:80"]);
  for (let at = 0; at < 100; at++) attempt(500);
  assert.equal(endpoint.health, "healthy");
});

test("health: an endpoint ejected by an operator without rules recovers with its first good response", () => {
  const state = rig();
  const { endpoint, attempt, wait } = state;
  endpoint.adopt(undefined);
  endpoint.force("ejected");
  wait(30_000);
  attempt(500);
  assert.equal(endpoint.health, "ejected");
  wait(30_000);
  attempt(200);
  assert.deepEqual([endpoint.health, isIn(state)], ["healthy", true]);
});

test("active health shares the streak with responses, does not count in the window, and can end an ejection early", () => {
  const state = rig({ consecutive_failures: 5, failure_min_volume: 1, failure_ratio: 1, eject_ms: 60_000 });
  const { endpoint, attempt, seen, time } = state;
  const thresholds = { success: 2, failure: 3 };
  attempt(200);
  attempt(500);
  endpoint.probed(false, thresholds);
  assert.equal(endpoint.health, "healthy");
  endpoint.probed(false, thresholds);
  assert.equal(endpoint.health, "ejected", "one response and two probes in a row");
  endpoint.probed(true, thresholds);
  endpoint.probed(false, thresholds);
  endpoint.probed(true, thresholds);
  assert.equal(endpoint.health, "ejected", "successes must be consecutive");
  endpoint.probed(true, thresholds);
  assert.deepEqual([endpoint.health, time.nowMs, seen.length], ["healthy", 1000, 2]);
  endpoint.probed(false, thresholds);
  endpoint.probed(false, thresholds);
  endpoint.probed(true, thresholds);
  endpoint.probed(false, thresholds);
  assert.equal(endpoint.health, "healthy", "a good probe ends the streak");
});

test("active health: failures during an ejection do not prolong it", () => {
  const state = rig({ consecutive_failures: 1, eject_ms: 1000 });
  state.attempt(500);
  for (let at = 0; at < 10; at++) {
    state.wait(100);
    state.endpoint.probed(false, { success: 1, failure: 1 });
  }
  assert.equal(isIn(state), true);
});

test("a draining endpoint is not picked; an operator's change stays until the document changes", () => {
  const state = rig();
  state.endpoint.isDraining = true;
  state.endpoint.adoptDrain(false);
  assert.equal(isIn(state), false);
  state.endpoint.adoptDrain(true);
  state.endpoint.adoptDrain(false);
  assert.equal(isIn(state), true);
});

test("peak_ewma: a peak counts at once, fades while nothing is sent, and what is in flight multiplies it", () => {
  const { endpoint, time } = rig();
  const first = endpoint.costAt(time.nowMs);
  endpoint.answered(endpoint.dispatched(), 200, 4000);
  const peak = endpoint.costAt(time.nowMs);
  assert.deepEqual([first, peak], [250, 4000]);
  endpoint.dispatched();
  assert.equal(endpoint.costAt(time.nowMs), 2 * peak);
  assert.ok(endpoint.costAt(time.nowMs + 60_000) < first);
});

test("keys of IPv6 endpoints have brackets", () => {
  assert.deepEqual([endpointKey("::1", 80), endpointKey("a.test", 443)], ["[::1]:80", "a.test:443"]);
});

test("health: a forced ejection survives reloads, with and without rules", () => {
  const without = new Endpoint("10.0.0.1", 80, {
    nowMs: () => 1000,
    ejected: () => undefined,
    recovered: () => undefined,
    mayEject: () => true,
  });
  without.adopt(undefined);
  without.force("ejected");
  without.adopt(undefined);
  assert.equal(without.health, "ejected");
  const { endpoint, attempt } = rig({ consecutive_failures: 1 });
  attempt(500);
  assert.equal(endpoint.health, "ejected");
  endpoint.adopt(undefined);
  assert.equal(endpoint.health, "healthy", "ejections by rules end when the rules are removed");
});
