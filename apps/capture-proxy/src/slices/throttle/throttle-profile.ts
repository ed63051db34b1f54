import type { NewThrottle, ThrottleProfile } from "@headworks/capture-contract";
import { validateHostPattern } from "@headworks/host-patterns";
import { validationError } from "#api/api-error.ts";

export interface Profile {
  readonly name: string;
  /** 0 means no limit. */
  readonly downloadBytesPerSecond: number;
  readonly uploadBytesPerSecond: number;
  readonly latencyMs: number;
  readonly jitterMs: number;
  readonly lossPercent: number;
  readonly lossMode: "reset" | "stall";
  /** Host patterns; empty means all hosts. */
  readonly hosts: readonly string[];
}

export interface StoredThrottle {
  readonly profile: Profile;
  readonly enabled: boolean;
}

interface PresetLine {
  readonly kbitDown: number;
  readonly kbitUp: number;
  readonly latencyMs: number;
  readonly jitterMs?: number;
  readonly lossPercent?: number;
}

/** Presets are given in kbit/s, profiles in bytes per second. */
const bytesOf = (kbitPerSecond: number): number => (kbitPerSecond * 1000) / 8;

function preset(name: string, line: PresetLine): Profile {
  return {
    name,
    downloadBytesPerSecond: bytesOf(line.kbitDown),
    uploadBytesPerSecond: bytesOf(line.kbitUp),
    latencyMs: line.latencyMs,
    jitterMs: line.jitterMs ?? 0,
    lossPercent: line.lossPercent ?? 0,
    lossMode: "reset",
    hosts: [],
  };
}

export const NO_THROTTLE = preset("None", { kbitDown: 0, kbitUp: 0, latencyMs: 0 });

/**
 * From slow to fast. Slow 3G and Fast 3G are those of Chrome's developer tools, whose latency covers the round trips of
 * a whole request; GPRS, EDGE ("Regular 2G"), DSL and 4G LTE are those of Firefox. 3G has the bandwidth of Firefox's
 * "Regular 3G" and lies between Chrome's two. Slow Wi-Fi and Satellite are our own. Offline loses every request,
 * because a bandwidth of 0 means no limit.
 */
export const PRESETS: readonly Profile[] = [
  NO_THROTTLE,
  preset("GPRS (2G)", { kbitDown: 50, kbitUp: 20, latencyMs: 500 }),
  preset("EDGE (2G)", { kbitDown: 250, kbitUp: 50, latencyMs: 300 }),
  preset("Slow 3G", { kbitDown: 400, kbitUp: 400, latencyMs: 2000 }),
  preset("3G", { kbitDown: 750, kbitUp: 500, latencyMs: 1000 }),
  preset("Fast 3G", { kbitDown: 1440, kbitUp: 675, latencyMs: 563 }),
  preset("DSL", { kbitDown: 2000, kbitUp: 1000, latencyMs: 5 }),
  preset("4G LTE", { kbitDown: 4000, kbitUp: 3000, latencyMs: 20 }),
  preset("Slow Wi-Fi", { kbitDown: 4000, kbitUp: 4000, latencyMs: 20 }),
  preset("Satellite", { kbitDown: 5000, kbitUp: 2000, latencyMs: 600, jitterMs: 100, lossPercent: 1 }),
  preset("Offline", { kbitDown: 0, kbitUp: 0, latencyMs: 0, lossPercent: 100 }),
];

export function showProfile(profile: Profile): ThrottleProfile {
  return {
    name: profile.name,
    download_bps: profile.downloadBytesPerSecond,
    upload_bps: profile.uploadBytesPerSecond,
    latency_ms: profile.latencyMs,
    jitter_ms: profile.jitterMs,
    packet_loss_percent: profile.lossPercent,
    loss_mode: profile.lossMode,
    hosts: [...profile.hosts],
    delay_ms: profile.latencyMs,
    device_id: null,
  };
}

type Given = NonNullable<NewThrottle["profile"]>;

/** Reads a profile in any accepted form; throws 400 for contradictions. */
export function parseProfile(body: NewThrottle): Profile {
  const { profile, preset: presetName, enabled: _enabled, ...flat } = body;
  const [extra] = Object.entries(flat).flatMap(([field, value]) => (value === undefined ? [] : [field]));
  if (profile !== undefined && extra !== undefined) {
    throw validationError([{ path: `body/${extra}`, message: "cannot be combined with profile; move it inside" }]);
  }
  const at = profile === undefined ? "body" : "body/profile";
  const given = profile ?? flat;
  checkGiven(given, at);
  if (presetName !== undefined) return fromPreset(presetName, given, at);
  // A preset's name without values means the preset, not an unlimited profile.
  const { name, ...others } = given;
  const isPreset = PRESETS.some((known) => known.name === name) && VALUES.every((field) => given[field] === undefined);
  return isPreset && name !== undefined ? fromPreset(name, others, at) : written(given);
}

/** Fields a preset decides. */
const VALUES = [
  "download_bps",
  "upload_bps",
  "latency_ms",
  "delay_ms",
  "jitter_ms",
  "packet_loss_percent",
] as const satisfies readonly (keyof Given)[];

function fromPreset(name: string, given: Given, at: string): Profile {
  const found = PRESETS.find((known) => known.name.toLowerCase() === name.trim().toLowerCase());
  if (found === undefined) {
    const names = PRESETS.map((known) => JSON.stringify(known.name)).join(", ");
    throw validationError([{ path: "body/preset", message: `must be one of ${names}` }]);
  }
  const { hosts, loss_mode: lossMode, device_id: _device, ...others } = given;
  const [extra] = Object.entries(others).flatMap(([field, value]) => (value === undefined ? [] : [field]));
  if (extra !== undefined) {
    throw validationError([{ path: `${at}/${extra}`, message: "cannot be combined with preset, which sets it" }]);
  }
  return { ...found, hosts: hosts ?? [], lossMode: lossMode ?? found.lossMode };
}

function checkGiven(given: Given, at: string): void {
  const issues = profileIssues(given);
  if (issues.length > 0) {
    throw validationError(issues.map(({ path, message }) => ({ path: path.replace(/^\/profile/, at), message })));
  }
}

/** Checks beyond the schema; paths point into the throttle. */
export function profileIssues(given: Given): { readonly path: string; readonly message: string }[] {
  const issues = (given.hosts ?? []).flatMap((host, index) => {
    const problem = validateHostPattern(host);
    return problem === undefined ? [] : [{ path: `/profile/hosts/${index}`, message: problem.replace(/\.$/, "") }];
  });
  const { latency_ms: latency, delay_ms: delay } = given;
  if (latency !== undefined && delay !== undefined && latency !== delay) {
    issues.push({ path: "/profile/delay_ms", message: "differs from latency_ms, which means the same" });
  }
  return issues;
}

/** The inverse of {@link showProfile}. */
export function readProfile(profile: ThrottleProfile): Profile {
  return written(profile);
}

function written(given: Given): Profile {
  return {
    name: given.name?.trim() ?? "Custom",
    downloadBytesPerSecond: given.download_bps ?? 0,
    uploadBytesPerSecond: given.upload_bps ?? 0,
    latencyMs: given.latency_ms ?? given.delay_ms ?? 0,
    jitterMs: given.jitter_ms ?? 0,
    lossPercent: given.packet_loss_percent ?? 0,
    lossMode: given.loss_mode ?? "reset",
    hosts: given.hosts ?? [],
  };
}
