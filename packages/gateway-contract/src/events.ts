import type { EventKind } from "./primitives.ts";

/** Payload of each kind of event: bounded labels and numbers, never request data (specification, Events). */
export interface EventPayloads {
  breaker_opened: {
    readonly upstream: string;
    readonly detail: "consecutive_failures" | "error_ratio" | "half_open_probe_failed";
  };
  breaker_half_open: { readonly upstream: string };
  breaker_closed: { readonly upstream: string; readonly detail: "half_open_probe_succeeded" };
  endpoint_ejected: { readonly upstream: string; readonly endpoint: string };
  endpoint_recovered: { readonly upstream: string; readonly endpoint: string };
  /** `content_hash` fits a JSON number exactly. */
  config_published: { readonly generation: number; readonly content_hash: number; readonly route_count: number };
  config_rejected: { readonly issue_count: number; readonly generation: number };
}

/** What is sent to webhook targets; members in this order. */
export interface EventEnvelope<K extends EventKind = EventKind> {
  /** `evt-<boot ms, hex>-<16 hex digits>`: sorts in the order of emission, unique across restarts. */
  readonly id: string;
  readonly kind: K;
  /** RFC 3339, UTC, milliseconds. */
  readonly timestamp: string;
  /** `<gateway name>-<pid>-<boot time>`. */
  readonly gateway: string;
  readonly payload: EventPayloads[K];
}
