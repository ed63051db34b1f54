import { compareNumbers, type Numeric } from "@headworks/json";
import { GRPC_STATUS_NAMES, parseGrpcStatus } from "@headworks/http-fields";
import type { NumberUnit } from "./fields.ts";
import type { NumberRange } from "./query.ts";

const DURATION_MS: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1000,
  m: 60_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const SIZE_BYTES: Readonly<Record<string, number>> = {
  b: 1,
  k: 1000,
  kb: 1000,
  kib: 1024,
  m: 1_000_000,
  mb: 1_000_000,
  mib: 1_048_576,
  g: 1_000_000_000,
  gb: 1_000_000_000,
  gib: 1_073_741_824,
};
const AMOUNT = /^(-?\d{1,16}(?:\.\d{1,9})?)([A-Za-z]*)$/;
const INSTANT =
  /^(\d{4})-(\d{2})-(\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,3})\d{0,6})?)?(Z|[+-]\d{2}:\d{2})?)?$/i;

const EARLIEST = Date.UTC(1900, 0, 1);
const LATEST = Date.UTC(9999, 0, 1);

/** Milliseconds of `200ms`, `1s`, `10m`, `2h`, `1d`; a bare number is milliseconds. Undefined when it is no duration. */
export function parseDuration(text: string): number | undefined {
  return amount(text, DURATION_MS, 1);
}

function amount(text: string, units: Readonly<Record<string, number>>, bare: number): number | undefined {
  const match = AMOUNT.exec(text);
  if (match === null) return undefined;
  const unit = (match[2] ?? "").toLowerCase();
  const factor = unit === "" ? bare : Object.hasOwn(units, unit) ? units[unit] : undefined;
  const value = factor === undefined ? Number.NaN : Number(match[1]) * factor;
  if (!Number.isFinite(value) || Math.abs(value) > Number.MAX_SAFE_INTEGER) return undefined;
  // Six decimals are finer than any clock here and keep the printed form free of exponents.
  return Number.isInteger(value) ? value : Math.round(value * 1e6) / 1e6;
}

/**
 * The stretch of time that an RFC 3339 date or date-time names, in milliseconds since 1970: `2026-11-21` is the whole
 * day, `…T10:00` the minute. Without a zone the time is UTC, so that every reader of a query understands the same.
 */
export function parseInstant(text: string): { readonly start: number; readonly end: number } | undefined {
  const match = INSTANT.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction, zone] = match;
  const iso = `${year}-${month}-${day}T${hour ?? "00"}:${minute ?? "00"}:${second ?? "00"}.${(fraction ?? "").padEnd(3, "0")}Z`;
  const utc = Date.parse(iso);
  if (Number.isNaN(utc) || new Date(utc).getUTCDate() !== Number(day)) return undefined;
  const offset = zone === undefined || zone.toUpperCase() === "Z" ? 0 : zoneOffsetMs(zone);
  const precision =
    hour === undefined
      ? 86_400_000
      : second === undefined
        ? 60_000
        : fraction === undefined
          ? 1000
          : 10 ** (3 - fraction.length);
  const start = utc - offset;
  return start < EARLIEST || start > LATEST ? undefined : { start, end: start + precision - 1 };
}

function zoneOffsetMs(zone: string): number {
  const sign = zone.startsWith("-") ? -1 : 1;
  return sign * (Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4, 6))) * 60_000;
}

