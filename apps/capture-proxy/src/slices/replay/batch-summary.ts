import type { ReplayBatch, ReplayResult } from "@headworks/capture-contract";

const MAX_SLICES = 20;
const MAX_ERRORS = 50;

export interface BatchPoint {
  readonly durationMs: number;
  readonly status: number | undefined;
  readonly error: { readonly code: string; readonly message: string } | undefined;
}

export type BatchSummary = Pick<
  ReplayBatch,
  | "total"
  | "succeeded"
  | "failed"
  | "min_ms"
  | "max_ms"
  | "avg_ms"
  | "p50_ms"
  | "p90_ms"
  | "p95_ms"
  | "p99_ms"
  | "histogram"
  | "statuses"
  | "errors"
>;

export function pointOf({ duration_ms: durationMs, response, error, error_code: code }: ReplayResult): BatchPoint {
  return {
    durationMs,
    status: response?.status_code,
    error: error === null ? undefined : { code: code ?? "INTERNAL", message: error },
  };
}

/** Counts, percentiles by nearest rank over the replays with a response, and error counts. */
export function summarize(points: readonly BatchPoint[]): BatchSummary {
  const durations = points
    .filter(({ error }) => error === undefined)
    .map(({ durationMs }) => durationMs)
    .sort((a, b) => a - b);
  const sum = durations.reduce((total, durationMs) => total + durationMs, 0);
  return {
    total: points.length,
    succeeded: durations.length,
    failed: points.length - durations.length,
    min_ms: durations[0] ?? null,
    max_ms: durations.at(-1) ?? null,
    avg_ms: durations.length === 0 ? null : rounded(sum / durations.length),
    p50_ms: nearestRank(durations, 50),
    p90_ms: nearestRank(durations, 90),
    p95_ms: nearestRank(durations, 95),
    p99_ms: nearestRank(durations, 99),
    histogram: histogram(durations),
    statuses: statuses(points),
    errors: errors(points),
  };
}

/** The smallest value that at least `percent` % of the sorted values do not exceed; null for no values. */
export function nearestRank(sorted: readonly number[], percent: number): number | null {
  return sorted[Math.max(0, Math.ceil((percent * sorted.length) / 100) - 1)] ?? null;
}

/** Slices of equal width from minimum to maximum of the sorted values; the last one includes its end. */
export function histogram(sorted: readonly number[]): ReplayBatch["histogram"] {
  const first = sorted[0];
  const last = sorted.at(-1);
  if (first === undefined || last === undefined) return [];
  const sliceCount = first === last ? 1 : Math.min(MAX_SLICES, Math.max(1, Math.ceil(Math.sqrt(sorted.length))));
  const width = (last - first) / sliceCount;
  const counts = Array.from({ length: sliceCount }, () => 0);
  for (const value of sorted) {
    const slice = width === 0 ? 0 : Math.min(sliceCount - 1, Math.floor((value - first) / width));
    counts[slice] = (counts[slice] ?? 0) + 1;
  }
  return counts.map((count, slice) => ({
    from_ms: rounded(first + slice * width),
    to_ms: rounded(slice === sliceCount - 1 ? last : first + (slice + 1) * width),
    count,
  }));
}

function statuses(points: readonly BatchPoint[]): Record<string, number> {
  const counts = new Map<number, number>();
  for (const { status } of points) if (status !== undefined) counts.set(status, (counts.get(status) ?? 0) + 1);
  return Object.fromEntries([...counts].map(([status, count]) => [String(status), count]));
}

function errors(points: readonly BatchPoint[]): ReplayBatch["errors"] {
  const found = new Map<string, { code: string; message: string; count: number }>();
  for (const { error } of points) {
    if (error === undefined) continue;
    const known = found.get(error.code);
    if (known) known.count += 1;
    else if (found.size < MAX_ERRORS) found.set(error.code, { ...error, count: 1 });
  }
  return [...found.values()].sort((a, b) => b.count - a.count);
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}
