import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "@headworks/testkit";
import type { Exchange, TraceStep } from "#exchange/exchange.ts";
import { CONTINUE, type Target, type Verdict } from "#exchange/phases.ts";
import { NO_THROTTLE, type Profile } from "./throttle-profile.ts";
import { ThrottledLimiter, ThrottleInterceptor } from "./throttle.interceptor.ts";

interface Made {
  readonly exchange: Exchange;
  readonly trace: TraceStep[];
}

let serial = 0;

function madeExchange(host = "a.test"): Made {
  const trace: TraceStep[] = [];
  const request: Partial<Exchange["request"]> = { host };
  const exchange: Partial<Exchange> = {
    id: `e${(serial += 1)}`,
    request: request as Exchange["request"],
    pace: undefined,
    addTrace: (step) => void trace.push(step),
  };
  return { exchange: exchange as Exchange, trace };
}

function setUp(profile: Partial<Profile>, random: () => number = () => 0.5, enabled = true) {
  const clock = new FakeClock();
  const limiter = new ThrottledLimiter(clock, random);
  limiter.set({ profile: { ...NO_THROTTLE, name: "P", ...profile }, enabled });
  return { clock, limiter, interceptor: new ThrottleInterceptor(limiter, clock) };
}

/** The duration of a verdict on the fake clock, polled every millisecond. */
async function waitedMs(clock: FakeClock, verdict: Verdict | Promise<Verdict>): Promise<number> {
  if (!(verdict instanceof Promise)) return 0;
  const startedMs = clock.monotonic();
  let endedMs: number | undefined;
  void verdict.then(() => (endedMs = clock.monotonic()));
  while (endedMs === undefined) await clock.advance(1);
  return endedMs - startedMs;
}

test("a request is delayed by the latency plus or minus the jitter, never below zero", async () => {
  for (const [profile, random, expectedMs] of [
    [{ latencyMs: 100 }, 0.5, 100],
    [{ latencyMs: 100, jitterMs: 20 }, 0, 80],
    [{ latencyMs: 100, jitterMs: 20 }, 0.5, 100],
    [{ latencyMs: 100, jitterMs: 20 }, 0.999, 120],
    [{ latencyMs: 10, jitterMs: 50 }, 0, 0],
    [{}, 0.5, 0],
  ] as const) {
    const { clock, interceptor } = setUp(profile, () => random);
    const waited = await waitedMs(clock, interceptor.onRequestHead(madeExchange().exchange));
    assert.ok(Math.abs(waited - expectedMs) <= 1, `${JSON.stringify(profile)} ${random}: ${waited} ms`);
  }
});

test("a delay ends on time: a timer that fires early is set again, and a late one is not needed", async () => {
  const clock = new FakeClock();
  const asked: number[] = [];
  const limiter = new ThrottledLimiter(clock);
  limiter.set({ profile: { ...NO_THROTTLE, latencyMs: 30 }, enabled: true });
  let looked = 0;
  const hasty = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    every: clock.every.bind(clock),
    after: (delayMs: number, callback: () => void) => {
      asked.push(delayMs);
      return clock.after(asked.length === 1 ? delayMs - 5 : delayMs, callback);
    },
    soon: (callback: () => void) => {
      looked += 1;
      clock.after(0.25, callback);
    },
  };
  const interceptor = new ThrottleInterceptor(limiter, hasty);
  assert.equal(await waitedMs(clock, interceptor.onRequestHead(madeExchange().exchange)), 30);
  assert.deepEqual(asked, [28.5, 5]);
  assert.equal(looked, 6);
});

test("jitter is spread evenly around the latency", () => {
  const limiter = new ThrottledLimiter(new FakeClock());
  limiter.set({ profile: { ...NO_THROTTLE, latencyMs: 100, jitterMs: 50 }, enabled: true });
  const delays = Array.from({ length: 20_000 }, () => {
    const passage = limiter.passage();
    return passage.kind === "pass" ? passage.delayMs : Number.NaN;
  });
  const mean = delays.reduce((sum, delay) => sum + delay, 0) / delays.length;
  // Five standard errors of the mean of uniform numbers 100 wide.
  assert.ok(Math.abs(mean - 100) < (5 * 28.9) / Math.sqrt(delays.length), String(mean));
  assert.ok(Math.min(...delays) >= 50 && Math.max(...delays) <= 150);
});

