import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readdir, rename, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectory } from "@headworks/files";

export type SnapshotFormat = "har" | "session";

/** Name of a temporary file; it never begins like a snapshot. */
const TEMPORARY = /^\.weir-snapshot-[0-9a-f-]{36}\.tmp$/;
/** Snapshots of any Weir, renamed ones included. Other files are never touched. */
const SNAPSHOT = /^session-.*\.(?:har|json)$/s;
/** Temporary files unchanged for this long belong to a process that was killed. */
const STALE_MS = 600_000;
/** Names to try when a file of that second exists. */
const MAX_NAMES = 3600;

export interface WrittenSnapshot {
  readonly path: string;
  readonly name: string;
  readonly sizeBytes: number;
}

export function snapshotName(atMs: number, format: SnapshotFormat): string {
  const digits = new Date(atMs).toISOString().replace(/\D/g, "");
  return `session-${digits.slice(0, 8)}-${digits.slice(8, 14)}.${format === "har" ? "har" : "json"}`;
}

/**
 * Writes a document to a new file, mode 0600. The file is written under a temporary name and moved, so that a snapshot
 * is complete and durable or absent. If a file of that second exists, the next free second is used. Rejects with the
 * signal's reason or the file system's error.
 */
export async function writeSnapshot(
  directory: string,
  target: { readonly atMs: number; readonly format: SnapshotFormat },
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<WrittenSnapshot> {
  await makeDirectory(directory);
  const temporary = join(directory, `.weir-snapshot-${randomUUID()}.tmp`);
  const file = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  try {
    let sizeBytes = 0;
    try {
      for await (const chunk of chunks) {
        signal.throwIfAborted();
        for (let at = 0; at < chunk.length;) at += (await file.write(chunk, at)).bytesWritten;
        sizeBytes += chunk.length;
      }
      await file.sync();
    } finally {
      await file.close();
    }
    signal.throwIfAborted();
    const name = await freeName(directory, target);
    const path = join(directory, name);
    await rename(temporary, path);
    await syncDirectory(directory);
    return { path, name, sizeBytes };
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

async function freeName(
  directory: string,
  { atMs, format }: { readonly atMs: number; readonly format: SnapshotFormat },
): Promise<string> {
  for (let later = 0; later < MAX_NAMES; later += 1) {
    const name = snapshotName(atMs + later * 1000, format);
    if ((await lstatOrNone(join(directory, name))) === undefined) return name;
  }
  throw new Error(`There are files of every second of this hour in ${directory}`);
}

/**
 * Deletes the oldest snapshots beyond `keep` by modification time and returns their names. Links, directories and files
 * with other names are neither counted nor deleted; `newest` is never deleted.
 */
export async function pruneSnapshots(directory: string, keep: number, newest: string): Promise<string[]> {
  const found: { readonly name: string; readonly changedMs: number }[] = [];
  for (const name of await readdir(directory)) {
    if (!SNAPSHOT.test(name)) continue;
    const facts = await lstatOrNone(join(directory, name));
    if (facts?.isFile() === true) found.push({ name, changedMs: name === newest ? Infinity : facts.mtimeMs });
  }
  found.sort((one, other) => other.changedMs - one.changedMs || (one.name < other.name ? 1 : -1));
  const pruned: string[] = [];
  for (const { name } of found.slice(Math.max(1, keep)).reverse()) {
    await unlink(join(directory, name));
    pruned.push(name);
  }
  return pruned;
}

/** Removes temporary files of killed processes. */
export async function removeLeftovers(directory: string, nowMs: number): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  for (const name of names) {
    if (!TEMPORARY.test(name)) continue;
    const facts = await lstatOrNone(join(directory, name));
    if (facts?.isFile() === true && nowMs - facts.mtimeMs > STALE_MS) await rm(join(directory, name), { force: true });
  }
}

async function lstatOrNone(path: string) {
  try {
    return await lstat(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Makes the move durable. Windows cannot open directories and journals moves. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
