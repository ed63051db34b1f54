import { DatabaseSync } from "node:sqlite";
import type { StatementSync } from "node:sqlite";
import { storageErrorKind, type StorageErrorKind } from "@headworks/files";
import { migrate } from "./migrations.ts";

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
    return new SqliteStatement(this.#connection.prepare(sql));
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

class SqliteStatement implements Statement {
  readonly #statement: StatementSync;

  constructor(statement: StatementSync) {
    this.#statement = statement;
  }

  run(...values: SqlValue[]): { readonly changes: number; readonly lastInsertRowid: number } {
    return this.#statement.run(...values) as { changes: number; lastInsertRowid: number };
  }

  get(...values: SqlValue[]): SqlRow | undefined {
    return this.#statement.get(...values);
  }

  all(...values: SqlValue[]): SqlRow[] {
    return this.#statement.all(...values);
  }

  iterate(...values: SqlValue[]): IterableIterator<SqlRow> {
    return this.#statement.iterate(...values) as IterableIterator<SqlRow>;
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

/** Completes a sentence with the reason of the error. */
export function storageErrorReason(error: unknown): string {
  const errorKind = storageErrorKind(error);
  const message = error instanceof Error ? error.message : String(error);
  return errorKind === "other" ? message : `${REASONS[errorKind]} (${message})`;
}