test("the share of lost requests is that of the profile", () => {
  for (const lossPercent of [0, 2, 50, 100]) {
    let next = 0;
    const { interceptor } = setUp({ lossPercent }, () => (next = (next + 0.01) % 1));
    const lost = Array.from({ length: 1000 }, () => interceptor.onRequestHead(madeExchange().exchange)).filter(
      (verdict) => !(verdict instanceof Promise) && verdict.kind === "abort",
    );
    assert.ok(Math.abs(lost.length - lossPercent * 10) <= 10, `${lossPercent}: ${lost.length}`);
    assert.equal(interceptor.lostCount, lost.length);
  }
});

test("a lost request is reset, and its trace says so", () => {
  const { interceptor } = setUp({ lossPercent: 100 });
  const { exchange, trace } = madeExchange();
  assert.deepEqual(interceptor.onRequestHead(exchange), {
    kind: "abort",
    reason: "Lost by the throttle profile P",
    closes: true,
  });
  assert.deepEqual(trace, [
    {
      kind: "throttle",
      ruleId: "throttle",
      ruleName: "P",
      phase: "request",
      changes: ["lost (100% packet loss): reset"],
    },
  ]);
});

test("a lost request stalls until the profile changes, and is dropped when its client disconnects", async () => {
  const { interceptor } = setUp({ lossPercent: 100, lossMode: "stall" });
  const first = madeExchange().exchange;
  const second = madeExchange().exchange;
  const verdict = interceptor.onRequestHead(first);
  void interceptor.onRequestHead(second);
  assert.ok(verdict instanceof Promise);
  assert.equal(interceptor.stalledCount, 2);
  interceptor.onFinished(second);
  assert.equal(interceptor.stalledCount, 1);
  interceptor.releaseStalled();
  assert.deepEqual(await verdict, CONTINUE);
  assert.equal(interceptor.stalledCount, 0);
});

test("only hosts of the profile are limited and delayed", async () => {
  const { clock, limiter, interceptor } = setUp({ latencyMs: 50, hosts: ["slow.test"] });
  for (const [host, isSlow] of [
    ["slow.test", true],
    ["x.slow.test", true],
    ["fast.test", false],
  ] as const) {
    const { exchange, trace } = madeExchange(host);
    assert.equal((await waitedMs(clock, interceptor.onRequestHead(exchange))) > 0, isSlow, host);
    assert.equal(exchange.pace, isSlow ? limiter.pace : undefined);
    assert.equal(trace.length, isSlow ? 1 : 0);
  }
});

test("with the throttle off requests pass at once and untraced, attached to the limiter for later changes", () => {
  const { limiter, interceptor } = setUp(
    { latencyMs: 50, lossPercent: 100, downloadBytesPerSecond: 10 },
    undefined,
    false,
  );
  const { exchange, trace } = madeExchange();
  assert.deepEqual(interceptor.onRequestHead(exchange), CONTINUE);
  assert.equal(exchange.pace, limiter.pace);
  assert.equal(limiter.pace.down.isLimited, false);
  assert.deepEqual(trace, []);
  limiter.set({ profile: { ...NO_THROTTLE, downloadBytesPerSecond: 10 }, enabled: true });
  assert.deepEqual([limiter.pace.down.isLimited, limiter.pace.up.isLimited], [true, false]);
});

test("a tunnel gets limiter and latency, and is reset when lost, in either mode", async () => {
  const { clock, limiter, interceptor } = setUp({ latencyMs: 50 });
  const target = { host: "a.test", port: 443 } as Target;
  assert.equal(await waitedMs(clock, interceptor.onTarget(target)), 50);
  assert.equal(target.pace, limiter.pace);
  limiter.set({ profile: { ...NO_THROTTLE, lossPercent: 100, lossMode: "stall" }, enabled: true });
  const verdict = interceptor.onTarget({ host: "a.test", port: 443 } as Target);
  assert.ok(!(verdict instanceof Promise) && verdict.kind === "abort" && verdict.closes);
});
