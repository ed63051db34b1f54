import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { lstat, open, readdir, rename, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { makeDirectory } from "@headworks/files";

export type SnapshotFormat = "har" | "session";

/** A file that is being written has such a name; it never begins like a snapshot. */
const TEMPORARY = /^\.weir-snapshot-[0-9a-f-]{36}\.tmp$/;
/** Snapshots, by any Weir, and what somebody renamed among them. Other files of the directory are never touched. */
const SNAPSHOT = /^session-.*\.(?:har|json)$/s;
/** A temporary file that nobody wrote to for so long was left behind by a process that ended. */
const STALE_MS = 600_000;
/** Names that are tried when there is a file of that second already. */
const MAX_NAMES = 3600;

export interface WrittenSnapshot {
  readonly path: string;
  readonly name: string;
  readonly sizeBytes: number;
}

/** `session-<YYYYMMDD-HHMMSS>.har` or `.json`, in UTC. */
export function snapshotName(atMs: number, format: SnapshotFormat): string {
  const digits = new Date(atMs).toISOString().replace(/\D/g, "");
  return `session-${digits.slice(0, 8)}-${digits.slice(8, 14)}.${format === "har" ? "har" : "json"}`;
}

/**
 * Writes a document to a file of its own, mode 0600. Under its name it is whole and on disk, or not there at all: it is
 * written elsewhere in the directory and moved. Where a file of that second is there already, the next free second is
 * taken, so that nothing is replaced. Throws the signal's reason, and what the file system says.
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
 * Deletes the oldest snapshots beyond `keep`, by the time of their last change; gives their names. Links, directories
 * and files of other names are neither counted nor deleted, and `newest` never is, whatever its time says.
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

/** Removes what processes that were killed left half written. */
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

/** Makes the move itself durable. Windows cannot open directories and keeps moves in its journal. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(directory, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
