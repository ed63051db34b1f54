import type { Database } from "./database.ts";

/** Minimum unused space worth a VACUUM. */
const WORTHWHILE_BYTES = 67_108_864;
/** The same on a tight disk. */
const WORTHWHILE_TIGHT_BYTES = 1_048_576;
/** VACUUM copies the used pages in memory and blocks the thread. */
const MAX_USED_BYTES = 16_777_216;

/**
 * Checkpoints the log so that it is overwritten from its start; `empty` truncates its file, too. Readers of older
 * states delay part of it. Throws SQLite's error, as on a full disk.
 */
export function moveLog(database: Database, empty = false): void {
  database.prepare(`PRAGMA wal_checkpoint(${empty ? "TRUNCATE" : "PASSIVE"})`).all();
}

/** Returns unused space to the disk if most of the database is unused, as after clearing. Throws SQLite's error. */
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
