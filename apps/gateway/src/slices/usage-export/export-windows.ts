/** How long the time of a usage statement is. */
export type ExportKind = "hourly" | "daily" | "monthly";

/** A stretch of UTC: start included, end excluded, both milliseconds since 1970. */
export interface ExportWindow {
  readonly kind: ExportKind;
  readonly startMs: number;
  readonly endMs: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** The UTC hour, day or month that holds a moment. */
export function windowAt(kind: ExportKind, timeMs: number): ExportWindow {
  if (kind === "monthly") {
    const date = new Date(Math.floor(timeMs));
    date.setUTCDate(1);
    date.setUTCHours(0, 0, 0, 0);
    const startMs = date.getTime();
    date.setUTCMonth(date.getUTCMonth() + 1);
    return { kind, startMs, endMs: date.getTime() };
  }
  const lengthMs = kind === "hourly" ? HOUR_MS : DAY_MS;
  const startMs = Math.floor(Math.floor(timeMs) / lengthMs) * lengthMs;
  return { kind, startMs, endMs: startMs + lengthMs };
}

/** The last window that ended at a moment or before. */
export function lastClosed(kind: ExportKind, nowMs: number): ExportWindow {
  return windowAt(kind, windowAt(kind, nowMs).startMs - 1);
}

/** Name of a statement's file: `gateway-usage-daily-2026-08-29.csv`, an hour as `2026-08-29T14Z`, a month as `2026-08`. */
export function statementFileName({ kind, startMs }: ExportWindow, format: string): string {
  const iso = new Date(startMs).toISOString();
  const day = iso.slice(0, iso.indexOf("T"));
  const time = {
    hourly: `${iso.slice(0, iso.indexOf(":"))}Z`,
    daily: day,
    monthly: day.slice(0, day.lastIndexOf("-")),
  }[kind];
  return `gateway-usage-${kind}-${time}.${format}`;
}
