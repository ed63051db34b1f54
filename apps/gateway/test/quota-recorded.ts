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
    const statement = database.prepare("SELECT budget, window_start_s AS start, used FROM quota_counter");
    statement.setReadBigInts(true);
    const daily = new Map<number, bigint>();
    let monthly = 0n;
    for (const { budget, start, used } of statement.all()) {
      if (typeof used !== "bigint") continue;
      if (budget === 0n) daily.set(Number(start), used);
      else monthly += used;
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
