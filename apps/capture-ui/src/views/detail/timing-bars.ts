import type { Timings } from "@headworks/capture-contract";

export interface TimingBar {
  readonly stage: keyof Timings;
  readonly label: string;
  readonly explanation: string;
  readonly startMs: number;
  readonly durationMs: number;
  /** Offset and width in percent of the total. */
  readonly left: number;
  readonly width: number;
}

const STAGES: readonly (readonly [stage: keyof Timings, label: string, explanation: string])[] = [
  ["blocked", "Blocked", "Queued in Weir: waiting for a rule or a free connection"],
  ["dns", "DNS", "DNS lookup"],
  ["connect", "Connect", "TCP connection to the server"],
  ["tls", "TLS", "TLS handshake and certificate verification"],
  ["send", "Send", "Sending the request headers and body"],
  ["wait", "Waiting", "Time to first byte: server processing plus the network round trip"],
  ["receive", "Receive", "Receiving the response body"],
];

/** The recorded stages in sequence, and their sum. */
export function timingBars(timings: Timings): { readonly bars: readonly TimingBar[]; readonly totalMs: number } {
  const present = STAGES.flatMap(([stage, label, explanation]) => {
    const durationMs = timings[stage];
    return durationMs === null ? [] : [{ stage, label, explanation, durationMs: Math.max(0, durationMs) }];
  });
  const totalMs = present.reduce((sum, { durationMs }) => sum + durationMs, 0);
  let startMs = 0;
  const bars = present.map((bar) => {
    const placed = {
      ...bar,
      startMs,
      left: totalMs === 0 ? 0 : (startMs / totalMs) * 100,
      width: totalMs === 0 ? 0 : (bar.durationMs / totalMs) * 100,
    };
    startMs += bar.durationMs;
    return placed;
  });
  return { bars, totalMs };
}

/** Explanation of missing stages; null if none is missing. */
export function missingStages(timings: Timings): string | null {
  if (timings.connect === null && timings.dns === null) {
    return timings.wait === null
      ? null
      : "The connection was reused, so there was no DNS lookup, connect or TLS handshake";
  }
  return null;
}
