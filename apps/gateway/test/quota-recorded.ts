import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";

/** What a store's file says about the one consumer of a charger. */
export interface Recorded {
  /** By start of the day. */
  readonly daily: ReadonlyMap<number, bigint>;
  readonly monthly: bigint;
  readonly dailySum: bigint;
}

/** Opens a file that no process holds any more, checks that it is whole, and reads the counters. */
export function readRecorded(path: string): Recorded {
  const database = new DatabaseSync(path, { timeout: 2000 });
  try {
    assert.equal(database.prepare("PRAGMA integrity_check").get()?.["integrity_check"], "ok");
    assert.equal(database.prepare("PRAGMA foreign_key_check").get(), undefined);
    // Killed before the first migration, there is no table yet.
    if (database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'quota_counter'").get() === undefined) {
      return { daily: new Map(), monthly: 0n, dailySum: 0n };
    }
    const used = new Map<string, bigint>();
    const statement = database.prepare("SELECT budget, window_start_s AS start, used FROM quota_counter");
    statement.setReadBigInts(true);
    for (const { budget, start, used: value } of statement.all()) {
      used.set(`${String(budget)} ${String(start)}`, BigInt(String(value)));
    }
    // Groups that were not moved into the counters yet are newer, the last one the newest.
    for (const row of database.prepare("SELECT counters FROM quota_group ORDER BY seq").all()) {
      const numbers = new BigInt64Array(Uint8Array.from(row["counters"] as Uint8Array).buffer);
      for (let at = 0; at < numbers.length; at += 3) {
        used.set(`${(numbers[at] ?? 0n) & 1n} ${numbers[at + 1]}`, numbers[at + 2] ?? 0n);
      }
    }
    const daily = new Map<number, bigint>();
    let monthly = 0n;
    for (const [counter, value] of used) {
      const [budget, start] = counter.split(" ");
      if (budget === "0") daily.set(Number(start), value);
      else monthly += value;
    }
    return { daily, monthly, dailySum: [...daily.values()].reduce((sum, used) => sum + used, 0n) };
  } finally {
    database.close();
  }
}

/** How often each letter of a charger stands in its output. */
export function countLetters(output: string): Record<"s" | "a" | "d" | "f" | "u", number> {
  const count = (letter: string): number => output.split(letter).length - 1;
  return { s: count("s"), a: count("a"), d: count("d"), f: count("f"), u: count("u") };
}
