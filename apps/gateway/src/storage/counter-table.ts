// Tested by open-state-store.test.ts
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { GroupMessage, GroupOutcome } from "./store-messages.ts";

/**
 * Consumers and their counters. Counters are unsigned 64-bit numbers in SQLite's signed column: the same bits, so all
 * of them fit exactly; nothing compares or adds them in SQL.
 */
export class CounterTable {
  readonly #write: StatementSync;
  readonly #read: StatementSync;
  readonly #addConsumer: StatementSync;
  readonly #consumerId: StatementSync;
  readonly #newestBefore: StatementSync;
  readonly #deleteOld: StatementSync;

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
  }

  /** Carries out a group inside the caller's transaction. */
  apply(group: GroupMessage): Omit<GroupOutcome, "error"> {
    const { writes, loads, names } = group;
    if (writes !== undefined) {
      for (let at = 0; at + 2 < writes.length; at += 3) {
        const key = writes[at] ?? 0n;
        this.#write.run(key & 1n, writes[at + 1] ?? 0n, key >> 1n, writes[at + 2] ?? 0n);
      }
    }
    return {
      loaded: loads === undefined ? undefined : this.#load(loads),
      ids: names?.map((name) => this.#idOf(name, group.nowMs)),
    };
  }

  #load(loads: BigInt64Array): BigUint64Array {
    const values = new BigUint64Array(loads.length / 2);
    for (let index = 0; index < values.length; index += 1) {
      const key = loads[index * 2] ?? 0n;
      values[index] = this.#used(Number(key & 1n), loads[index * 2 + 1] ?? 0n, Number(key >> 1n));
    }
    return values;
  }

  #idOf(name: string, nowMs: number): number {
    this.#addConsumer.run(name, Math.floor(nowMs));
    return Number(this.#consumerId.get(name)?.["id"]);
  }

  #used(budget: number, startS: number | bigint, consumerId: number): bigint {
    const used = this.#read.get(budget, startS, consumerId)?.["used"];
    return BigInt.asUintN(64, typeof used === "bigint" ? used : 0n);
  }

  /** Counters of the windows for each consumer; undefined for one without a row. */
  usageOf(
    names: readonly string[],
    windows: readonly (readonly [budget: number, startS: number])[],
  ): readonly (readonly bigint[] | undefined)[] {
    return names.map((name) => {
      const id = this.#consumerId.get(name)?.["id"];
      if (typeof id !== "number") return undefined;
      return windows.map(([budget, startS]) => this.#used(budget, startS, id));
    });
  }

  /**
   * Deletes at most `limit` counters of windows that began before `beforeS`; gives how many. The newest `keptWindows`
   * stay whatever the time is: a clock that was wrong by years for a moment must not give budgets a second time.
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