/** A number with the unit of its field, as a closed range because `5xx` and `2026-11-21` name many numbers. */
export function parseNumber(
  text: string,
  unit: NumberUnit,
): { readonly min: number; readonly max: number } | undefined {
  if (unit === "time") {
    const instant = parseInstant(text);
    return instant === undefined ? undefined : { min: instant.start, max: instant.end };
  }
  if (unit === "status") {
    const status = /^([0-9])(?:([0-9])([0-9x])|xx)$/i.exec(text);
    if (status === null) return undefined;
    const [, hundreds, tens, ones] = status;
    if (tens === undefined) return { min: Number(hundreds) * 100, max: Number(hundreds) * 100 + 99 };
    const base = Number(`${hundreds}${tens}0`);
    return ones === undefined || /x/i.test(ones)
      ? { min: base, max: base + 9 }
      : { min: base + Number(ones), max: base + Number(ones) };
  }
  const value =
    unit === "grpcStatus"
      ? parseGrpcStatus(text)
      : amount(text, unit === "duration" ? DURATION_MS : unit === "size" ? SIZE_BYTES : {}, 1);
  return value === undefined ? undefined : { min: value, max: value };
}

/** Reads what may follow a number field: `v`, `a..b`, `a..`, `..b`. */
export function parseRange(text: string, unit: NumberUnit): NumberRange | undefined {
  const dots = text.indexOf("..");
  if (dots === -1) {
    const value = parseNumber(text, unit);
    return value === undefined ? undefined : { min: value.min, max: value.max, minExcluded: false, maxExcluded: false };
  }
  const low = text.slice(0, dots);
  const high = text.slice(dots + 2);
  if (low === "" && high === "") return undefined;
  const min = low === "" ? null : parseNumber(low, unit);
  const max = high === "" ? null : parseNumber(high, unit);
  if (min === undefined || max === undefined) return undefined;
  return { min: min?.min ?? null, max: max?.max ?? null, minExcluded: false, maxExcluded: false };
}

/** Applies `>`, `>=`, `<`, `<=` to a number. */
export function comparison(operator: string, value: { readonly min: number; readonly max: number }): NumberRange {
  const open = { min: null, max: null, minExcluded: false, maxExcluded: false };
  if (operator === ">") return { ...open, min: value.max, minExcluded: true };
  if (operator === ">=") return { ...open, min: value.min };
  if (operator === "<") return { ...open, max: value.min, maxExcluded: true };
  return { ...open, max: value.max };
}

/** Compiles ranges, which are alternatives: whether a number lies in one of them. */
export function compileRanges(ranges: readonly NumberRange[]): (value: number) => boolean {
  const [only] = ranges;
  if (only !== undefined && ranges.length === 1) return (value) => inRange(only, value);
  return (value) => ranges.some((range) => inRange(range, value));
}

function inRange(range: NumberRange, value: number): boolean {
  if (range.min !== null && (range.minExcluded ? value <= range.min : value < range.min)) return false;
  return range.max === null || (range.maxExcluded ? value < range.max : value <= range.max);
}

/** Whether a number of a JSON text lies in a range, by its exact value. */
export function inExactRange({ min, max, minExcluded, maxExcluded }: NumberRange, value: Numeric): boolean {
  const fromMin = min === null ? 1 : compareNumbers(value, min);
  const fromMax = max === null ? -1 : compareNumbers(value, max);
  return (minExcluded ? fromMin > 0 : fromMin >= 0) && (maxExcluded ? fromMax < 0 : fromMax <= 0);
}

/** Writes one bound so that `parseNumber` reads the same number back. */
export function formatNumber(value: number, unit: NumberUnit): string {
  if (unit === "time") return new Date(value).toISOString();
  if (unit === "status") return String(value).padStart(3, "0");
  if (unit === "grpcStatus") return GRPC_STATUS_NAMES[value] ?? String(value);
  if (unit === "duration") return formatDuration(value);
  if (unit === "size") {
    for (const [name, factor] of [
      ["mb", 1_000_000],
      ["kb", 1000],
    ] as const) {
      if (value !== 0 && value % factor === 0) return `${value / factor}${name}`;
    }
  }
  return String(value);
}

/** Writes a duration in the largest unit that keeps it whole. */
export function formatDuration(ms: number): string {
  for (const [name, factor] of [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["m", 60_000],
    ["s", 1000],
  ] as const) {
    if (ms !== 0 && ms % factor === 0) return `${ms / factor}${name}`;
  }
  return `${ms}ms`;
}
