import { storageErrorKind } from "@headworks/files";
import { openDatabase } from "./database.ts";

/** Another process has the data directory, or the database. */
export class DataDirectoryInUseError extends Error {
  override readonly name = "DataDirectoryInUseError";

  constructor(path: string) {
    super(`Another running proxy uses ${path}: stop it, or choose another data directory`);
  }
}

/**
 * Takes a place for this process alone; gives the function that lets it go. The lock is the operating system's
 * (SQLite takes it on every platform alike) and ends with the process, so a crash leaves nothing to clean up.
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
