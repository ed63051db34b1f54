/** Bytes per second in each direction. */
export interface RateSample {
  readonly down: number;
  readonly up: number;
}

interface Reading {
  readonly atMs: number;
  readonly download_bytes: number;
  readonly upload_bytes: number;
}

/** Adds the rate between two counter readings, and drops the oldest samples beyond `most`. */
export function addSample(
  samples: readonly RateSample[],
  before: Reading,
  after: Reading,
  max: number,
): readonly RateSample[] {
  const seconds = (after.atMs - before.atMs) / 1000;
  if (seconds <= 0) return samples;
  // Counters reset when the service restarts.
  const rate = (from: number, to: number): number => Math.max(0, to - from) / seconds;
  const sample = {
    down: rate(before.download_bytes, after.download_bytes),
    up: rate(before.upload_bytes, after.upload_bytes),
  };
  return [...samples, sample].slice(-max);
}
