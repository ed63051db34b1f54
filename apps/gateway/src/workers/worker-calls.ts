import type { EventKind, EventPayloads } from "@headworks/gateway-contract";
import type { AcceptedCandidate } from "#config/generations.ts";
import type { NonceVerdict } from "#slices/consumers/consumers.slice.ts";
import type { RecentTraffic } from "#slices/metrics/metrics.slice.ts";
import type { RateCharge, RateOutcome } from "#slices/rate-limit/rate-limit.slice.ts";
import type { BudgetCharge, ChargeResult, IssuedCredential, UsageRow } from "#storage/state-store.ts";
import type { ForcedState, UpstreamSnapshot } from "#upstream/upstream-state.ts";

/** Where a listener is open. */
export interface ListenerAddress {
  readonly name: string;
  readonly address: string;
  readonly port: number;
}

/** What a worker is started with. */
export interface WorkerSetup {
  /** From 0; a worker that takes another's place has its number. */
  readonly worker: number;
  readonly workers: number;
  readonly configFile: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly logLevel: string;
  readonly hasStore: boolean;
  /** Of the whole gateway. */
  readonly instance: string;
  readonly ticketSecret: Uint8Array;
  readonly issued: readonly IssuedCredential[];
  readonly candidate: AcceptedCandidate;
}

/** An event that happened in a worker. */
export type WorkerEvent = {
  [K in EventKind]: { readonly kind: K; readonly payload: EventPayloads[K] };
}[EventKind];

/** What a worker is like at a moment. */
export interface WorkerStates {
  readonly upstreams: readonly UpstreamSnapshot[];
  readonly activeRequests: number;
}

/** What the control process asks of a worker. */
export type WorkerCalls = {
  /** Publishes the candidate and listens; rejects when that fails. */
  start: { input: WorkerSetup; output: readonly ListenerAddress[] };
  /** A sentence that says why the candidate cannot be run here; undefined when it waits for `publish` or `discard`. */
  prepare: { input: AcceptedCandidate; output: string | undefined };
  /** Runs the prepared generation of this number; rejects when another one is prepared. */
  publish: { input: number; output: readonly ListenerAddress[] };
  discard: { input: undefined; output: void };
  metrics: { input: undefined; output: string };
  states: { input: undefined; output: WorkerStates };
  /** What routes had to do lately. */
  traffic: { input: undefined; output: RecentTraffic };
  force: { input: ForcedState; output: void };
  /** All keys that are given out, from now on. */
  issued: { input: readonly IssuedCredential[]; output: void };
  /** The secret behind tickets of TLS from now on. */
  tickets: { input: Uint8Array; output: void };
  /** Forgets what is cached of a route, or of all; how many routes that are. */
  purge: { input: { readonly route: string | undefined }; output: number };
  /** Is not ready any more, and goes on. */
  withdraw: { input: undefined; output: void };
  /** Drains; answers when all requests have ended and everything that was counted is handed over. */
  stop: { input: { readonly graceMs: number }; output: void };
};

/** What a worker asks of the control process. */
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
