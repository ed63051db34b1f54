import { storageErrorKind, type StorageErrorKind } from "@headworks/files";

/** A budget's calendar window (specification, consumer quotas). */
export type BudgetName = "daily" | "monthly";

/** A counter: one budget of a consumer in one window. */
export interface BudgetWindow {
  readonly budget: BudgetName;
  /** Start of the window, seconds since 1970. */
  readonly windowStartS: number;
}

export interface BudgetCharge extends BudgetWindow {
  /** 1 to 2^64 - 1. */
  readonly limit: bigint;
}

export type ChargeResult =
  /** Counted and durable. `over` lists exceeded budgets; empty if enforced. */
  | { readonly outcome: "charged"; readonly over: readonly BudgetName[] }
  /** Nothing was charged: these budgets are exhausted. */
  | { readonly outcome: "exhausted"; readonly budgets: readonly BudgetName[] }
  /** Nothing was charged: the consumer has no row; call `syncConsumers` first. */
  | { readonly outcome: "unsynced" }
  /** Not known to be charged: the write failed or timed out. */
  | { readonly outcome: "failed"; readonly error: string };

/** Exact counters, durable before a charge resolves. */
export interface QuotaStore {
  /**
   * Charges one unit to all budgets or none. Returns synchronously if no commit is needed (exhausted budget, missing
   * row), otherwise after the commit. `enforce` false counts beyond the limits. Never throws or rejects.
   */
  charge(consumer: string, budgets: readonly BudgetCharge[], enforce: boolean): ChargeResult | Promise<ChargeResult>;
  /** Durable counters per consumer and window. Rejects if the store cannot be read. */
  usage(
    consumers: readonly string[],
    windows: readonly BudgetWindow[],
  ): Promise<readonly (readonly bigint[] | undefined)[]>;
  /** Adds `delta` to a counter, clamped to 64 bits. Resolves when durable; rejects if uncertain. */
  adjust(consumer: string, window: BudgetWindow, delta: bigint): Promise<void>;
  /**
   * Creates rows for consumers of the running configuration. After a failure it is retried with the next charge of such
   * a consumer, which fails with it instead of passing uncounted.
   */
  syncConsumers(names: readonly string[]): Promise<void>;
}

/** An event with pending deliveries. */
export interface OutboxEvent {
  readonly id: string;
  readonly kind: string;
  readonly createdMs: number;
  /** The envelope's bytes as text. */
  readonly envelope: string;
  /** URLs of targets without an outcome. */
  readonly targets: readonly string[];
}

/** Critical events, kept until every target has an outcome (specification, delivery rule 7). */
export interface Outbox {
  /** Best effort: the caller logs a rejection. Known ids are ignored. */
  append(event: OutboxEvent): Promise<void>;
  /** Records the outcome of a target; the last one acknowledges the event. */
  acknowledge(id: string, target: string): Promise<void>;
  /** Unacknowledged events, oldest first. */
  pending(): Promise<readonly OutboxEvent[]>;
}

export interface GenerationFacts {
  /** Unique and increasing. */
  readonly generation: number;
  readonly contentHash: number;
  readonly routeCount: number;
  readonly publishedMs: number;
  readonly source: "startup" | "reload" | "admin" | "rollback";
  readonly actor: string | undefined;
}

/** A published configuration with its document, for history and rollback. */
export interface GenerationRecord extends GenerationFacts {
  /** The submitted document with its secret references; inline secrets are replaced. */
  readonly text: string;
}

/** Traffic of one consumer in one hour. */
export interface UsageRow {
  readonly consumer: string;
  readonly hourStartS: number;
  readonly requests: number;
  readonly errors: number;
  readonly rateLimited: number;
  readonly shed: number;
  readonly totalMs: number;
}

/** Traffic of one consumer, summed over a period. */
export type UsageTotal = Omit<UsageRow, "hourStartS">;

export interface UsageStretch {
  readonly totals: readonly UsageTotal[];
  /** Non-empty hours or days. */
  readonly rollups: number;
}

