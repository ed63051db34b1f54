import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import type { Database } from "./database.ts";

/** Written by a newer version; opening it here could damage it. */
export class DatabaseTooNewError extends Error {
  override readonly name = "DatabaseTooNewError";
}

interface Migration {
  readonly version: number;
  readonly sql: string;
}

const FILE_NAME = /^(\d{4})-[a-z0-9-]+\.sql$/u;

/**
 * Applies new migrations in order, each in one transaction with its version number. Rejects a newer database before any
 * write.
 */
export function migrate(database: Database, folder: URL, readOnly: boolean): void {
  const migrations = readMigrations(folder);
  const known = migrations.length;
  const version = Number(database.prepare("PRAGMA user_version").get()?.["user_version"] ?? 0);
  if (version > known) {
    throw new DatabaseTooNewError(
      `The database has schema version ${version}, this program knows up to ${known}: start the newer program that wrote it, or use another data directory`,
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
