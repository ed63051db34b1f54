import type { DatabaseSync, StatementSync } from "node:sqlite";
import { CounterTable } from "./counter-table.ts";
import { CredentialTable } from "./credential-table.ts";
import { GenerationTable } from "./generation-table.ts";
import { OutboxTable } from "./outbox-table.ts";
import { openStateDatabase } from "./state-database.ts";
import type {
  FromStore,
  GroupMessage,
  GroupOutcome,
  StoreResponses,
  StoreCallName,
  StoreRequest,
  StoreSetup,
  ToStore,
} from "./store-messages.ts";
import { toStateStoreError } from "./state-store-error.ts";
import { UsageTable } from "./usage-table.ts";

const DAY_S = 86_400;
/** Counters of days and months are kept that long, in seconds and in windows. */
const KEPT_DAILY = { seconds: 40 * DAY_S, windows: 40 };
const KEPT_MONTHLY = { seconds: 430 * DAY_S, windows: 14 };
const KEPT_HOURS_S = 40 * DAY_S;
const KEPT_DAYS_S = 400 * DAY_S;
const KEPT_ACKNOWLEDGED_MS = DAY_S * 1000;
const KEPT_RETIRED_MS = 30 * DAY_S * 1000;
/** Rows deleted in one transaction: a few milliseconds. */
const PRUNE_STEP = 1000;

/** The side of the state store that owns the file: carries out one message after the other. */
export class StoreThread {
  readonly #setup: StoreSetup;
  readonly #database: DatabaseSync;
  readonly #post: (message: FromStore) => void;
  readonly #counters: CounterTable;
  readonly #outbox: OutboxTable;
  readonly #generations: GenerationTable;
  readonly #usage: UsageTable;
  readonly #credentials: CredentialTable;
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  #mustCheckpoint = false;

  /** Throws {@link import("./store-trouble.ts").StateStoreError} when the file cannot be opened. */
  constructor(setup: StoreSetup, post: (message: FromStore) => void) {
    this.#setup = setup;
    this.#post = post;
    this.#database = openStateDatabase(setup);
    this.#counters = new CounterTable(this.#database);
    this.#outbox = new OutboxTable(this.#database);
    this.#generations = new GenerationTable(this.#database);
    this.#usage = new UsageTable(this.#database);
    this.#credentials = new CredentialTable(this.#database);
    this.#begin = this.#database.prepare("BEGIN IMMEDIATE");
    this.#commit = this.#database.prepare("COMMIT");
    this.#fold();
  }

  receive(message: Exclude<ToStore, { kind: "close" }>): void {
    if (message.kind === "group") this.#receiveGroup(message);
    else this.#receiveCall(message.call, message.request);
  }

  close(): void {
    this.#tryFold();
    this.#database.close();
  }

  #receiveGroup(group: GroupMessage): void {
    try {
      const isOneStatement = group.loads === undefined && group.names === undefined;
      const apply = (): Omit<GroupOutcome, "error"> => this.#counters.apply(group);
      // Nearly all groups: one statement is a transaction of its own, for a third of the calls.
      const outcome = isOneStatement ? this.#durably(apply) : this.#transaction(apply);
      this.#counters.committed(group);
      this.#post({ kind: "settled", error: undefined, ...outcome });
      if (this.#counters.isFoldDue) this.#tryFold();
    } catch (error) {
      this.#post({ kind: "settled", error: this.#describe(error), loaded: undefined, ids: undefined });
    }
  }

  #fold(): void {
    if (!this.#counters.hasPending) return;
    this.#transaction(() => this.#counters.fold());
    this.#counters.folded();
  }

  /** Nothing depends on it now: what cannot be folded stays where it is, and the next group says what is wrong. */
  #tryFold(): void {
    try {
      this.#fold();
    } catch {
      return;
    }
  }

  #receiveCall(call: number, request: StoreRequest): void {
    try {
      this.#post({ kind: "answer", call, value: this.#response(request) });
    } catch (error) {
      this.#post({ kind: "failed", call, error: this.#describe(error) });
    }
  }

  #response(request: StoreRequest): StoreResponses[StoreCallName] {
    switch (request.name) {
      case "usageOf":
        return this.#counters.usageOf(request.input.names, request.input.windows);
      case "appendEvent":
        return this.#transaction(() => this.#outbox.append(request.input, request.input.nowMs));
      case "acknowledgeEvent": {
        const { id, target, nowMs } = request.input;
        return this.#transaction(() => this.#outbox.acknowledge(id, target, nowMs));
      }
      case "pendingEvents":
        return this.#outbox.pending(request.input.afterSeq);
      case "addGeneration":
        return this.#transaction(() => this.#generations.add(request.input));
      case "generations":
        return this.#generations.newest(request.input.limit);
      case "generation":
        return this.#generations.find(request.input.number);
      case "addUsage":
        return this.#transaction(() => this.#usage.add(request.input));
      case "usageTotals":
        return this.#usage.firstRollup(request.input.span, request.input.fromS, request.input.toS);
      case "oldestHour":
        return this.#usage.oldestHour();
      case "addRun":
        return this.#transaction(() => this.#usage.addRun(request.input));
      case "runs":
        return this.#usage.runs(request.input.limit);
      case "lastScheduled":
        return this.#usage.lastScheduled(request.input.window, request.input.beforeS);
      case "credentials":
        return this.#credentials.all();
      case "addCredential":
        return this.#transaction(() => this.#credentials.add(request.input));
      case "retireCredential":
        return this.#transaction(() => this.#credentials.retire(request.input.id, request.input.atMs));
      case "prune":
        this.#fold();
        return this.#transaction(() => this.#prune(request.input.nowMs));
    }
  }

  /** One step of each kind; true when nothing is left to delete. */
  #prune(nowMs: number): boolean {
    const nowS = nowMs / 1000;
    const deleted = [
      this.#counters.prune(0, nowS - KEPT_DAILY.seconds, KEPT_DAILY.windows, PRUNE_STEP),
      this.#counters.prune(1, nowS - KEPT_MONTHLY.seconds, KEPT_MONTHLY.windows, PRUNE_STEP),
      this.#usage.prune("hour", nowS - KEPT_HOURS_S, PRUNE_STEP),
      this.#usage.prune("day", nowS - KEPT_DAYS_S, PRUNE_STEP),
      this.#outbox.prune(nowMs - KEPT_ACKNOWLEDGED_MS, PRUNE_STEP),
      this.#credentials.prune(nowMs - KEPT_RETIRED_MS, PRUNE_STEP),
    ];
    return deleted.every((count) => count < PRUNE_STEP);
  }

  /** All or nothing, on disk when it returns. */
  #transaction<T>(work: () => T): T {
    return this.#durably(() => {
      this.#begin.run();
      try {
        const result = work();
        this.#commit.run();
        return result;
      } catch (error) {
        // SQLite itself rolls back on some errors, a full disk among them.
        if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
        throw error;
      }
    });
  }

  /** `work` is one transaction, or one statement outside of any. */
  #durably<T>(work: () => T): T {
    this.#recover();
    try {
      return work();
    } catch (error) {
      this.#mustCheckpoint ||= toStateStoreError(error, this.#setup.path).errorKind === "io";
      throw error;
    }
  }

  /**
   * After a failed write or sync the system may think that pages of the log are on disk which are not. Before anything
   * new is promised on top of them, all of the log is written once more, into the file, and the log begun anew.
   */
  #recover(): void {
    if (!this.#mustCheckpoint) return;
    this.#database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    this.#mustCheckpoint = false;
  }

  #describe(error: unknown): string {
    return toStateStoreError(error, this.#setup.path).message;
  }
}
