import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { storageErrorKind, type StorageErrorKind } from "@headworks/files";

/** The disk or the file rejected an operation; it may be retried. */
export class StorageError extends Error {
  override readonly name = "StorageError";
}

/** Written by a newer version; opening it here could damage it. */
export class DatabaseTooNewError extends Error {
  override readonly name = "DatabaseTooNewError";
}

const FILE_NAME = /^(\d{4})-[a-z0-9-]+\.sql$/u;
/** Minimum unused space worth a VACUUM. */
const MIN_VACUUM_BYTES = 67_108_864;
/** The same on a tight disk. */
const MIN_VACUUM_TIGHT_BYTES = 1_048_576;
/** VACUUM copies the used pages in memory and blocks the thread. */
const MAX_USED_BYTES = 16_777_216;
export type SqlValue = null | number | bigint | string | Uint8Array;
export type SqlRow = Record<string, SqlValue>;

export interface Statement {
  run(...values: SqlValue[]): { readonly changes: number; readonly lastInsertRowid: number };
  get(...values: SqlValue[]): SqlRow | undefined;
  all(...values: SqlValue[]): SqlRow[];
  iterate(...values: SqlValue[]): IterableIterator<SqlRow>;
}

/** An opened, migrated SQLite file. The only module that names the SQLite library. */
export interface Database {
  prepare(sql: string): Statement;
  exec(sql: string): void;
  /** Atomic; nested calls join the outer transaction. */
  transaction<T>(work: () => T): T;
  close(): void;
}

/**
 * FULL: a commit is durable on return. NORMAL: it survives a crash of the process, and power loss up to the last sync.
 */
export type Synchronous = "FULL" | "NORMAL";

export interface DatabaseOptions {
  /** Folder with `NNNN-topic.sql` files; without it the schema is not touched. */
  readonly migrations?: URL;
  readonly readOnly?: boolean;
  /** Default: FULL. */
  readonly synchronous?: Synchronous;
  /** "none" for a lock file. */
  readonly journal?: "wal" | "none";
  /** How long a statement waits for the lock of another connection. */
  readonly busyTimeoutMs?: number;
  /** Log pages before an automatic checkpoint. */
  readonly autoCheckpointPages?: number;
  readonly cacheBytes?: number;
}

/** Large pages make appending rows of a few kilobytes cheap; the fastest of 4, 8, 16 and 32 KiB. */
const PAGE_BYTES = 16_384;

/** Opens a file, creates it unless read-only, and migrates it. Throws {@link DatabaseTooNewError} or SQLite's error. */
export function openDatabase(path: string, options: DatabaseOptions = {}): Database {
  const readOnly = options.readOnly ?? false;
  const connection = new DatabaseSync(path, { readOnly, timeout: options.busyTimeoutMs ?? 5000 });
  try {
    if (!readOnly && options.journal !== "none") {
      connection.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
      connection.exec("PRAGMA journal_mode = WAL");
      connection.exec(`PRAGMA synchronous = ${options.synchronous ?? "FULL"}`);
      connection.exec(`PRAGMA wal_autocheckpoint = ${options.autoCheckpointPages ?? 1000}`);
      connection.exec("PRAGMA journal_size_limit = 67108864");
    }
    connection.exec(`PRAGMA cache_size = -${Math.ceil((options.cacheBytes ?? 16_777_216) / 1024)}`);
    connection.exec("PRAGMA foreign_keys = ON");
    // The file may be foreign: do not trust functions in its schema.
    connection.exec("PRAGMA trusted_schema = OFF");
    const database = new SqliteDatabase(connection);
    if (options.migrations !== undefined) migrate(database, options.migrations, readOnly);
    return database;
  } catch (error) {
    connection.close();
    throw error;
  }
}

export const STATE_MIGRATIONS = new URL("./migrations/state/", import.meta.url);
export const TRAFFIC_MIGRATIONS = new URL("./migrations/traffic/", import.meta.url);
/** Search indexes, derived from the traffic. */
export const SEARCH_MIGRATIONS = new URL("./migrations/search/", import.meta.url);

