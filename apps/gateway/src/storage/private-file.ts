import { chmodSync, closeSync, fsyncSync, openSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { makeDirectorySync } from "@headworks/directories";
import { StateStoreError } from "./state-store-error.ts";

/**
 * Makes the file and its folder, for the owner alone, or takes the rights of others away from one that is there. SQLite
 * would give a new file the rights of the umask; its log gets those of the file. Gives what undoes that where the file turns
 * out to be somebody else's. Throws {@link StateStoreError} for what is no file.
 */
export function makePrivateFile(path: string): () => void {
  makeDirectorySync(dirname(path));
  try {
    closeSync(openSync(path, "wx", 0o600));
    syncFolder(dirname(path));
    return () => undefined;
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  }
  const found = statSync(path);
  if (found.isDirectory()) throw new StateStoreError("foreign", `${path} is a directory: name a file in it`);
  if (!found.isFile()) throw new StateStoreError("foreign", `${path} is no regular file: name another one`);
  // Not opened here: closing it again would drop the lock of another store of this process.
  chmodSync(path, 0o600);
  return () => chmodSync(path, found.mode & 0o7777);
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
