import type { Upstream } from "@headworks/gateway-contract";
import type { UpstreamHost } from "./upstream-host.ts";

/** Inputs of balancing. */
export interface PickKey {
  /** For `ip_hash`, and for `header_hash` if the header is absent. */
  readonly clientAddress: string;
  /** Value of the field that `header_hash` names. */
  readonly headerValue: string | undefined;
}

/** One endpoint with its state; survives generations under `address:port`. */
export interface EndpointState {
  readonly address: string;
  readonly port: number;
  /** `address:port`, IPv6 in brackets. */
  readonly key: string;
  /** Attempts between dispatch and response head. */
  readonly inFlight: number;
  /**
   * An attempt starts. The epoch ties its result to the current health; exactly one of `answered`, `failed` and
   * `abandoned` must follow.
   */
  dispatched(): number;
  /** The response head arrived; a status of 500 and above counts as a failure. */
  answered(epoch: number, status: number, latencyMs: number): void;
  /** No response head: refused, reset, timed out, not HTTP. */
  failed(epoch: number): void;
  /** The gateway abandoned the attempt (client gone, hedge lost): neither success nor failure. */
  abandoned(epoch: number): void;
  /** An answer below 500 came to its end, or its client left. */
  completed(epoch: number): void;
  /** The response body broke off: counts against the endpoint, not against the breaker. */
  bodyBroke(): void;
}

/** A pass for one attempt, to be settled exactly once; or the breaker's refusal. */
export type Admission = AttemptPass | { readonly retryAfterS: number };

export interface AttemptPass {
  /** Ties the result to the state of the breaker at admission. */
  readonly epoch: number;
}

/** Requests that got no connection of an upstream, or lost theirs, since the upstream was first seen. */
export interface QueueCounts {
  /** Refused because `max_pending` were queued. */
  saturated: number;
  /** Queued for `pending_timeout_ms`. */
  timedOut: number;
  /** Evicted because their client was slow. */
  evicted: number;
}

/** An upstream: its endpoints, balancing, health, breaker and retry budget. */
export interface UpstreamGroup {
  readonly name: string;
  /** That of the running generation. */
  readonly document: Upstream;
  readonly endpoints: readonly EndpointState[];
  readonly queueCounts: QueueCounts;
  /** Consults the breaker; called before every attempt. */
  admit(): Admission;
  /**
   * An admitted attempt ended: `ok` for a head below 500; undefined if it says nothing about the upstream (saturated
   * here, no endpoint, abandoned).
   */
  settle(epoch: number, ok: boolean | undefined): void;
  /** An endpoint for an attempt, outside `tried` if possible; undefined if there is none at all. */
  pick(key: PickKey, tried: readonly EndpointState[]): EndpointState | undefined;
  /** Counts a first attempt for the retry budget. */
  countRequest(): void;
  /** Takes one retry from the budget; false when it is spent. */
  spendRetry(): boolean;
  /** The same for a hedged attempt. */
  spendHedge(): boolean;
}

/** The upstream chosen for a request. */
export interface UpstreamChoice {
  readonly group: UpstreamGroup;
  readonly host: UpstreamHost;
  /** A cookie to set on the response, for stickiness. */
  readonly setCookie: string | undefined;
}
