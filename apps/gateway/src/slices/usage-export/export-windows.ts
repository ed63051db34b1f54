import { dayOf, monthOf, type CalendarWindow } from "@headworks/gateway-contract";

export type ExportKind = "hourly" | "daily" | "monthly";

/** A UTC period in milliseconds since 1970, end exclusive. */
export interface ExportWindow extends CalendarWindow {
  readonly kind: ExportKind;
}

const HOUR_MS = 3_600_000;

/** The UTC hour, day or month that contains a time. */
export function windowAt(kind: ExportKind, timeMs: number): ExportWindow {
  if (kind === "monthly") return { kind, ...monthOf(timeMs) };
  if (kind === "daily") return { kind, ...dayOf(timeMs) };
  const startMs = Math.floor(Math.floor(timeMs) / HOUR_MS) * HOUR_MS;
  return { kind, startMs, endMs: startMs + HOUR_MS };
}

/** The last window that ended at or before a time. */
export function lastClosed(kind: ExportKind, nowMs: number): ExportWindow {
  return windowAt(kind, windowAt(kind, nowMs).startMs - 1);
}

/**
 * File name of a statement: `gateway-usage-daily-2026-08-29.csv`, an hour as `2026-08-29T14Z`, a month as `2026-08`.
 */
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
