interface Hit {
  readonly mock_id: string;
  readonly timestamp: string;
}

/** Hits per mock id in equal time slices up to now, newest last. */
export function hitBins(
  hits: readonly Hit[],
  { nowMs, spanMs, count }: { readonly nowMs: number; readonly spanMs: number; readonly count: number },
): ReadonlyMap<string, readonly number[]> {
  const bins = new Map<string, number[]>();
  for (const { mock_id: id, timestamp } of hits) {
    const age = nowMs - Date.parse(timestamp);
    const at = count - 1 - Math.floor((Math.max(0, age) / spanMs) * count);
    if (!(at >= 0)) continue;
    const own = bins.get(id) ?? Array.from({ length: count }, () => 0);
    own[at] = (own[at] ?? 0) + 1;
    bins.set(id, own);
  }
  return bins;
}
