import type { EventKind, EventPayloads } from "@headworks/gateway-contract";
import type { AcceptedCandidate } from "#config/generations.ts";
import type { NonceVerdict } from "#slices/consumers/consumers.slice.ts";
import type { RecentTraffic } from "#slices/metrics/metrics.slice.ts";
import type { RateCharge, RateOutcome } from "#slices/rate-limit/rate-limit.slice.ts";
import type { BudgetCharge, ChargeResult, IssuedCredential, UsageRow } from "#storage/state-store.ts";
import type { ForcedState, UpstreamSnapshot } from "#upstream/upstream-registry.ts";

export interface ListenerAddress {
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

/** Start parameters of a worker. */
export interface WorkerSetup {
  /** From 0; a replacement keeps the number. */
  readonly worker: number;
  readonly workers: number;
  readonly configFile: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly logLevel: string;
  readonly hasStore: boolean;
  /** Token of the whole gateway. */
  readonly instance: string;
  readonly ticketSecret: Uint8Array;
  readonly issued: readonly IssuedCredential[];
  readonly candidate: AcceptedCandidate;
}

export type WorkerEvent = {
  [K in EventKind]: { readonly kind: K; readonly payload: EventPayloads[K] };
}[EventKind];

export interface WorkerStates {
  readonly upstreams: readonly UpstreamSnapshot[];
  readonly activeRequests: number;
}

/** Calls from the control process to a worker. */
export type WorkerCalls = {
  /** Publishes the candidate and listens; rejects on failure. */
  start: { input: WorkerSetup; output: readonly ListenerAddress[] };
  /** Returns why the candidate cannot run here, as a sentence; undefined when it awaits `publish` or `discard`. */
  prepare: { input: AcceptedCandidate; output: string | undefined };
  /** Publishes the prepared generation with this number; rejects if another one is prepared. */
  publish: { input: number; output: readonly ListenerAddress[] };
  discard: { input: undefined; output: void };
  metrics: { input: undefined; output: string };
  states: { input: undefined; output: WorkerStates };
  traffic: { input: undefined; output: RecentTraffic };
  force: { input: ForcedState; output: void };
  /** All issued keys. */
  issued: { input: readonly IssuedCredential[]; output: void };
  /** A new secret of TLS session tickets. */
  tickets: { input: Uint8Array; output: void };
  /** Clears the cache of a route, or of all; returns the number of routes. */
  purge: { input: { readonly route: string | undefined }; output: number };
  /** Reports not ready from now on, but continues. */
  withdraw: { input: undefined; output: void };
  /** Drains; replies when all requests have ended and all counters are handed over. */
  stop: { input: { readonly graceMs: number }; output: void };
};

/** Calls from a worker to the control process. */
export type ControlCalls = {
  charge: {
    input: readonly [consumer: string, budgets: readonly BudgetCharge[], enforce: boolean];
    output: ChargeResult;
  };
  addUsage: { input: readonly UsageRow[]; output: void };
  rates: { input: readonly RateCharge[]; output: readonly (RateOutcome | undefined)[] };
  nonce: { input: readonly [keyId: string, nonce: string, forMs: number]; output: NonceVerdict };
  event: { input: WorkerEvent; output: void };
  metrics: { input: undefined; output: string };
};
