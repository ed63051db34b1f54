import { DatabaseSync } from "node:sqlite";
import type { StatementSync } from "node:sqlite";
import { storageErrorKind, type StorageErrorKind } from "@headworks/files";
import { migrate } from "./migrations.ts";

/** A value SQLite stores. */
export type SqlValue = null | number | bigint | string | Uint8Array;
export type SqlRow = Record<string, SqlValue>;

export interface Statement {
  run(...values: SqlValue[]): { readonly changes: number; readonly lastInsertRowid: number };
  get(...values: SqlValue[]): SqlRow | undefined;
  all(...values: SqlValue[]): SqlRow[];
  iterate(...values: SqlValue[]): IterableIterator<SqlRow>;
}

/** One SQLite file, opened, migrated, with a durable commit. The only module that names the SQLite library. */
export interface Database {
  prepare(sql: string): Statement;
  exec(sql: string): void;
  /** All or nothing; nested calls join the outer transaction. */
  transaction<T>(work: () => T): T;
  close(): void;
}

/** FULL: a commit is on disk when it returns. NORMAL: it survives the process, and a power cut up to the last sync. */
export type Synchronous = "FULL" | "NORMAL";

export interface DatabaseOptions {
  /** Folder with `NNNN-topic.sql` files. Without it the schema is taken as it is. */
  readonly migrations?: URL;
  readonly readOnly?: boolean;
  /** FULL unless told otherwise. */
  readonly synchronous?: Synchronous;
  /** "none" for a file that only serves as a lock. */
  readonly journal?: "wal" | "none";
  /** How long a statement waits for another connection's lock. */
  readonly busyTimeoutMs?: number;
  /** Pages of log after which it is moved into the file. */
  readonly autoCheckpointPages?: number;
  readonly cacheBytes?: number;
}

/** Large pages make rows of a few kilobytes cheap to append; measured best of 4, 8, 16 and 32 KiB. */
const PAGE_BYTES = 16_384;

/** Opens a file, creating it unless read-only, and brings it to the newest schema. Throws {@link DatabaseTooNewError} or SQLite's error. */
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
    // A file may come from elsewhere; what its schema calls must not be trusted.
    connection.exec("PRAGMA trusted_schema = OFF");
    const database = new SqliteDatabase(connection);
    if (options.migrations !== undefined) migrate(database, options.migrations, readOnly);
    return database;
  } catch (error) {
    connection.close();
    throw error;
  }
}

/** Migrations of rules and other small state. */
export const STATE_MIGRATIONS = new URL("./migrations/state/", import.meta.url);
/** Migrations of captured traffic. */
export const TRAFFIC_MIGRATIONS = new URL("./migrations/traffic/", import.meta.url);
/** Migrations of what searches made from the traffic. */
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
      // SQLite itself rolls back on some errors, a full disk among them.
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
  // SQLite says so of a file that cannot be opened, for whatever reason, and of a full disk, too.
  io: "files cannot be opened or written",
};

/** The end of a sentence that tells of such an error. */
export function storageErrorReason(error: unknown): string {
  const errorKind = storageErrorKind(error);
  const message = error instanceof Error ? error.message : String(error);
  return errorKind === "other" ? message : `${REASONS[errorKind]} (${message})`;
}
