import { constants } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";

/** The bytes of a file, or an error message that reveals no path outside the directories. */
export type FileReading =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly problem: string };

/** Opening never waits for a pipe's writer, and follows no link created after the path was resolved. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/**
 * Reads the current content of a file below one of `directories`. The path is absolute or relative to one of them;
 * symbolic links are resolved before the check. Missing directories contain no files.
 */
export async function readBodyFile(
  path: string,
  directories: readonly string[],
  limitBytes: number,
): Promise<FileReading> {
  if (path.includes("\0")) return refused("is not a path");
  const roots = await realRoots(directories);
  const candidates = isAbsolute(path) ? [path] : roots.map((root) => join(root, path));
  for (const candidate of candidates) {
    const real = await realpath(candidate).catch(() => undefined);
    if (real !== undefined && roots.some((root) => contains(root, real))) return await readWhole(real, limitBytes);
  }
  return refused("is not in a directory allowed for body files");
}

async function realRoots(directories: readonly string[]): Promise<string[]> {
  const roots: string[] = [];
  for (const directory of directories) {
    const real = await realpath(directory).catch(() => undefined);
    if (real !== undefined) roots.push(real);
  }
  return roots;
}

function contains(root: string, file: string): boolean {
  const inside = relative(root, file);
  return inside !== "" && inside !== ".." && !inside.startsWith(`..${sep}`) && !isAbsolute(inside);
}

async function readWhole(real: string, limitBytes: number): Promise<FileReading> {
  try {
    const file = await open(real, OPEN_FLAGS);
    try {
      const facts = await file.stat();
      if (!facts.isFile()) return refused("is not a regular file");
      if (facts.size > limitBytes) return refused(`is larger than ${limitBytes} bytes`);
      // A parent directory may have been replaced by a link since the path was resolved.
      const now = await stat(await realpath(real));
      if (now.ino !== facts.ino || now.dev !== facts.dev) return refused("was moved while being opened");
      return await readUpTo(file, facts.size, limitBytes);
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    return refused(`cannot be read (${code})`);
  }
}

/** A growing file must not exceed the limit. */
async function readUpTo(
  file: { read(buffer: Buffer, offset: number, length: number, position: null): Promise<{ bytesRead: number }> },
  sizeBytes: number,
  limitBytes: number,
): Promise<FileReading> {
  const buffer = Buffer.allocUnsafe(Math.min(limitBytes + 1, sizeBytes + 4096));
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  if (length > limitBytes) return refused(`is larger than ${limitBytes} bytes`);
  return { ok: true, bytes: buffer.subarray(0, length) };
}

function refused(problem: string): FileReading {
  return { ok: false, problem };
}
