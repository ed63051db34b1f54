/** A budget's calendar window (specification, consumer quotas). */
export type BudgetName = "daily" | "monthly";

/** One budget of a charge. */
export interface BudgetCharge {
  readonly budget: BudgetName;
  /** Start of the window, seconds since 1970. */
  readonly windowStartS: number;
  readonly limit: bigint;
}

/** What became of a charge. `used` are the counters after it, in the order of the budgets asked for. */
export type ChargeResult =
  | { readonly outcome: "charged"; readonly used: readonly bigint[] }
  /** Nothing was charged: these budgets have no unit left. */
  | { readonly outcome: "exhausted"; readonly budgets: readonly BudgetName[]; readonly used: readonly bigint[] }
  | { readonly outcome: "failed"; readonly error: string };

/** Exact counters that are on disk before anyone is told. */
export interface QuotaStore {
  /**
   * Takes one unit of every budget, of all or of none, and resolves after the commit. `enforce` false counts beyond
   * the limits. Never rejects.
   */
  charge(consumer: string, budgets: readonly BudgetCharge[], enforce: boolean): Promise<ChargeResult>;
  /** Counters of windows, 0 where nothing was counted; undefined when the consumer has no row. */
  usage(
    consumer: string,
    windows: readonly { readonly budget: BudgetName; readonly windowStartS: number }[],
  ): Promise<readonly bigint[] | undefined>;
  /** Makes rows for the consumers of the running configuration. */
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
  /** Best effort: rejects when it cannot be written, which the caller logs. */
  append(event: OutboxEvent): Promise<void>;
  /** A target had its outcome; when it was the last one the event is acknowledged. */
  acknowledge(id: string, target: string): Promise<void>;
  /** Events without all their outcomes, oldest first. */
  pending(): Promise<readonly OutboxEvent[]>;
}

/** A published or rejected candidate, for history and rollback. */
export interface GenerationRecord {
  readonly number: number;
  readonly contentHash: number;
  readonly publishedMs: number;
  readonly source: "startup" | "reload" | "admin" | "rollback";
  readonly actor: string | undefined;
  /** The document as it was written, with its secret references; inline secrets are replaced. */
  readonly text: string;
}

/** What outlives the process, in the file that `GATEWAY_STATE_DB` names. */
export interface StateStore {
  readonly quotas: QuotaStore;
  readonly outbox: Outbox;
  recordGeneration(record: GenerationRecord): Promise<void>;
  generations(limit: number): Promise<readonly GenerationRecord[]>;
  /** Per-consumer counts of an hour, added to what is there. */
  addUsage(rows: readonly UsageRow[]): Promise<void>;
  /** Rows of hours from `fromS` (included) to `toS` (excluded). */
  usageRows(fromS: number, toS: number): Promise<readonly UsageRow[]>;
  close(): Promise<void>;
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
