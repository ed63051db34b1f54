/** A UTC calendar window in milliseconds since 1970, end exclusive. */
export interface CalendarWindow {
  readonly startMs: number;
  readonly endMs: number;
}

const DAY_MS = 86_400_000;

/** The UTC day that contains a time, also before 1970. */
export function dayOf(nowMs: number): CalendarWindow {
  // Floors to milliseconds first: dividing a tiny negative fraction would round to zero.
  const startMs = Math.floor(Math.floor(nowMs) / DAY_MS) * DAY_MS;
  return { startMs, endMs: startMs + DAY_MS };
}

/** The UTC month that contains a time. */
export function monthOf(nowMs: number): CalendarWindow {
  // `Date` truncates fractions toward zero, which is upward before 1970.
  const date = new Date(Math.floor(nowMs));
  // Setters, since `Date.UTC` maps the years 0 to 99 to 1900 to 1999.
  date.setUTCDate(1);
  date.setUTCHours(0, 0, 0, 0);
  const startMs = date.getTime();
  date.setUTCMonth(date.getUTCMonth() + 1);
  return { startMs, endMs: date.getTime() };
}

/** Seconds until a window ends, rounded up, at least 1: the value of `Retry-After`. */
export function secondsUntil(endMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((endMs - nowMs) / 1000));
}
