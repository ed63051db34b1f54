import assert from "node:assert/strict";
import { test } from "node:test";
import type { ThrottleProfile, ThrottleState } from "@headworks/capture-contract";
import { FakeClock } from "@headworks/testkit";
import type { Exchange, TraceStep } from "#exchange/exchange.ts";
import { CONTINUE, type Target, type Verdict } from "#exchange/phases.ts";
import { type ApiRig, startApi } from "../../../test/api-rig.ts";
import {
  createThrottleSlice,
  NO_THROTTLE,
  type Profile,
  ThrottledLimiter,
  ThrottleInterceptor,
} from "./throttle.slice.ts";

const startThrottle = (): Promise<ApiRig> => startApi({ slices: (host) => [createThrottleSlice(host)] });

const NONE: ThrottleProfile = {
  name: "None",
  download_bps: 0,
  upload_bps: 0,
  latency_ms: 0,
  jitter_ms: 0,
  packet_loss_percent: 0,
  loss_mode: "reset",
  hosts: [],
  delay_ms: 0,
  device_id: null,
};

async function set(api: ApiRig, body: object): Promise<ThrottleState> {
  const { status, json } = await api.call("POST", "/api/throttle", body);
  assert.equal(status, 200, JSON.stringify(json));
  assert.deepEqual((await api.call("GET", "/api/throttle")).json, json);
  return json as ThrottleState;
}

test("throttling is off by default", async () => {
  await using api = await startThrottle();
  assert.deepEqual((await api.call("GET", "/api/throttle")).json, { profile: NONE, enabled: false });
});

test("a profile is accepted flat, nested, with either name of the latency, and as GET returned it", async () => {
  await using api = await startThrottle();
  const profile = { ...NONE, name: "Mine", download_bps: 1000, latency_ms: 20, delay_ms: 20, hosts: ["a.test"] };
  const expected = { profile, enabled: true };
  const flat = { name: "Mine", download_bps: 1000, hosts: ["a.test"], enabled: true };
  assert.deepEqual(await set(api, { ...flat, delay_ms: 20 }), expected);
  assert.deepEqual(await set(api, { ...flat, latency_ms: 20 }), expected);
  assert.deepEqual(await set(api, expected), expected);
  const { enabled: _enabled, ...nested } = flat;
  assert.deepEqual(await set(api, { profile: { ...nested, latency_ms: 20 } }), expected);
  assert.deepEqual(await set(api, {}), { profile: { ...NONE, name: "Custom" }, enabled: true });
});

test("the presets have the values of the browsers' developer tools in bytes, and can be set by name", async () => {
  await using api = await startThrottle();
  const presets = (await api.call("GET", "/api/throttle/presets")).json as ThrottleProfile[];
  const table = presets.map((preset) => [
    preset.name,
    preset.download_bps,
    preset.upload_bps,
    preset.latency_ms,
    preset.jitter_ms,
    preset.packet_loss_percent,
  ]);
  assert.deepEqual(table, [
    ["None", 0, 0, 0, 0, 0],
    ["GPRS (2G)", 6250, 2500, 500, 0, 0],
    ["EDGE (2G)", 31_250, 6250, 300, 0, 0],
    ["Slow 3G", 50_000, 50_000, 2000, 0, 0],
    ["3G", 93_750, 62_500, 1000, 0, 0],
    ["Fast 3G", 180_000, 84_375, 563, 0, 0],
    ["DSL", 250_000, 125_000, 5, 0, 0],
    ["4G LTE", 500_000, 375_000, 20, 0, 0],
    ["Slow Wi-Fi", 500_000, 500_000, 20, 0, 0],
    ["Satellite", 625_000, 250_000, 600, 100, 1],
    ["Offline", 0, 0, 0, 0, 100],
  ]);
  for (const preset of presets) assert.deepEqual((await set(api, { profile: preset })).profile, preset);
  const named = await set(api, { preset: "slow 3g", hosts: ["*.a.test"], enabled: true });
  assert.deepEqual(named, { profile: { ...presets[3], hosts: ["*.a.test"] }, enabled: true });
});

test("presets go from slow to fast, and no 3G profile beats the next one in any value", async () => {
  await using api = await startThrottle();
  const presets = (await api.call("GET", "/api/throttle/presets")).json as ThrottleProfile[];
  const downloads = presets.map((preset) => preset.download_bps).filter((rate) => rate > 0);
  assert.deepEqual(
    downloads,
    downloads.toSorted((a, b) => a - b),
  );
  const [slow, middle, fast] = ["Slow 3G", "3G", "Fast 3G"].map((name) => presets.find((each) => each.name === name));
  for (const [worse, better] of [
    [slow, middle],
    [middle, fast],
  ]) {
    assert.ok(worse !== undefined && better !== undefined);
    assert.ok(worse.download_bps < better.download_bps && worse.upload_bps < better.upload_bps, better.name);
    assert.ok(worse.latency_ms > better.latency_ms, better.name);
  }
});