/** The rollup to read. Hours are retained for 40 days, days for 400. */
export type UsageSpan = "hour" | "day";

/** An attempt to write a usage statement. */
export interface ExportRun {
  readonly window: "hourly" | "daily" | "monthly";
  readonly windowStartS: number;
  /** False if requested by an operator. */
  readonly scheduled: boolean;
  readonly status: "ok" | "failed";
  readonly partial: boolean;
  readonly formats: readonly string[];
  readonly directory: string;
  readonly consumers: number;
  readonly requests: number;
  readonly windowsNonempty: number;
  readonly error: string | undefined;
  readonly generatedAtMs: number;
}

export interface UsageStore {
  /** Adds counts in one transaction. Rejects if nothing was added. */
  add(rows: readonly UsageRow[]): Promise<void>;
  /** Sums per consumer from `fromS` inclusive to `toS` exclusive, read in steps so that charges do not wait. */
  totals(span: UsageSpan, fromS: number, toS: number): Promise<UsageStretch>;
  /** Start of the oldest retained hour, seconds since 1970. */
  oldestHour(): Promise<number | undefined>;
  addRun(run: ExportRun): Promise<void>;
  runs(limit: number): Promise<readonly ExportRun[]>;
  /** Start of the newest window of a kind that began before a time and was written by a scheduled run. */
  lastScheduled(window: ExportRun["window"], beforeS: number): Promise<number | undefined>;
}

/** An API key issued through the admin API. */
export interface IssuedCredential {
  readonly id: string;
  readonly consumer: string;
  /** SHA-256 of the key. */
  readonly digest: Uint8Array;
  readonly createdMs: number;
  /** End of validity; undefined until retired. */
  readonly retireMs: number | undefined;
}

/** Issued keys. Changes are durable when a call resolves. */
interface CredentialStore {
  /** Oldest first; keys retired more than a month ago are deleted. */
  all(): Promise<readonly IssuedCredential[]>;
  /** Rejects for a duplicate. */
  add(credential: IssuedCredential): Promise<void>;
  retire(id: string, atMs: number): Promise<void>;
}

/** Persistent state in the file of `GATEWAY_STATE_DB`. */
export interface StateStore {
  readonly quotas: QuotaStore;
  readonly outbox: Outbox;
  readonly usage: UsageStore;
  readonly credentials: CredentialStore;
  recordGeneration(record: GenerationRecord): Promise<void>;
  /** Newest first. */
  generations(limit: number): Promise<readonly GenerationFacts[]>;
  /** Undefined if not retained. */
  generation(number: number): Promise<GenerationRecord | undefined>;
  /** Deletes expired data. Runs automatically at the start and hourly. */
  prune(): Promise<void>;
  /** Commits pending work and releases the file; later calls fail. */
  close(): Promise<void>;
}

export type StoreErrorKind = StorageErrorKind | "too-new" | "foreign";

/** A message for an operator and the kind of error. */
export class StateStoreError extends Error {
  override readonly name = "StateStoreError";
  readonly errorKind: StoreErrorKind;

  constructor(errorKind: StoreErrorKind, message: string) {
    super(message);
    this.errorKind = errorKind;
  }
}

const SENTENCES: Readonly<Record<Exclude<StorageErrorKind, "other">, string>> = {
  full: "The disk of the state store is full",
  "read-only": "The file of the state store cannot be written",
  io: "The disk of the state store reports an error",
  busy: "The state store is in use by another process",
  corrupt: "The file of the state store is damaged, or no database",
};

/** Describes an error in a sentence with the file's name. */
export function toStateStoreError(error: unknown, path: string): StateStoreError {
  if (error instanceof StateStoreError) return error;
  const errorKind = storageErrorKind(error);
  const cause = error instanceof Error ? error.message : String(error);
  const sentence = errorKind === "other" ? "The state store broke" : SENTENCES[errorKind];
  return new StateStoreError(errorKind, `${sentence} (${path}: ${cause})`);
}
