import type { DatabaseSync, StatementSync } from "node:sqlite";
import { counterKey } from "./store-messages.ts";
import type { GroupMessage, GroupOutcome, StoreCalls } from "./store-messages.ts";

/** Number of changed counters or groups before a fold, which takes a few milliseconds. */
const MAX_PENDING = 2048;
const MAX_GROUPS = 512;

/**
 * Consumers and their counters. A group of charges is written as one row; folds move the newest values to the counters'
 * table in key order, because written pages dominate the cost. Unsigned 64-bit counters are stored bit for bit in
 * SQLite's signed integers; SQL never compares or adds them.
 */
export class CounterTable {
  readonly #write: StatementSync;
  readonly #read: StatementSync;
  readonly #addConsumer: StatementSync;
  readonly #consumerId: StatementSync;
  readonly #newestBefore: StatementSync;
  readonly #deleteOld: StatementSync;
  readonly #addGroup: StatementSync;
  readonly #dropGroups: StatementSync;
  /** Durable values not yet folded, by counter key and window start. */
  readonly #pending = new Map<bigint, Map<bigint, bigint>>();
  #pendingCount = 0;
  #groupCount = 0;

  constructor(database: DatabaseSync) {
    this.#write = database.prepare(
      "INSERT INTO quota_counter (budget, window_start_s, consumer_id, used) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET used = excluded.used",
    );
    this.#read = database.prepare(
      "SELECT used FROM quota_counter WHERE budget = ? AND window_start_s = ? AND consumer_id = ?",
    );
    this.#read.setReadBigInts(true);
    this.#addConsumer = database.prepare(
      "INSERT INTO consumer (name, created_ms) VALUES (?, ?) ON CONFLICT DO NOTHING",
    );
    this.#consumerId = database.prepare("SELECT id FROM consumer WHERE name = ?");
    this.#newestBefore = database.prepare(
      "SELECT MAX(window_start_s) AS start FROM quota_counter WHERE budget = ? AND window_start_s < ?",
    );
    this.#deleteOld = database.prepare(
      "DELETE FROM quota_counter WHERE (budget, window_start_s, consumer_id) IN (SELECT budget, window_start_s, consumer_id FROM quota_counter WHERE budget = ? AND window_start_s < ? LIMIT ?)",
    );
    this.#addGroup = database.prepare("INSERT INTO quota_group (counters) VALUES (?)");
    this.#dropGroups = database.prepare("DELETE FROM quota_group");
    for (const row of database.prepare("SELECT counters FROM quota_group ORDER BY seq").all()) {
      // Copied, since BigInt64Array requires alignment.
      if (row["counters"] instanceof Uint8Array) this.#keep(new BigInt64Array(row["counters"].slice().buffer));
    }
  }

  /**
   * Applies a group within the caller's transaction, or `writes` alone as one statement without one; call `committed`
   * once durable.
   */
  apply(group: GroupMessage): Omit<GroupOutcome, "error"> {
    const { writes, loads, names } = group;
    if (writes !== undefined) this.#addGroup.run(new Uint8Array(writes.buffer, writes.byteOffset, writes.byteLength));
    return {
      loaded: loads === undefined ? undefined : this.#load(loads),
      ids: names?.map((name) => this.#idOf(name, group.nowMs)),
    };
  }

  committed({ writes }: GroupMessage): void {
    if (writes !== undefined) this.#keep(writes);
  }

  #keep(writes: BigInt64Array): void {
    this.#groupCount += 1;
    for (let at = 0; at + 2 < writes.length; at += 3) {
      const key = writes[at] ?? 0n;
      let windows = this.#pending.get(key);
      if (windows === undefined) {
        windows = new Map();
        this.#pending.set(key, windows);
      }
      const startS = writes[at + 1] ?? 0n;
      if (!windows.has(startS)) this.#pendingCount += 1;
      windows.set(startS, writes[at + 2] ?? 0n);
    }
  }

  /** True if a fold is due. */
  get isFoldDue(): boolean {
    return this.#pendingCount >= MAX_PENDING || this.#groupCount >= MAX_GROUPS;
  }

  get hasPending(): boolean {
    return this.#groupCount > 0;
  }

  /** Moves pending values into the counters' table within the caller's transaction; call `folded` after the commit. */
  fold(): void {
    const rows = [...this.#pending].flatMap(([key, windows]) =>
      [...windows].map(([startS, used]) => ({ budget: key & 1n, startS, consumerId: key >> 1n, used })),
    );
    rows.sort((a, b) => order(a.budget, b.budget) || order(a.startS, b.startS) || order(a.consumerId, b.consumerId));
    for (const { budget, startS, consumerId, used } of rows) this.#write.run(budget, startS, consumerId, used);
    this.#dropGroups.run();
  }

  folded(): void {
    this.#pending.clear();
    this.#pendingCount = 0;
    this.#groupCount = 0;
  }

  #load(loads: BigInt64Array): BigUint64Array {
    const values = new BigUint64Array(loads.length / 2);
    for (let index = 0; index < values.length; index += 1) {
      const key = loads[index * 2] ?? 0n;
      values[index] = this.#used(key, loads[index * 2 + 1] ?? 0n);
    }
    return values;
  }

  #idOf(name: string, nowMs: number): number {
    this.#addConsumer.run(name, Math.floor(nowMs));
    return Number(this.#consumerId.get(name)?.["id"]);
  }

  #used(key: bigint, startS: bigint): bigint {
    const used = this.#pending.get(key)?.get(startS) ?? this.#read.get(key & 1n, startS, key >> 1n)?.["used"];
    return BigInt.asUintN(64, typeof used === "bigint" ? used : 0n);
  }

  /** Counters of the windows per consumer; undefined without a row. */
  usageOf(
    names: readonly string[],
    windows: StoreCalls["usageOf"]["windows"],
  ): readonly (readonly bigint[] | undefined)[] {
    return names.map((name) => {
      const id = this.#consumerId.get(name)?.["id"];
      if (typeof id !== "number") return undefined;
      return windows.map(([budget, startS]) => this.#used(counterKey(id, budget), BigInt(startS)));
    });
  }

  /**
   * Deletes at most `limit` counters of windows that began before `beforeS`, and returns their number; requires that
   * nothing is pending. The newest `keptWindows` always stay: a temporarily wrong clock must not reset budgets.
   */
  prune(budget: number, beforeS: number, keptWindows: number, limit: number): number {
    let edgeS = Number.MAX_SAFE_INTEGER;
    for (let kept = 0; kept < keptWindows; kept += 1) {
      const start = this.#newestBefore.get(budget, edgeS)?.["start"];
      if (typeof start !== "number") return 0;
      edgeS = start;
    }
    return Number(this.#deleteOld.run(budget, Math.min(edgeS, Math.floor(beforeS)), limit).changes);
  }
}

const order = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);
