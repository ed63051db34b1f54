/** A calendar window of UTC: start included, end excluded, both milliseconds since 1970. */
export interface CalendarWindow {
  readonly startMs: number;
  readonly endMs: number;
}

const DAY_MS = 86_400_000;

/** The UTC day that holds a moment; any that a `Date` can hold, before 1970 too. */
export function dayOf(nowMs: number): CalendarWindow {
  // Whole milliseconds first: divided, the smallest fractions before 1970 would become zero.
  const startMs = Math.floor(Math.floor(nowMs) / DAY_MS) * DAY_MS;
  return { startMs, endMs: startMs + DAY_MS };
}

/** The UTC month that holds a moment. */
export function monthOf(nowMs: number): CalendarWindow {
  // A fraction would be cut towards 1970, which is up for the time before it.
  const date = new Date(Math.floor(nowMs));
  // Setters, since `Date.UTC` takes the years 0 to 99 for 1900 to 1999.
  date.setUTCDate(1);
  date.setUTCHours(0, 0, 0, 0);
  const startMs = date.getTime();
  date.setUTCMonth(date.getUTCMonth() + 1);
  return { startMs, endMs: date.getTime() };
}

/** Whole seconds until a window ends, rounded up, at least 1: the value of `Retry-After`. */
export function secondsUntil(endMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((endMs - nowMs) / 1000));
}
