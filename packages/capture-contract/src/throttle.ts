import { defineOperations, oneOf, strictObject, Type } from "@headworks/contract-kit";
import type { Static } from "typebox";
import { named, NoDevice, ToggleBody } from "./primitives.ts";

/** Bounds of a profile. */
const MAX_BPS = 1_000_000_000_000;
const MAX_LATENCY_MS = 60_000;
const bandwidth = (description: string) => Type.Integer({ minimum: 0, maximum: MAX_BPS, description });
const latency = (description: string) => Type.Integer({ minimum: 0, maximum: MAX_LATENCY_MS, description });

const profileFields = {
  name: named("Name of the profile"),
  download_bps: bandwidth("Bytes per second to all clients together; 0 = no limit"),
  upload_bps: bandwidth("Bytes per second to all origins together; 0 = no limit"),
  latency_ms: latency("Delay of each request, and of opening a tunnel"),
  jitter_ms: latency("Maximum random deviation of the latency, evenly distributed; the result is never below 0"),
  packet_loss_percent: Type.Integer({
    minimum: 0,
    maximum: 100,
    description: "Percentage of requests that are dropped",
  }),
  loss_mode: oneOf(["reset", "stall"], {
    description:
      "How requests are dropped. `reset`: the connection is closed without a response; `stall`: no response until the client disconnects. Tunnels are always reset",
  }),
  hosts: Type.Array(Type.String({ minLength: 1, maxLength: 255 }), {
    maxItems: 1000,
    description: "Host patterns that the profile applies to. Empty = all hosts",
  }),
};

/** A rate for people: `1.5 MB/s`; 1 MB is 1,000,000 bytes, as lines are measured. */
export function formatRate(bytesPerSecond: number): string {
  return inThousands(bytesPerSecond, ["B/s", "KB/s", "MB/s"]);
}

/** The same rate as lines are sold and browsers list it: `400 kbit/s`. */
export function formatBitRate(bytesPerSecond: number): string {
  return inThousands(bytesPerSecond * 8, ["bit/s", "kbit/s", "Mbit/s"]);
}

function inThousands(value: number, [one, kilo, mega]: readonly [string, string, string]): string {
  if (value < 999.5) return `${Math.round(value)} ${one}`;
  const [scaled, unit] = value < 999_500 ? [value / 1000, kilo] : [value / 1_000_000, mega];
  return `${scaled.toFixed(scaled < 99.95 ? 1 : 0).replace(/\.0$/u, "")} ${unit}`;
}

/** Bandwidth, latency and loss of a simulated network. */
export const ThrottleProfile = strictObject(
  {
    ...profileFields,
    delay_ms: latency("The same as `latency_ms`"),
    device_id: NoDevice,
  },
  { $id: "ThrottleProfile" },
);
export type ThrottleProfile = Static<typeof ThrottleProfile>;

export const ThrottleState = strictObject(
  {
    profile: ThrottleProfile,
    enabled: Type.Boolean({ description: "Whether the throttle is on" }),
  },
  { $id: "ThrottleState" },
);
export type ThrottleState = Static<typeof ThrottleState>;

/** The throttle among portable rules, which all have ids. */
export const PortableThrottle = strictObject({
  id: Type.Literal("throttle"),
  profile: ThrottleProfile,
  enabled: Type.Boolean(),
});
export type PortableThrottle = Static<typeof PortableThrottle>;

const { name, download_bps, upload_bps, latency_ms, jitter_ms, packet_loss_percent, loss_mode, hosts } = profileFields;
const given = {
  name: Type.Optional({
    ...name,
    description: "Name of the profile; a preset's name without other values selects that preset",
  }),
  download_bps: Type.Optional(download_bps),
  upload_bps: Type.Optional(upload_bps),
  latency_ms: Type.Optional(latency_ms),
  delay_ms: Type.Optional(latency("The same as `latency_ms`; give only one of them")),
  jitter_ms: Type.Optional(jitter_ms),
  packet_loss_percent: Type.Optional(packet_loss_percent),
  loss_mode: Type.Optional(loss_mode),
  hosts: Type.Optional(hosts),
  device_id: Type.Optional(NoDevice),
};

/**
 * A profile as it is set, nested or flat, or the name of a preset. What is left out is 0, or none; a profile that has the
 * name of a preset and no value of its own is that preset.
 */
export const NewThrottle = strictObject({
  ...given,
  profile: Type.Optional(strictObject(given, { description: "The profile, as an alternative to its fields" })),
  preset: Type.Optional(
    Type.String({ minLength: 1, maxLength: 255, description: "Name of a preset, case-insensitive" }),
  ),
  enabled: Type.Optional(Type.Boolean({ description: "Whether the throttle is on. Default: unchanged" })),
});
export type NewThrottle = Static<typeof NewThrottle>;

/** Statistics of the throttle since the start of the service. */
export const ThrottleStats = strictObject(
  {
    download_bytes: Type.Integer({
      description: "Bytes of bodies sent to clients under the throttle",
    }),
    upload_bytes: Type.Integer({ description: "Bytes of bodies sent to origins under the throttle" }),
    waiting_downloads: Type.Integer({ description: "Transfers waiting for bandwidth now" }),
    waiting_uploads: Type.Integer(),
    delayed_count: Type.Integer({ description: "Delayed requests" }),
    lost_count: Type.Integer({ description: "Dropped requests and tunnels" }),
    stalled_count: Type.Integer({ description: "Dropped requests whose clients are still waiting" }),
  },
  { $id: "ThrottleStats" },
);
export type ThrottleStats = Static<typeof ThrottleStats>;

export const throttleOperations = defineOperations({
  getThrottle: {
    method: "GET",
    path: "/throttle",
    summary: "The throttle profile, and whether it is on",
    access: "throttle:read",
    responses: { 200: ThrottleState },
    expose: { mcp: { name: "get_throttle", readOnly: true } },
  },
  setThrottle: {
    method: "POST",
    path: "/throttle",
    summary: "Set the throttle profile; also applies to transfers in progress",
    access: "throttle:write",
    body: NewThrottle,
    responses: { 200: ThrottleState },
    expose: { mcp: { name: "set_throttle", readOnly: false } },
  },
  setThrottleEnabled: {
    method: "POST",
    path: "/throttle/enabled",
    summary: "Switch the throttle on or off; also applies to transfers in progress",
    access: "throttle:write",
    body: ToggleBody,
    bodyOptional: true,
    responses: { 200: strictObject({ enabled: Type.Boolean() }) },
    expose: { mcp: { name: "toggle_throttle", readOnly: false } },
  },
  listThrottlePresets: {
    method: "GET",
    path: "/throttle/presets",
    summary: "Profiles of common networks",
    access: "throttle:read",
    responses: { 200: Type.Array(ThrottleProfile) },
    expose: { mcp: { name: "get_throttle_presets", readOnly: true } },
  },
  getThrottleStats: {
    method: "GET",
    path: "/throttle/stats",
    summary: "Bytes transferred, and requests delayed and dropped",
    access: "throttle:read",
    responses: { 200: ThrottleStats },
  },
});
