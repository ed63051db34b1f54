import { closeSync, openSync, readSync, statSync } from "node:fs";
import { join, resolve, sep } from "node:path";
import { canonicalPath, storageErrorKind } from "@headworks/files";
import { openDatabase } from "./database.ts";

/** Absolute paths. */
export interface StorePaths {
  readonly path: string;
  /** The database was configured outside the data directory. */
  readonly isElsewhere: boolean;
  readonly bodiesFolder: string;
  /** Decoded copies; discarded with the process. */
  readonly decodedFolder: string;
  /** Lock files, each with the path named in the error. */
  readonly locks: readonly (readonly [file: string, shownPath: string])[];
}

/**
 * A database other than `traffic.db` has its folders beside it, named after it, since several data directories may
 * share that folder. Every database has a lock beside its canonical path, so that links and other data directories meet
 * the same lock.
 */
export function storePaths(dataDir: string, databasePath: string | undefined): StorePaths {
  const directory = resolve(dataDir);
  const own = join(directory, "traffic.db");
  const path = resolve(databasePath ?? own);
  const isElsewhere = path !== own;
  const beside = isElsewhere ? `${path}-` : `${directory}${sep}`;
  return {
    path,
    isElsewhere,
    bodiesFolder: `${beside}bodies`,
    decodedFolder: `${beside}decoded`,
    locks: [
      [join(directory, "weir.lock"), directory],
      [`${canonicalPath(path)}.lock`, path],
    ],
  };
}

export class DataDirectoryInUseError extends Error {
  override readonly name = "DataDirectoryInUseError";

  constructor(path: string) {
    super(`Another running proxy uses ${path}: stop it, or choose another data directory`);
  }
}

/**
 * Locks a file exclusively for this process; returns the unlock function. SQLite takes an operating system lock on
 * every platform; it ends with the process, so a crash leaves nothing to clean up.
 */
export function lockForThisProcess(file: string, shownPath: string): () => void {
  try {
    const database = openDatabase(file, { busyTimeoutMs: 0, journal: "none" });
    database.exec("PRAGMA locking_mode = EXCLUSIVE");
    database.exec("BEGIN EXCLUSIVE");
    return () => database.close();
  } catch (error) {
    if (storageErrorKind(error) === "busy") throw new DataDirectoryInUseError(shownPath);
    throw error;
  }
}

/** The configured database file belongs, or may belong, to another program; opening it would destroy it. */
export class ForeignFileError extends Error {
  override readonly name = "ForeignFileError";
}

/** Header of SQLite files (database file format, 1.3.1). */
const MAGIC = Buffer.from("SQLite format 3\0", "latin1");

/** Throws {@link ForeignFileError} for other files. Missing, empty and corrupt databases are accepted. */
export function rejectForeignFile(path: string): void {
  const start = startOf(path);
  if (start.length === 0) return;
  if (!start.equals(MAGIC)) throw new ForeignFileError(`${path} is not a database; choose another file with --db-path`);
  const tables = tablesOf(path);
  if (tables.length === 0 || tables.includes("entry")) return;
  throw new ForeignFileError(`${path} is the database of another program; choose another file with --db-path`);
}

/**
 * Throws {@link ForeignFileError} for a file with several hard links. Log and lock lie beside each name separately: a
 * process using another name would corrupt the database (SQLite, How To Corrupt An SQLite Database File, 2.5), and a
 * backup made of links would change with it.
 */
export function rejectLinkedFile(path: string): void {
  const names = statSync(path, { throwIfNoEntry: false })?.nlink ?? 1;
  if (names <= 1) return;
  throw new ForeignFileError(
    `${path} has ${names} hard links: opening it under another name would corrupt it. Replace it with a copy`,
  );
}

function startOf(path: string): Buffer {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
  try {
    const start = Buffer.alloc(MAGIC.length);
    return start.subarray(0, readSync(file, start, 0, start.length, 0));
  } finally {
    closeSync(file);
  }
}

function tablesOf(path: string): string[] {
  try {
    const database = openDatabase(path, { readOnly: true });
    try {
      const rows = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
      return rows.map(({ name }) => String(name));
    } finally {
      database.close();
    }
  } catch {
    // Corrupt: the writer handles it on open.
    return [];
  }
}
