import { lstat, readdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

const SUFFIX = /^\.(\d{4,}-\d\d-\d\d_\d\d-\d\d-\d\d)(?:\.([1-9]\d{0,8}))?$/;

export interface Archive {
  readonly name: string;
  readonly path: string;
  readonly sizeBytes: number;
  /** Time of the last line, milliseconds since 1970. */
  readonly modifiedMs: number;
  /** Identifies the file across renames. */
  readonly inode: bigint;
}

/** Archives of a log file, newest first. A missing directory has none; other errors are thrown. */
export async function listArchives(path: string): Promise<Archive[]> {
  const directory = dirname(path);
  const found: (Archive & { readonly order: readonly [bigint, string, number] })[] = [];
  for (const name of await namesIn(directory)) {
    const parsed = parseArchiveName(basename(path), name);
    if (parsed === undefined) continue;
    const archivePath = join(directory, name);
    const facts = await factsOf(archivePath);
    if (facts === undefined || !facts.isFile()) continue;
    found.push({
      name,
      path: archivePath,
      sizeBytes: Number(facts.size),
      modifiedMs: Number(facts.mtimeMs),
      inode: facts.ino,
      order: [facts.mtimeNs, parsed.stamp, parsed.copy],
    });
  }
  return found
    .sort((left, right) => compareOrder(right.order, left.order))
    .map(({ order: _order, ...archive }) => archive);
}

/** Removes the oldest archives until `maxFiles` are left. Tries all, then throws an AggregateError. */
export async function pruneArchives(path: string, maxFiles: number): Promise<void> {
  const failures: unknown[] = [];
  for (const { path: archivePath } of (await listArchives(path)).slice(maxFiles)) {
    try {
      await unlink(archivePath);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") failures.push(error);
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, "archives could not be removed");
}

/** Ordered by the last line: names follow the local clock, which may be set back. */
function compareOrder(left: readonly [bigint, string, number], right: readonly [bigint, string, number]): number {
  if (left[0] !== right[0]) return left[0] < right[0] ? -1 : 1;
  if (left[1] !== right[1]) return left[1] < right[1] ? -1 : 1;
  return left[2] - right[2];
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

async function factsOf(path: string): Promise<Awaited<ReturnType<typeof bigLstat>> | undefined> {
  try {
    return await bigLstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

const bigLstat = (path: string) => lstat(path, { bigint: true });

/** Parts of an archive name: `weir.log.2026-03-01_00-00-00.2` is the third of its second. */
interface ArchiveName {
  /** `2026-03-01_00-00-00`, local time of the rotation. */
  readonly stamp: string;
  /** 0 for the first of its second. */
  readonly copy: number;
}

/** Endless candidates in order of preference; the caller takes the first free one. */
export function* archiveNames(fileName: string, atMs: number): Generator<string, never> {
  const name = `${fileName}.${archiveStamp(atMs)}`;
  yield name;
  for (let copy = 1; ; copy += 1) yield `${name}.${copy}`;
}

/** Local time in archive names: `2026-03-01_00-00-00`. */
export function archiveStamp(atMs: number): string {
  const at = new Date(atMs);
  const two = (value: number): string => String(value).padStart(2, "0");
  const day = `${String(at.getFullYear()).padStart(4, "0")}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day}_${two(at.getHours())}-${two(at.getMinutes())}-${two(at.getSeconds())}`;
}

/** Inverse of {@link archiveNames}; undefined for all other names. */
export function parseArchiveName(fileName: string, name: string): ArchiveName | undefined {
  if (!name.startsWith(fileName)) return undefined;
  const [, stamp, copy] = SUFFIX.exec(name.slice(fileName.length)) ?? [];
  return stamp === undefined ? undefined : { stamp, copy: Number(copy ?? 0) };
}
