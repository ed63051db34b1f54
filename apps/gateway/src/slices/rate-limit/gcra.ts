/** One window of a rule: `burst` requests at once, then one each `intervalMs`. */
export interface RateWindow {
  readonly burst: number;
  readonly intervalMs: number;
}

/** How a window stands after it was asked. */
export interface WindowState {
  /** How long until one more request would pass; 0 when this one did. */
  readonly waitMs: number;
  /** Whole requests that would pass now. */
  readonly remaining: number;
  /** When the burst is whole again if nothing comes. */
  readonly fullAtMs: number;
}

/** Sums of intervals are not exact in binary fractions; a request is not refused for so small a part of one. */
const ROUNDING = 1e-7;

/**
 * Generic cell rate algorithm. `fullAtMs` is all that is remembered of a key: the moment at which its burst is whole
 * again, moved on by one interval for each request that passes. A key that was never seen is full since ever.
 */
export function chargeWindow(window: RateWindow, fullAtMs: number, nowMs: number): WindowState {
  const { burst, intervalMs } = window;
  const charged = Math.max(fullAtMs, nowMs) + intervalMs;
  // In intervals, so that rounding weighs the same for every rate.
  const left = burst - (charged - nowMs) / intervalMs;
  if (left < -ROUNDING) return { waitMs: -left * intervalMs, remaining: 0, fullAtMs };
  return { waitMs: 0, remaining: Math.floor(left + ROUNDING), fullAtMs: charged };
}
