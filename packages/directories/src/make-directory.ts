import { mkdirSync, statSync } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/** For the owner alone. */
const PRIVATE = 0o700;

/**
 * Makes a directory and those above it that are missing, each with `mode` as the umask leaves it; what is there stays
 * as it is. Throws what the file system says. Node's own `recursive` never comes to an end where the system says of a
 * directory that cannot be made that it is missing, as below `/proc`.
 */
export async function makeDirectory(path: string, mode: number = PRIVATE): Promise<void> {
  const problem = await attempt(path, mode);
  if (problem === undefined) return;
  if (!isMissing(problem) || dirname(path) === path) throw problem;
  await makeDirectory(dirname(path), mode);
  const again = await attempt(path, mode);
  if (again !== undefined) throw again;
}

/** {@link makeDirectory}, at once. */
export function makeDirectorySync(path: string, mode: number = PRIVATE): void {
  const problem = attemptSync(path, mode);
  if (problem === undefined) return;
  if (!isMissing(problem) || dirname(path) === path) throw problem;
  makeDirectorySync(dirname(path), mode);
  const again = attemptSync(path, mode);
  if (again !== undefined) throw again;
}

/** Why there is no such directory after it was tried to make it. */
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
