import type { EventKind } from "./primitives.ts";

/** Payloads by event kind: bounded labels and numbers, never request data (specification, Events). */
export interface EventPayloads {
  breaker_opened: {
    readonly upstream: string;
    readonly detail: "consecutive_failures" | "error_ratio" | "half_open_probe_failed";
  };
  breaker_half_open: { readonly upstream: string };
  breaker_closed: { readonly upstream: string; readonly detail: "half_open_probe_succeeded" };
  endpoint_ejected: { readonly upstream: string; readonly endpoint: string };
  endpoint_recovered: { readonly upstream: string; readonly endpoint: string };
  /** `content_hash` is exact as a JSON number. */
  config_published: { readonly generation: number; readonly content_hash: number; readonly route_count: number };
  config_rejected: { readonly issue_count: number; readonly generation: number };
}

/** The body sent to webhook targets; members in this order. */
export interface EventEnvelope<K extends EventKind = EventKind> {
  /** `evt-<boot ms, hex>-<16 hex digits>`: sorts in order of emission, unique across restarts. */
  readonly id: string;
  readonly kind: K;
  /** RFC 3339, UTC, milliseconds. */
  readonly timestamp: string;
  /** `<gateway name>-<pid>-<boot time>`. */
  readonly gateway: string;
  readonly payload: EventPayloads[K];
}
