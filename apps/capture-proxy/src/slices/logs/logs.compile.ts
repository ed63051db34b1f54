import type { Settings } from "@headworks/capture-contract";
import { compileHostPatterns } from "@headworks/host-patterns";

/** Which parts of traffic are logged. */
export interface TrafficLogPlan {
  readonly level: Settings["debug_logging"]["level"];
  readonly matches: (host: string) => boolean;
  /** Headers with hidden values, in lower case. */
  readonly redactedHeaders: ReadonlySet<string>;
  /** False at levels without bodies and while bodies are redacted. */
  readonly watchesBodies: boolean;
  /** Limit of logged bytes per body, before and after decoding. */
  readonly maxBodyBytes: number;
}

/** Redacted regardless of the settings. */
const ALWAYS_REDACTED = ["proxy-authorization", "x-api-key"];

/** Bodies are held in memory until they are logged. */
const MAX_BODY_BYTES = 33_554_432;

/** Undefined if traffic logging is off. */
export function compileTrafficLog(settings: Settings): TrafficLogPlan | undefined {
  const { enabled, level, host_filter, redact_headers, redact_bodies } = settings.debug_logging;
  if (!enabled) return undefined;
  const hosts = host_filter.length === 0 ? undefined : compileHostPatterns(host_filter, "focus");
  return {
    level,
    matches: (host) => hosts === undefined || hosts.matches(host),
    redactedHeaders: new Set([...redact_headers.map((name) => name.toLowerCase()), ...ALWAYS_REDACTED]),
    watchesBodies: level === "full" && !redact_bodies,
    maxBodyBytes: Math.min(settings.max_body_size, MAX_BODY_BYTES),
  };
}
