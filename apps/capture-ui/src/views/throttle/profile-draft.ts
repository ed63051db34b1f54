import { formatBitRate } from "@headworks/capture-contract";
import type { NewThrottle, ThrottleProfile } from "@headworks/capture-contract";

/** A profile in the form; numbers as typed, bandwidth in kilobytes per second. */
export interface ProfileDraft {
  readonly name: string;
  readonly downloadKbps: string;
  readonly uploadKbps: string;
  readonly latencyMs: string;
  readonly jitterMs: string;
  readonly lossPercent: string;
  readonly lossMode: ThrottleProfile["loss_mode"];
  readonly hosts: readonly string[];
}

const KILO = 1000;

/** Bytes per second as kilobytes per second, without rounding. */
function kilobytes(bps: number): string {
  return String(bps / KILO);
}

export function draftOfProfile(profile: ThrottleProfile): ProfileDraft {
  return {
    name: profile.name,
    downloadKbps: kilobytes(profile.download_bps),
    uploadKbps: kilobytes(profile.upload_bps),
    latencyMs: String(profile.latency_ms),
    jitterMs: String(profile.jitter_ms),
    lossPercent: String(profile.packet_loss_percent),
    lossMode: profile.loss_mode,
    hosts: profile.hosts,
  };
}

/** The profile of a draft, or an error naming the invalid field. */
export function profileOf(
  draft: ProfileDraft,
): { readonly ok: true; readonly body: NewThrottle } | { readonly ok: false; readonly message: string } {
  const numbers: readonly (readonly [label: string, text: string, scale: number])[] = [
    ["Download", draft.downloadKbps, KILO],
    ["Upload", draft.uploadKbps, KILO],
    ["Latency", draft.latencyMs, 1],
    ["Jitter", draft.jitterMs, 1],
    ["Loss", draft.lossPercent, 1],
  ];
  const wrong = numbers.find(([, text]) => !/^\d{1,12}(?:\.\d{1,3})?$/u.test(text.trim()));
  if (wrong !== undefined) return { ok: false, message: `${wrong[0]} is not a number` };
  const [download, upload, latency, jitter, loss] = numbers.map(([, text, scale]) => Math.round(Number(text) * scale));
  return {
    ok: true,
    body: {
      name: draft.name.trim() === "" ? "Custom" : draft.name.trim(),
      download_bps: download ?? 0,
      upload_bps: upload ?? 0,
      latency_ms: latency ?? 0,
      jitter_ms: jitter ?? 0,
      packet_loss_percent: loss ?? 0,
      loss_mode: draft.lossMode,
      hosts: [...draft.hosts],
    },
  };
}

/** Summary of a profile: `400 kbit/s down, 400 kbit/s up, 2000 ms`. */
export function formatProfile(profile: ThrottleProfile): string {
  const { download_bps: down, upload_bps: up, latency_ms: latency, jitter_ms: jitter } = profile;
  const loss = profile.packet_loss_percent;
  const parts = [
    down > 0 ? `${formatBitRate(down)} down` : undefined,
    up > 0 ? `${formatBitRate(up)} up` : undefined,
    latency > 0 ? `${latency}${jitter > 0 ? ` ± ${jitter}` : ""} ms` : undefined,
    loss === 100 ? "all requests dropped" : loss > 0 ? `${loss} % dropped` : undefined,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? "No limits" : parts.join(", ");
}

/** Whether two profiles have the same limits, regardless of hosts. */
export function sameLine(one: ThrottleProfile, other: ThrottleProfile): boolean {
  return one.name === other.name && formatProfile(one) === formatProfile(other);
}

/** Steps of the dial in kilobytes per second; the last step is unlimited. */
export const DIAL_KBPS: readonly number[] = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 0];

/** The dial step closest to a speed. */
export function dialStep(kbps: number): number {
  if (!(kbps > 0)) return DIAL_KBPS.length - 1;
  let best = 0;
  for (const [index, speed] of DIAL_KBPS.entries()) {
    const now = DIAL_KBPS[best] ?? 1;
    if (speed > 0 && Math.abs(Math.log(speed / kbps)) < Math.abs(Math.log(now / kbps))) best = index;
  }
  return best;
}
