import { DatabaseSync } from "node:sqlite";
import { makePrivateFile } from "./private-file.ts";
import { applyMigrations, schemaVersion } from "./state-migrations.ts";
import type { MigrationScope } from "./state-migrations.ts";
import { toStateStoreError, StateStoreError } from "./state-store-error.ts";

/** Marks the file as ours ("SLUI"), so that the database of another program is not taken for an empty one. */
const APPLICATION_ID = 0x53_4c_55_49;
/** Measured best of 1, 2, 4, 8 and 16 KiB (bench/gateway/quota.bench.ts): a commit writes whole pages to the log. */
const PAGE_BYTES = 4096;

/** What opening needs. */
export interface OpenScope extends MigrationScope {
  readonly path: string;
  /** For measurements. */
  readonly pageBytes?: number;
}

/**
 * Opens the file, makes it and its folder if they are not there, and brings it to the newest schema. The connection
 * holds the file alone: counters are kept in memory beside it, so nobody else may write them. Throws
 * {@link StateStoreError}.
 */
export function openStateDatabase(scope: OpenScope): DatabaseSync {
  const { path } = scope;
  try {
    const undo = makePrivateFile(path);
    const database = new DatabaseSync(path, { timeout: 0 });
    try {
      prepareConnection(database, scope);
      return database;
    } catch (error) {
      database.close();
      if (isOfOthers(error, path)) undo();
      throw error;
    }
  } catch (error) {
    throw toStateStoreError(error, path);
  }
}

function isOfOthers(error: unknown, path: string): boolean {
  const { errorKind } = toStateStoreError(error, path);
  return errorKind === "foreign" || errorKind === "corrupt";
}

function prepareConnection(database: DatabaseSync, scope: OpenScope): void {
  // Before anything is read: a log kept in this process's memory instead of a shared file needs it from the start.
  database.exec("PRAGMA locking_mode = EXCLUSIVE");
  database.exec(`PRAGMA page_size = ${scope.pageBytes ?? PAGE_BYTES}`);
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA foreign_keys = ON");
  // What a file's schema calls must not be trusted.
  database.exec("PRAGMA trusted_schema = OFF");
  // Fails for a file that can only be read; without it that would be found out by the first charge.
  database.exec("BEGIN IMMEDIATE");
  database.exec("ROLLBACK");
  const id = database.prepare("PRAGMA application_id").get()?.["application_id"];
  const isEmpty = database.prepare("SELECT 1 FROM sqlite_schema LIMIT 1").get() === undefined;
  if (id !== APPLICATION_ID && !(isEmpty && schemaVersion(database) === 0)) {
    throw new StateStoreError("foreign", `${scope.path} is the database of another program: name another file`);
  }
  if (isEmpty) database.exec(`PRAGMA application_id = ${APPLICATION_ID}`);
  applyMigrations(database, scope);
}
