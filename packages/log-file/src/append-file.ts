import { closeSync, constants, fchmodSync, fstatSync, lstatSync, openSync, renameSync, unlinkSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { makeDirectorySync } from "@headworks/directories";
import { archiveNames } from "./archive-name.ts";

/** A log file opened for appending. */
export interface AppendFile {
  readonly descriptor: number;
  readonly sizeBytes: number;
  /** When its last line was written, milliseconds since 1970. */
  readonly modifiedMs: number;
}

/** Windows has neither of the last two; there they are undefined. */
const FLAGS =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  (constants.O_NOFOLLOW ?? 0) |
  (constants.O_NONBLOCK ?? 0);

/**
 * Opens or creates a file for its owner alone, with the directory it lies in. Throws for what is no regular file: a link
 * would send the log to a place that nobody chose, and a pipe could hold it up.
 */
export function openAppendFile(path: string): AppendFile {
  makeDirectorySync(dirname(path));
  const descriptor = openSync(path, FLAGS, 0o600);
  try {
    const facts = fstatSync(descriptor);
    if (!facts.isFile()) throw new Error("it is not a regular file");
    if ((facts.mode & 0o077) !== 0) fchmodSync(descriptor, 0o600);
    return { descriptor, sizeBytes: facts.size, modifiedMs: facts.mtimeMs };
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/** Whether `path` still leads to the opened file, and how large that is now; others may write to it as well. */
export function lookAgain(path: string, descriptor: number): { readonly isThere: boolean; readonly sizeBytes: number } {
  const own = fstatSync(descriptor);
  const found = lstatSync(path, { throwIfNoEntry: false });
  return { isThere: found?.ino === own.ino && found.dev === own.dev, sizeBytes: own.size };
}

/** Gives a file the first free name of an archive; no file that is there is ever replaced. Gives the new path. */
export function putAway(path: string, atMs: number): string {
  for (const name of archiveNames(basename(path), atMs)) {
    const target = join(dirname(path), name);
    if (!reserve(target)) continue;
    try {
      renameSync(path, target);
      return target;
    } catch (error) {
      unlinkSync(target);
      throw error;
    }
  }
  throw new Error("unreachable");
}

/** Takes a name by an empty file: a rename alone would replace what another process has put there meanwhile. */
function reserve(path: string): boolean {
  try {
    closeSync(openSync(path, "wx", 0o600));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
