import type {
  BudgetName,
  ExportRun,
  GenerationFacts,
  GenerationRecord,
  IssuedCredential,
  OutboxEvent,
  UsageRow,
  UsageSpan,
  UsageTotal,
} from "./state-store.ts";

export interface StoreSetup {
  readonly path: string;
  readonly nowMs: number;
  /** For benchmarks. */
  readonly pageBytes?: number;
}

/**
 * One transaction of the ledger, replied to with `settled`. A row of `writes` has three numbers: key of consumer and
 * budget (see `counterKey`), window start, new value. A row of `loads` has the first two: counters to read. `names` are
 * consumers to create rows for.
 */
export interface GroupMessage {
  readonly kind: "group";
  readonly nowMs: number;
  readonly writes: BigInt64Array | undefined;
  readonly loads: BigInt64Array | undefined;
  readonly names: readonly string[] | undefined;
}

/** The reply to a group: all of it is durable, or `error` says why nothing is. */
export interface GroupOutcome {
  readonly error: string | undefined;
  /** Counters in the order of `loads`. */
  readonly loaded: BigUint64Array | undefined;
  /** Consumers' row ids in the order of `names`. */
  readonly ids: readonly number[] | undefined;
}

export const counterKey = (consumerId: number, budget: BudgetName): bigint =>
  BigInt(consumerId) * 2n + (budget === "daily" ? 0n : 1n);

/** Arguments of all calls except charges, by name. */
export interface StoreCalls {
  usageOf: {
    readonly names: readonly string[];
    readonly windows: readonly (readonly [budget: BudgetName, startS: number])[];
  };
  appendEvent: OutboxEvent & { readonly nowMs: number };
  acknowledgeEvent: { readonly id: string; readonly target: string; readonly nowMs: number };
  pendingEvents: { readonly afterSeq: number };
  addGeneration: GenerationRecord;
  generations: { readonly limit: number };
  generation: { readonly number: number };
  addUsage: readonly UsageRow[];
  usageTotals: { readonly span: UsageSpan; readonly fromS: number; readonly toS: number };
  oldestHour: undefined;
  addRun: ExportRun;
  runs: { readonly limit: number };
  lastScheduled: { readonly window: ExportRun["window"]; readonly beforeS: number };
  credentials: undefined;
  addCredential: IssuedCredential;
  retireCredential: { readonly id: string; readonly atMs: number };
  prune: { readonly nowMs: number };
}

/** Results of the calls. */
export interface StoreResponses {
  usageOf: readonly (readonly bigint[] | undefined)[];
  appendEvent: void;
  acknowledgeEvent: void;
  /** A page of events; `nextSeq` is the start of the next page, undefined at the end. */
  pendingEvents: { readonly events: readonly OutboxEvent[]; readonly nextSeq: number | undefined };
  addGeneration: void;
  generations: readonly GenerationFacts[];
  generation: GenerationRecord | undefined;
  addUsage: void;
  /** Totals of one rollup; `nextS` is the start of the next non-empty one before `toS`. */
  usageTotals: { readonly totals: readonly UsageTotal[]; readonly nextS: number | undefined };
  oldestHour: number | undefined;
  addRun: void;
  runs: readonly ExportRun[];
  lastScheduled: number | undefined;
  credentials: readonly IssuedCredential[];
  addCredential: void;
  retireCredential: void;
  /** False if more remains to be deleted: pruning runs in steps, so that charges can interleave. */
  prune: boolean;
}

export type StoreCallName = keyof StoreCalls;
export type StoreRequest = { [N in StoreCallName]: { readonly name: N; readonly input: StoreCalls[N] } }[StoreCallName];

export type ToStore =
  | GroupMessage
  | { readonly kind: "call"; readonly call: number; readonly request: StoreRequest }
  | { readonly kind: "close" };

export type FromStore =
  | { readonly kind: "ready" }
  | { readonly kind: "refused"; readonly errorKind: string; readonly error: string }
  | ({ readonly kind: "settled" } & GroupOutcome)
  | { readonly kind: "response"; readonly call: number; readonly value: StoreResponses[StoreCallName] }
  | { readonly kind: "failed"; readonly call: number; readonly error: string };