test("a profile with the name of a preset and no values is that preset", async () => {
  await using api = await startThrottle();
  const presets = (await api.call("GET", "/api/throttle/presets")).json as ThrottleProfile[];
  const fast = presets.find(({ name }) => name === "Fast 3G");
  assert.deepEqual(await set(api, { name: "Fast 3G", enabled: true }), { profile: fast, enabled: true });
  const nested = await set(api, { profile: { name: "Fast 3G", hosts: ["a.test"], loss_mode: "stall" } });
  assert.deepEqual(nested.profile, { ...fast, hosts: ["a.test"], loss_mode: "stall" });
  for (const own of [{ name: "Fast 3G", download_bps: 0 }, { name: "Fast 3G", latency_ms: 7 }, { name: "fast 3g" }]) {
    const { profile } = await set(api, own);
    const latency = own.latency_ms ?? 0;
    assert.deepEqual(profile, { ...NONE, name: own.name, latency_ms: latency, delay_ms: latency }, JSON.stringify(own));
  }
});

test("out-of-range and contradictory values are rejected without a change", async () => {
  await using api = await startThrottle();
  for (const [body, path] of [
    [{ download_bps: -1 }, "body/download_bps"],
    [{ download_bps: 1_000_000_000_001 }, "body/download_bps"],
    [{ upload_bps: 1.5 }, "body/upload_bps"],
    [{ latency_ms: 60_001 }, "body/latency_ms"],
    [{ packet_loss_percent: 101 }, "body/packet_loss_percent"],
    [{ latency_ms: 1, delay_ms: 2 }, "body/delay_ms"],
    [{ profile: { latency_ms: 1, delay_ms: 2 } }, "body/profile/delay_ms"],
    [{ profile: {}, download_bps: 1 }, "body/download_bps"],
    [{ preset: "5G" }, "body/preset"],
    [{ preset: "3G", download_bps: 1 }, "body/download_bps"],
    [{ hosts: ["a//b"] }, "body/hosts/0"],
    [{ name: " " }, "body/name"],
    [{ extra: 1 }, "body/extra"],
    [{ device_id: "phone" }, "body/device_id"],
  ] as const) {
    const { status, json } = await api.call("POST", "/api/throttle", body);
    const { code, details } = json as { code: string; details: { path: string }[] };
    assert.deepEqual([status, code, details[0]?.path], [400, "VALIDATION_ERROR", path], JSON.stringify(json));
  }
  assert.deepEqual((await api.call("GET", "/api/throttle")).json, { profile: NONE, enabled: false });
});

test("the switch sets the given state and toggles without a body; the profile stays", async () => {
  await using api = await startThrottle();
  await set(api, { preset: "DSL" });
  const toggle = async (body?: object): Promise<unknown> =>
    (await api.call("POST", "/api/throttle/enabled", body)).json;
  assert.deepEqual(await toggle({ enabled: true }), { enabled: true });
  assert.deepEqual(await toggle({ enabled: true }), { enabled: true });
  assert.deepEqual(await toggle(), { enabled: false });
  assert.equal(((await api.call("GET", "/api/throttle")).json as ThrottleState).profile.name, "DSL");
});

test("the profile survives a restart, and exports and imports unchanged", async () => {
  await using api = await startThrottle();
  const state = await set(api, { preset: "Satellite", hosts: ["a.test"], enabled: true });
  const again = createThrottleSlice(api.host);
  assert.deepEqual(again.portableRules?.exportRules(), state);
  await using other = await startThrottle();
  const target = createThrottleSlice(other.host).portableRules;
  const request = { mode: "merge", dryRun: false, version: 1 } as const;
  const counts = { added: 0, removed: 0, updated: 0, unchanged: 0 };
  assert.deepEqual(target?.importRules(state, { ...request, dryRun: true }), { counts: { ...counts, updated: 1 } });
  assert.deepEqual(target?.exportRules(), { profile: NONE, enabled: false });
  assert.deepEqual(target?.importRules(state, request), { counts: { ...counts, updated: 1 } });
  assert.deepEqual(target?.exportRules(), state);
  assert.deepEqual(target?.importRules(state, request), { counts: { ...counts, unchanged: 1 } });
  const broken = target?.importRules({ ...state, profile: { ...state.profile, hosts: ["a//b"] } }, request);
  assert.ok(broken !== undefined && "issues" in broken);
  assert.equal(broken.issues[0]?.path, "/profile/hosts/0");
  assert.ok("issues" in (target?.importRules([], request) ?? {}));
});

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
