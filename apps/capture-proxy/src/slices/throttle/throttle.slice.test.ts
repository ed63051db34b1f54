import assert from "node:assert/strict";
import { test } from "node:test";
import type { ThrottleProfile, ThrottleState } from "@headworks/capture-contract";
import { startApi } from "../../../test/api-rig.ts";
import type { ApiRig } from "../../../test/api-rig.ts";
import { createThrottleSlice } from "./throttle.slice.ts";

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
