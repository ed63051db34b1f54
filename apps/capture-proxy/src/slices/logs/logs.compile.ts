import type { Settings } from "@headworks/capture-contract";
import { compileHostPatterns } from "@headworks/host-patterns";

/** What of traffic is logged. */
export interface TrafficLogPlan {
  readonly level: Settings["debug_logging"]["level"];
  readonly matches: (host: string) => boolean;
  /** Headers whose values are hidden, in lower case. */
  readonly redactedHeaders: ReadonlySet<string>;
  /** False at a level without bodies, and where bodies are to be hidden. */
  readonly watchesBodies: boolean;
  /** Bytes of a body that are logged, before and after decoding. */
  readonly maxBodyBytes: number;
}

/** Nobody can want these in a log, whatever the list says. */
const ALWAYS_REDACTED = ["proxy-authorization", "x-api-key"];

/** A body is in memory while it is logged. */
const MAX_BODY_BYTES = 33_554_432;

/** Undefined where nothing is logged. */
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
