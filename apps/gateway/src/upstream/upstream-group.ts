import type { Upstream } from "@headworks/gateway-contract";
import type { UpstreamHost } from "./upstream-host.ts";

/** What balancing may look at. */
export interface PickKey {
  /** For `ip_hash`, and for `header_hash` where the header is not there. */
  readonly clientAddress: string;
  /** Value of the field that `header_hash` names, if the request has it. */
  readonly headerValue: string | undefined;
}

/** One endpoint with everything that is remembered about it; survives generations under `address:port`. */
export interface EndpointState {
  readonly address: string;
  readonly port: number;
  /** `address:port`, IPv6 in brackets. */
  readonly key: string;
  /** Attempts between their dispatch and the head of the answer. */
  readonly inFlight: number;
  /** An attempt begins. Its epoch ties the result to the health of now: exactly one of the next three takes it back. */
  dispatched(): number;
  /** The head of its answer came; a status of 500 and above counts as a failure. */
  answered(epoch: number, status: number, latencyMs: number): void;
  /** No head came: refused, reset, timed out, not HTTP. */
  failed(epoch: number): void;
  /** The attempt was given up by us (the client went away, a hedge lost): neither success nor failure. */
  abandoned(epoch: number): void;
  /** An answer below 500 came to its end, or its client left. */
  completed(epoch: number): void;
  /** The body of an answer broke off: counts against the endpoint, not against the breaker. */
  bodyBroke(): void;
}

/** A pass for one attempt, to be settled exactly once; or the refusal of the breaker. */
export type Admission = AttemptPass | { readonly retryAfterS: number };

/** Leave to make one attempt. */
export interface AttemptPass {
  /** Ties the result to the state of the breaker that let it pass. */
  readonly epoch: number;
}

/** Requests that got no connection of an upstream, or lost theirs, since the upstream was first seen. */
export interface QueueCounts {
  /** Refused, since `max_pending` waited already. */
  saturated: number;
  /** Waited for `pending_timeout_ms`. */
  timedOut: number;
  /** Ended in favour of others, since their client was slow. */
  evicted: number;
}

/** An upstream: its endpoints, balancing, health, breaker and retry budget. */
export interface UpstreamGroup {
  readonly name: string;
  /** As the running generation has it. */
  readonly document: Upstream;
  readonly endpoints: readonly EndpointState[];
  readonly queueCounts: QueueCounts;
  /** Asks the breaker, before every attempt. */
  admit(): Admission;
  /**
   * An admitted attempt ended: `ok` for a head below 500; undefined when it says nothing about the upstream
   * (saturated here, no endpoint, given up by us).
   */
  settle(epoch: number, ok: boolean | undefined): void;
  /** An endpoint for an attempt, not one of `tried` while another can be had; undefined if there is none at all. */
  pick(key: PickKey, tried: readonly EndpointState[]): EndpointState | undefined;
  /** A first attempt was made; feeds the retry budget. */
  countRequest(): void;
  /** Takes one retry from the budget; false when it is spent. */
  spendRetry(): boolean;
  /** The same for an attempt beside one that takes long. */
  spendHedge(): boolean;
}

/** The upstream chosen for a request. */
export interface UpstreamChoice {
  readonly group: UpstreamGroup;
  /** What the field Host of the request says. */
  readonly host: UpstreamHost;
  /** A cookie to set on the answer, for stickiness. */
  readonly setCookie: string | undefined;
}
