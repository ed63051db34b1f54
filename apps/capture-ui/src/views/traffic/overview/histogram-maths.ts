/** A bar with heights in 0…1; `errors` is the failed part. */
export interface HistogramBar {
  readonly height: number;
  readonly errors: number;
}

/** Scales counts by their square root, so that small counts stay visible beside bursts. Empty slices stay empty. */
export function histogramBars(
  buckets: readonly { readonly count: number; readonly errors: number }[],
): readonly HistogramBar[] {
  const max = buckets.reduce((most, bucket) => Math.max(most, bucket.count), 0);
  return buckets.map(({ count, errors }) => ({
    height: count <= 0 || max <= 0 ? 0 : Math.max(0.06, Math.sqrt(count / max)),
    errors: count <= 0 ? 0 : Math.min(1, Math.max(0, errors) / count),
  }));
}

/**
 * The time range between two positions (0…1) of a chart from `startMs` to `endMs`, in order; at least one millisecond.
 */
export function dragRange(
  startMs: number,
  endMs: number,
  from: number,
  to: number,
): { readonly fromMs: number; readonly toMs: number } {
  const clamp = (position: number): number => Math.min(1, Math.max(0, position));
  const left = Math.min(clamp(from), clamp(to));
  const right = Math.max(clamp(from), clamp(to));
  const fromMs = Math.floor(startMs + (endMs - startMs) * left);
  return { fromMs, toMs: Math.max(fromMs + 1, Math.ceil(startMs + (endMs - startMs) * right)) };
}

/** Position of a range on a chart, in 0…1; undefined if outside. */
export function rangeOnStrip(
  startMs: number,
  endMs: number,
  range: { readonly fromMs: number; readonly toMs: number },
): { readonly left: number; readonly width: number } | undefined {
  const span = endMs - startMs;
  if (span <= 0 || range.toMs < startMs || range.fromMs > endMs) return undefined;
  const left = Math.max(0, (range.fromMs - startMs) / span);
  const right = Math.min(1, (range.toMs - startMs) / span);
  return { left, width: Math.max(0, right - left) };
}
