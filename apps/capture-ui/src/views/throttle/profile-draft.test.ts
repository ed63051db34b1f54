import assert from "node:assert/strict";
import { test } from "node:test";
import { formatBitRate, formatRate } from "@headworks/capture-contract";
import type { ThrottleProfile } from "@headworks/capture-contract";
import { DIAL_KBPS, dialStep, draftOfProfile, formatProfile, profileOf, sameLine } from "./profile-draft.ts";

const profile: ThrottleProfile = {
  name: "3G",
  download_bps: 1_000_001,
  upload_bps: 0,
  latency_ms: 100,
  delay_ms: 100,
  jitter_ms: 20,
  packet_loss_percent: 3,
  loss_mode: "stall",
  hosts: ["*.example.com"],
  device_id: null,
};

test("a profile converted to a draft and back is unchanged", () => {
  const { delay_ms: _same, device_id: _reserved, ...body } = profile;
  assert.deepEqual(profileOf(draftOfProfile(profile)), { ok: true, body });
});

test("an invalid number is reported with its name", () => {
  const result = profileOf({ ...draftOfProfile(profile), latencyMs: "soon" });
  assert.deepEqual(result, { ok: false, message: "Latency is not a number" });
  assert.ok(!profileOf({ ...draftOfProfile(profile), downloadKbps: "-1" }).ok);
});

test("rates are short, in bytes and in bits", () => {
  assert.deepEqual([0, 999, 1500, 50_000, 84_375, 250_000, 1_500_000, 250_000_000].map(formatRate), [
    "0 B/s",
    "999 B/s",
    "1.5 KB/s",
    "50 KB/s",
    "84.4 KB/s",
    "250 KB/s",
    "1.5 MB/s",
    "250 MB/s",
  ]);
  assert.deepEqual([100, 50_000, 180_000, 500_000].map(formatBitRate), [
    "800 bit/s",
    "400 kbit/s",
    "1.4 Mbit/s",
    "4 Mbit/s",
  ]);
});

test("a profile is summarized in the units that browsers use", () => {
  assert.equal(
    formatProfile({ ...profile, download_bps: 50_000, upload_bps: 0 }),
    "400 kbit/s down, 100 ± 20 ms, 3 % dropped",
  );
  const none = { ...profile, download_bps: 0, latency_ms: 0, jitter_ms: 0, packet_loss_percent: 0 };
  assert.equal(formatProfile(none), "No limits");
  assert.equal(formatProfile({ ...none, packet_loss_percent: 100 }), "all requests dropped");
});

test("a profile equals a preset by its values, not by its name", () => {
  assert.ok(sameLine(profile, { ...profile, hosts: [] }));
  assert.ok(!sameLine(profile, { ...profile, download_bps: 400_000 }));
  assert.ok(!sameLine(profile, { ...profile, name: "Custom" }));
});

test("the dial shows the closest speed, and its end for no limit", () => {
  for (const [index, speed] of DIAL_KBPS.entries()) assert.equal(dialStep(speed), index);
  assert.equal(DIAL_KBPS[dialStep(420)], 500);
  assert.equal(dialStep(Number.NaN), DIAL_KBPS.length - 1);
  assert.equal(dialStep(1), 0);
});
