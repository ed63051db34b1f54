import { isNumeric } from "@headworks/json";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

/** A number of bytes for people: `0 B`, `1.5 KiB`, `12 MiB`. */
export function sizeText(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return "";
  let value = bytes;
  let unit = 0;
  while (value >= 1023.95 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 99.95 ? value.toFixed(0) : value.toFixed(1);
  return `${digits} ${UNITS[unit] ?? ""}`;
}

/** Milliseconds for people: `3.1 ms`, `250 ms`, `1.25 s`, `2 min 5 s`. */
export function durationText(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "";
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_995) return `${(ms / 1000).toFixed(2)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/**
 * A moment of the API in local time, to the second, with its zone: without one a query would take it for UTC. As it stands
 * here it can be put into a query.
 */
export function timeText(timestamp: string | null | undefined): string {
  if (timestamp === null || timestamp === undefined) return "";
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return timestamp;
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  const eastMinutes = -date.getTimezoneOffset();
  const [hours, minutes] = [Math.floor(Math.abs(eastMinutes) / 60), Math.abs(eastMinutes) % 60];
  const zone = eastMinutes === 0 ? "Z" : `${eastMinutes < 0 ? "-" : "+"}${two(hours)}:${two(minutes)}`;
  return `${day}T${time}${zone}`;
}

/** Any JSON value on one line: lists with commas, nothing for null. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return value ? "yes" : "no";
  // Measured values carry a dozen digits that say nothing.
  if (typeof value === "number") return String(Number(value.toFixed(3)));
  if (isNumeric(value)) return String(value);
  if (Array.isArray(value) && value.every((item) => typeof item !== "object" || item === null || isNumeric(item))) {
    return value.map(valueText).join(", ");
  }
  return JSON.stringify(value);
}
