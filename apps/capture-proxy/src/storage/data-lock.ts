import { storageErrorKind } from "@headworks/files";
import { openDatabase } from "./database.ts";

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
