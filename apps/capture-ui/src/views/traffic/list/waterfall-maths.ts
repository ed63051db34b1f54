import type { Timings } from "@headworks/capture-contract";

/** Stages in chronological order. */
const STAGES = ["blocked", "dns", "connect", "tls", "send", "wait", "receive"] as const;
export type Stage = (typeof STAGES)[number];

/** A stage as part of a bar: left edge and width in 0…1. */
export interface Segment {
  readonly stage: Stage;
  readonly start: number;
  readonly width: number;
}

/** Splits a bar of width 1 into stages. Without timings the whole duration counts as waiting. */
export function segments(timings: Timings): readonly Segment[] {
  const parts = STAGES.map((stage) => ({ stage, ms: Math.max(0, timings[stage] ?? 0) }));
  const sum = parts.reduce((total, part) => total + part.ms, 0);
  if (sum <= 0) return [{ stage: "wait", start: 0, width: 1 }];
  let start = 0;
  return parts.flatMap(({ stage, ms }) => {
    if (ms === 0) return [];
    const segment = { stage, start, width: ms / sum };
    start += segment.width;
    return [segment];
  });
}

/** Maps durations from 1 ms to a minute to lengths from 0.06 to 1, comparable without a common axis. */
export function durationLength(durationMs: number | null): number {
  if (durationMs === null || !(durationMs > 1)) return 0.06;
  return Math.min(1, 0.06 + (0.94 * Math.log(durationMs)) / Math.log(60_000));
}

/** A time axis from `startMs`, `spanMs` long, with round ticks. */
export interface Axis {
  readonly startMs: number;
  readonly spanMs: number;
  /** Offsets from the start. */
  readonly ticksMs: readonly number[];
}

/** Whether the label after the last tick fits before the axis ends. */
export function hasRoomForLabel({ spanMs, ticksMs: [first = 0, second = spanMs] }: Axis, tickMs: number): boolean {
  return spanMs - tickMs >= 0.7 * (second - first);
}

const STEPS = [1, 2, 5];

/** The axis of the given exchanges; undefined if there are none. */
export function axisOf(
  exchanges: readonly { readonly startMs: number; readonly durationMs: number }[],
  maxTicks: number,
): Axis | undefined {
  let startMs = Infinity;
  let endMs = -Infinity;
  for (const exchange of exchanges) {
    if (!Number.isFinite(exchange.startMs)) continue;
    startMs = Math.min(startMs, exchange.startMs);
    endMs = Math.max(endMs, exchange.startMs + Math.max(0, exchange.durationMs));
  }
  if (startMs === Infinity) return undefined;
  const spanMs = Math.max(1, endMs - startMs);
  const step = tickStep(spanMs, Math.max(1, maxTicks));
  const ticksMs: number[] = [];
  for (let tick = 0; tick <= spanMs; tick += step) ticksMs.push(tick);
  return { startMs, spanMs, ticksMs };
}

/** The smallest step of 1, 2, 5, 10, 20, … ms with at most `maxTicks` ticks after the first. */
export function tickStep(spanMs: number, maxTicks: number): number {
  for (let power = 1; ; power *= 10) {
    for (const step of STEPS) if (spanMs / (step * power) <= maxTicks) return step * power;
  }
}

/** Position of an exchange on the axis, in 0…1; at least `minWidth` wide. */
export function barOnAxis(
  axis: Axis,
  startMs: number,
  durationMs: number,
  minWidth: number,
): { readonly left: number; readonly width: number } {
  const width = Math.min(1, Math.max(minWidth, Math.max(0, durationMs) / axis.spanMs));
  const left = Math.min(1 - width, Math.max(0, (startMs - axis.startMs) / axis.spanMs));
  return { left, width };
}
