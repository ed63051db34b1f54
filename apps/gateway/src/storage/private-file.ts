// Tested by state-migrations.test.ts
import { chmodSync, closeSync, fsyncSync, openSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { makeDirectorySync } from "@headworks/directories";

/** Makes the file and its folder, for the owner alone. SQLite would give a new file the rights of the umask; its log gets those of the file. */
export function makePrivateFile(path: string): void {
  makeDirectorySync(dirname(path));
  try {
    closeSync(openSync(path, "wx", 0o600));
    syncFolder(dirname(path));
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
    // Not opened here: closing it again would drop the lock of another store of this process.
    chmodSync(path, 0o600);
  }
}

/** Makes a consistent copy of the open database, on disk when it returns. Throws, and leaves no half of it. */
export function copyDatabase(database: DatabaseSync, path: string): void {
  closeSync(openSync(path, "wx", 0o600));
  try {
    database.prepare("VACUUM INTO ?").run(path);
    const file = openSync(path, "r+");
    fsyncSync(file);
    closeSync(file);
    syncFolder(dirname(path));
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

function syncFolder(path: string): void {
  // Windows has no such thing.
  if (process.platform === "win32") return;
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

const isCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;
