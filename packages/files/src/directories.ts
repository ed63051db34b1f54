import { lstatSync, mkdirSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

const OWNER_ONLY = 0o700;

/**
 * Creates a directory and its missing ancestors, each with `mode` less the umask; existing directories keep their mode.
 * Throws the error of the file system. Node's own `recursive` loops forever where `mkdir` fails with `ENOENT` although
 * the parent exists, as below `/proc`.
 */
export async function makeDirectory(path: string, mode: number = OWNER_ONLY): Promise<void> {
  const problem = await attempt(path, mode);
  if (problem === undefined) return;
  if (!isMissing(problem) || dirname(path) === path) throw problem;
  await makeDirectory(dirname(path), mode);
  const again = await attempt(path, mode);
  if (again !== undefined) throw again;
}

/** {@link makeDirectory}, synchronously. */
export function makeDirectorySync(path: string, mode: number = OWNER_ONLY): void {
  const problem = attemptSync(path, mode);
  if (problem === undefined) return;
  if (!isMissing(problem) || dirname(path) === path) throw problem;
  makeDirectorySync(dirname(path), mode);
  const again = attemptSync(path, mode);
  if (again !== undefined) throw again;
}

/** The error of `mkdir`; undefined when the directory exists afterwards. */
async function attempt(path: string, mode: number): Promise<Error | undefined> {
  try {
    await mkdir(path, { mode });
  } catch (error) {
    const found = await stat(path).catch(() => undefined);
    if (found?.isDirectory() !== true) return error as Error;
  }
  return undefined;
}

function attemptSync(path: string, mode: number): Error | undefined {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    if (!isDirectory(path)) return error as Error;
  }
  return undefined;
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

const isMissing = (error: Error): boolean => "code" in error && error.code === "ENOENT";

/** The limit of Linux (`MAXSYMLINKS`). */
const MAX_LINKS = 40;

/**
 * The absolute path with all symbolic links resolved, dangling ones included, so that two names of one file compare equal.
 * Missing path segments are appended to the canonical path of their nearest existing ancestor. Throws file system errors
 * other than `ENOENT`.
 */
export function canonicalPath(path: string): string {
  return resolveLinks(resolve(path), MAX_LINKS);
}

function resolveLinks(path: string, maxLinks: number): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const parent = dirname(path);
  if (parent === path) return path;
  const target = maxLinks > 0 ? linkTarget(path) : undefined;
  return target === undefined
    ? join(resolveLinks(parent, maxLinks), basename(path))
    : resolveLinks(resolve(parent, target), maxLinks - 1);
}

function linkTarget(path: string): string | undefined {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true ? readlinkSync(path) : undefined;
}
