import { readdirSync, readFileSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { copyDatabase } from "./private-file.ts";
import { StateStoreError } from "./state-store-error.ts";

/** What migrating needs to know. */
export interface MigrationScope {
  readonly path: string;
  readonly nowMs: number;
  /** Folder of `NNNN-topic.sql` files; the store's own unless a test says otherwise. */
  readonly migrations?: URL;
}

const FILE_NAME = /^(\d{4})-[a-z0-9-]+\.sql$/u;
const OWN = new URL("./migrations/", import.meta.url);

/** The number of the last migration that was applied to a file; 0 for an empty one. */
export function schemaVersion(database: DatabaseSync): number {
  return Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
}

/**
 * Applies what the file has not seen, each migration in a transaction with its number. A file that holds data already
 * is copied to `<file>.bak-<its version>-<unix seconds>-<milliseconds>` first. Throws for a file of a newer program.
 */
export function applyMigrations(database: DatabaseSync, scope: MigrationScope): void {
  const scripts = readScripts(scope.migrations ?? OWN);
  const version = schemaVersion(database);
  if (version > scripts.length) {
    throw new StateStoreError(
      "too-new",
      `${scope.path} has schema version ${version}, this program knows up to ${scripts.length}: start the newer program that wrote it, or go back to its backup`,
    );
  }
  if (version === scripts.length) return;
  if (version > 0) copyDatabase(database, backupPath(scope.path, version, scope.nowMs));
  for (const [index, sql] of scripts.entries()) {
    if (index >= version) applyScript(database, sql, index + 1);
  }
}

function applyScript(database: DatabaseSync, sql: string, version: number): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    database.exec(sql);
    database.exec(`PRAGMA user_version = ${version}`);
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function backupPath(path: string, version: number, nowMs: number): string {
  const seconds = Math.floor(nowMs / 1000);
  const milliseconds = String(Math.floor(nowMs) - seconds * 1000).padStart(3, "0");
  return `${path}.bak-${version}-${seconds}-${milliseconds}`;
}

/** Numbers must be 1, 2, 3 …: a gap or a repeat would be another order elsewhere. */
function readScripts(folder: URL): string[] {
  const names = readdirSync(folder)
    .filter((name) => name.endsWith(".sql"))
    .toSorted();
  return names.map((name, index) => {
    if (Number(FILE_NAME.exec(name)?.[1]) !== index + 1) {
      throw new Error(`The migration ${name} should have the number ${index + 1}`);
    }
    return readFileSync(new URL(name, folder), "utf8");
  });
}