class SqliteDatabase implements Database {
  readonly #connection: DatabaseSync;

  constructor(connection: DatabaseSync) {
    this.#connection = connection;
  }

  prepare(sql: string): Statement {
    // Numbers are never read as bigint, which the library's types allow.
    return this.#connection.prepare(sql) as unknown as Statement;
  }

  exec(sql: string): void {
    this.#connection.exec(sql);
  }

  transaction<T>(work: () => T): T {
    if (this.#connection.isTransaction) return work();
    this.#connection.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#connection.exec("COMMIT");
      return result;
    } catch (error) {
      // SQLite rolls back by itself on some errors, such as a full disk.
      if (this.#connection.isTransaction) this.#connection.exec("ROLLBACK");
      throw error;
    }
  }

  close(): void {
    if (this.#connection.isOpen) this.#connection.close();
  }
}

const REASONS: Readonly<Record<Exclude<StorageErrorKind, "other">, string>> = {
  full: "the disk is full",
  "read-only": "the directory cannot be written",
  corrupt: "the database is damaged",
  busy: "another program holds the database",
  // SQLite reports this for any file it cannot open, and for a full disk.
  io: "files cannot be opened or written",
};

/** Completes a message with the reason of the error. */
export function storageErrorReason(error: unknown): string {
  const errorKind = storageErrorKind(error);
  const message = error instanceof Error ? error.message : String(error);
  return errorKind === "other" ? message : `${REASONS[errorKind]} (${message})`;
}

/**
 * Checkpoints the log so that it is overwritten from its start; `empty` truncates its file, too. Readers of older
 * states delay part of it. Throws SQLite's error, as on a full disk.
 */
export function checkpoint(database: Database, empty = false): void {
  database.prepare(`PRAGMA wal_checkpoint(${empty ? "TRUNCATE" : "PASSIVE"})`).all();
}

/** Returns unused space to the disk if most of the database is unused, as after clearing. Throws SQLite's error. */
export function shrink(database: Database, isTight: boolean): void {
  const number = (pragma: string): number => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  const pageBytes = number("page_size");
  const unusedBytes = number("freelist_count") * pageBytes;
  const usedBytes = number("page_count") * pageBytes - unusedBytes;
  if (unusedBytes < (isTight ? MIN_VACUUM_TIGHT_BYTES : MIN_VACUUM_BYTES) || usedBytes > MAX_USED_BYTES) return;
  database.exec("PRAGMA temp_store = MEMORY");
  try {
    database.exec("VACUUM");
  } finally {
    database.exec("PRAGMA temp_store = DEFAULT");
  }
  checkpoint(database, true);
}

interface Migration {
  readonly version: number;
  readonly sql: string;
}

/** Applies new migrations in order, each in a transaction. Rejects a newer database before any write. */
function migrate(database: Database, folder: URL, readOnly: boolean): void {
  const migrations = readMigrations(folder);
  const known = migrations.length;
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
  if (version > known) {
    throw new DatabaseTooNewError(
      `The database has schema version ${version}, this program supports up to ${known}: start the newer program that wrote it, or use another data directory`,
    );
  }
  if (readOnly) return;
  for (const migration of migrations.slice(version)) {
    database.transaction(() => {
      database.exec(migration.sql);
      database.exec(`PRAGMA user_version = ${migration.version}`);
    });
  }
}

/** Numbers must be contiguous: a gap or a duplicate would apply files in another order elsewhere. */
function readMigrations(folder: URL): Migration[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .sort();
  return names.map((name, index) => {
    const version = Number(FILE_NAME.exec(name)?.[1]);
    if (version !== index + 1) {
      throw new Error(`Migration ${name} in ${basename(fileURLToPath(folder))} should have number ${index + 1}`);
    }
    return { version, sql: readFileSync(new URL(name, folder), "utf8") };
  });
}
