import type { Database } from "./database.ts";

/** A database is not made smaller for less unused space than this; */
const WORTHWHILE_BYTES = 67_108_864;
/** on a tight disk for less than this. */
const WORTHWHILE_TIGHT_BYTES = 1_048_576;
/** What is used has to be copied, in memory, while everything else waits. */
const MAX_USED_BYTES = 16_777_216;

/**
 * Moves the log of a database into its file, so that the log is written from its start again; `empty` makes the log's file
 * empty as well. Readers that look at an older state keep part of it back. Throws SQLite's error, as when the file has to
 * grow and the disk is full.
 */
export function moveLog(database: Database, empty = false): void {
  database.prepare(`PRAGMA wal_checkpoint(${empty ? "TRUNCATE" : "PASSIVE"})`).all();
}

/**
 * Gives back to the disk what is not used in a database any more, where that is most of it: after everything was cleared.
 * Throws SQLite's error.
 */
export function shrink(database: Database, isTight: boolean): void {
  const number = (pragma: string): number => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  const pageBytes = number("page_size");
  const unusedBytes = number("freelist_count") * pageBytes;
  const usedBytes = number("page_count") * pageBytes - unusedBytes;
  if (unusedBytes < (isTight ? WORTHWHILE_TIGHT_BYTES : WORTHWHILE_BYTES) || usedBytes > MAX_USED_BYTES) return;
  database.exec("PRAGMA temp_store = MEMORY");
  try {
    database.exec("VACUUM");
  } finally {
    database.exec("PRAGMA temp_store = DEFAULT");
  }
  moveLog(database, true);
}
