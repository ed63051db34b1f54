import { constants } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";

/** The bytes of a file, or a sentence about why there are none; it names no place outside the directories. */
export type FileReading =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly problem: string };

/** Never waits for a writer of a pipe, and follows no link that appears after the path was resolved. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/**
 * Reads a file that lies below one of `directories`, as it is now. The path is absolute or relative to one of them; links
 * are resolved first, and where the file really lies decides. Directories that do not exist hold no files.
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
  return refused("is no file in a directory that bodies may come from");
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
      // A directory on the way may have become a link since the path was resolved.
      const now = await stat(await realpath(real));
      if (now.ino !== facts.ino || now.dev !== facts.dev) return refused("was moved while it was opened");
      return await readUpTo(file, facts.size, limitBytes);
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    return refused(`cannot be read (${code})`);
  }
}

/** A file that grows while it is read must not grow past the limit. */
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
