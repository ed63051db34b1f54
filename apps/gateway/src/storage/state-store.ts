/** A budget's calendar window (specification, consumer quotas). */
export type BudgetName = "daily" | "monthly";

/** A counter: one budget of a consumer in one window. */
export interface BudgetWindow {
  readonly budget: BudgetName;
  /** Start of the window, seconds since 1970. */
  readonly windowStartS: number;
}

/** One budget of a charge. */
export interface BudgetCharge extends BudgetWindow {
  /** Requests the window may have, 1 to 2^64 - 1. */
  readonly limit: bigint;
}

/** What became of a charge. */
export type ChargeResult =
  /** Counted and on disk. `over` are the budgets that went beyond their limits, always empty when these are enforced. */
  | { readonly outcome: "charged"; readonly over: readonly BudgetName[] }
  /** Nothing was charged: these budgets have no unit left. */
  | { readonly outcome: "exhausted"; readonly budgets: readonly BudgetName[] }
  /** Nothing was charged: the consumer has no row, since nobody asked for one. */
  | { readonly outcome: "unsynced" }
  /** Nothing is known to be charged: the disk refused, or does not answer. */
  | { readonly outcome: "failed"; readonly error: string };

/** Exact counters that are on disk before anyone is told. */
export interface QuotaStore {
  /**
   * Takes one unit of every budget, of all or of none. What is decided without a commit (a budget that is used up, a
   * consumer without a row) is answered at once, all else after the commit. `enforce` false counts beyond the limits.
   * Never throws, never rejects.
   */
  charge(consumer: string, budgets: readonly BudgetCharge[], enforce: boolean): ChargeResult | Promise<ChargeResult>;
  /**
   * What is on disk for each of the consumers, in their order: the counters of the windows, 0 where nothing was
   * counted; undefined for a consumer without a row. Rejects when the store cannot be read.
   */
  usage(
    consumers: readonly string[],
    windows: readonly BudgetWindow[],
  ): Promise<readonly (readonly bigint[] | undefined)[]>;
  /**
   * Corrects a counter by hand: adds `delta`, which may be negative, as far as 0 to 2^64 - 1 goes. Resolves when that is
   * on disk; rejects when nothing is known to be changed.
   */
  adjust(consumer: string, window: BudgetWindow, delta: bigint): Promise<void>;
  /**
   * Makes rows for the consumers of the running configuration. Rejects when that fails; it is tried again then with
   * the next charge of such a consumer, which fails with it rather than pass uncounted.
   */
  syncConsumers(names: readonly string[]): Promise<void>;
}

/** An event that waits for its deliveries. */
export interface OutboxEvent {
  readonly id: string;
  readonly kind: string;
  readonly createdMs: number;
  /** The envelope's bytes as text. */
  readonly envelope: string;
  /** URLs of targets without an outcome so far. */
  readonly targets: readonly string[];
}

/** Critical events, kept until every target had its outcome (specification, delivery rule 7). */
export interface Outbox {
  /** Best effort: rejects when it cannot be written, which the caller logs. An id that is there already is left alone. */
  append(event: OutboxEvent): Promise<void>;
  /** A target had its outcome; when it was the last one the event is acknowledged. */
  acknowledge(id: string, target: string): Promise<void>;
  /** Events without all their outcomes, oldest first. */
  pending(): Promise<readonly OutboxEvent[]>;
}

/** A published configuration. */
export interface GenerationFacts {
  /** No two have the same; later ones have larger ones. */
  readonly generation: number;
  readonly contentHash: number;
  readonly routeCount: number;
  readonly publishedMs: number;
  readonly source: "startup" | "reload" | "admin" | "rollback";
  readonly actor: string | undefined;
}

/** A published configuration with its document, for history and rollback. */
export interface GenerationRecord extends GenerationFacts {
  /** The document as it was written, with its secret references; inline secrets are replaced. */
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

/** Traffic of one consumer, summed over a span of time. */
export type UsageTotal = Omit<UsageRow, "hourStartS">;

/** What a stretch of time holds. */
export interface UsageStretch {
  readonly totals: readonly UsageTotal[];
  /** Hours, or days, in which anything was counted. */
  readonly rollups: number;
}

/** Which of the two rollups is read. Hours are kept for 40 days, days for 400. */
export type UsageSpan = "hour" | "day";

/** One try to write a usage statement. */
export interface ExportRun {
  readonly window: "hourly" | "daily" | "monthly";
  readonly windowStartS: number;
  /** False when an operator asked for it. */
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

/** Usage rollups and what was exported of them. */
export interface UsageStore {
  /** Adds counts of hours to what is there, in one transaction. Rejects when that fails: nothing was added then. */
  add(rows: readonly UsageRow[]): Promise<void>;
  /** Sums per consumer from `fromS` (included) to `toS` (excluded), read piece by piece so that no charge waits. */
  totals(span: UsageSpan, fromS: number, toS: number): Promise<UsageStretch>;
  /** Start of the oldest hour that is kept, seconds since 1970. */
  oldestHour(): Promise<number | undefined>;
  addRun(run: ExportRun): Promise<void>;
  /** Newest first. */
  runs(limit: number): Promise<readonly ExportRun[]>;
  /** Start of the newest window of a kind, among those that began before a time, that a scheduled run wrote. */
  lastScheduled(window: ExportRun["window"], beforeS: number): Promise<number | undefined>;
}

/** A key that was given out over the admin API. */
export interface IssuedCredential {
  readonly id: string;
  readonly consumer: string;
  /** SHA-256 of the key. */
  readonly digest: Uint8Array;
  readonly createdMs: number;
  /** From when on it is not good any more; undefined: it is good until somebody retires it. */
  readonly retireMs: number | undefined;
}

/** Keys that were given out. What a call changes is on disk when it resolves. */
export interface CredentialStore {
  /** Oldest first; those that are retired for a month are forgotten. */
  all(): Promise<readonly IssuedCredential[]>;
  /** Rejects when there is such a key already. */
  add(credential: IssuedCredential): Promise<void>;
  retire(id: string, atMs: number): Promise<void>;
}

/** What outlives the process, in the file that `GATEWAY_STATE_DB` names. */
export interface StateStore {
  readonly quotas: QuotaStore;
  readonly outbox: Outbox;
  readonly usage: UsageStore;
  readonly credentials: CredentialStore;
  recordGeneration(record: GenerationRecord): Promise<void>;
  /** Newest first. */
  generations(limit: number): Promise<readonly GenerationFacts[]>;
  /** Undefined when it is not kept. */
  generation(number: number): Promise<GenerationRecord | undefined>;
  /** Deletes what is older than it is kept for. Runs by itself at the start and each hour. */
  prune(): Promise<void>;
  /** Commits what was asked for and lets the file go; what is asked for later fails. */
  close(): Promise<void>;
}
