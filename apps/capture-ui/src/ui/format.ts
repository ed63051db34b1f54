const NUMBER = new Intl.NumberFormat("en-US");
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** `4,212`. */
export function formatCount(count: number): string {
  return NUMBER.format(count);
}

/** `0 B`, `412 B`, `3.2 KiB`, `84 MiB`; 1 KiB is 1,024 bytes. An em dash for an unknown size. */
export function formatBytes(sizeBytes: number | null | undefined): string {
  if (sizeBytes === null || sizeBytes === undefined || !Number.isFinite(sizeBytes)) return "—";
  let value = Math.max(0, sizeBytes);
  let unit = 0;
  // 1023.95 would print as "1024.0".
  while (value >= 1023.95 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 99.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit] ?? "B"}`;
}

/** `0.4 ms`, `38 ms`, `1.20 s`, `2 min 5 s`. An em dash for an unknown duration. */
export function formatDuration(ms: number | null | undefined): string {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "—";
  if (ms < 0.05) return "0 ms";
  if (ms < 9.95) return `${ms.toFixed(1).replace(/\.0$/u, "")} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_995) return `${(ms / 1000).toFixed(2)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

/** `1.4 %`; `0 %` when there is nothing to divide by. */
export function formatShare(part: number, whole: number): string {
  if (whole <= 0 || part <= 0) return "0 %";
  const percent = (part / whole) * 100;
  if (percent < 0.1) return "< 0.1 %";
  return `${percent >= 99.95 || Number.isInteger(percent) ? percent.toFixed(0) : percent.toFixed(1)} %`;
}

const two = (value: number): string => String(value).padStart(2, "0");
const three = (value: number): string => String(value).padStart(3, "0");

/** Time of day with milliseconds, `14:02:11.204`, in local time or UTC. */
export function formatTimeOfDay(epochMs: number, utc = false): string {
  if (!Number.isFinite(epochMs)) return "—";
  const at = new Date(epochMs);
  return utc
    ? `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}:${two(at.getUTCSeconds())}.${three(at.getUTCMilliseconds())}`
    : `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${three(at.getMilliseconds())}`;
}

/** Time since: `now`, `12 s ago`, `3 min ago`, `5 h ago`, `2 d ago`. */
export function formatAgo(epochMs: number, nowMs: number): string {
  if (!Number.isFinite(epochMs)) return "—";
  const seconds = Math.round((nowMs - epochMs) / 1000);
  if (seconds < 2) return "now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** Date and time for lists of sessions and details: `2026-11-21 14:02:11`, in local time or UTC. */
export function formatDateTime(epochMs: number, utc = false): string {
  if (!Number.isFinite(epochMs)) return "—";
  const at = new Date(epochMs);
  return utc
    ? `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`
    : `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Right-to-left letters, and characters that change the direction. */
const DIRECTED =
  /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Isolates a name's text direction inside a sentence. Names without directional characters are returned unchanged. */
export function isolatedName(name: string): string {
  // A pop-isolate character inside the name would end the isolation early.
  return DIRECTED.test(name) ? `\u2068${name.replaceAll(/[\u2066-\u2069]/gu, "")}\u2069` : name;
}
