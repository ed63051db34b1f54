import { closeSync, fstatSync, fsync, openSync, readdirSync, readSync, statSync, unlinkSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { makeDirectorySync } from "@headworks/files";
import { type Database, type Statement, storageErrorReason } from "./database.ts";

const FILE_NAME = /^(\d{1,15})\.body$/u;

export function bodyFilePath(folder: string, file: number): string {
  return join(folder, `${file}.body`);
}

interface OpenFile {
  readonly fd: number;
  bytes: number;
}

/** Large bodies, one file each, beside the database. Used by the writer thread only. */
export class BodyFiles {
  readonly #folder: string;
  readonly #open = new Map<number, OpenFile>();
  /** Failed files; later chunks must not create them again. */
  readonly #failed = new Set<number>();
  /** Reason of the last failure, until reported. */
  #failureReason: string | null = null;
  /** Size of the smallest failed body; after one of this size is written, a failure is reported again. */
  #failedBytes: number | undefined;
  readonly #sizes = new Map<number, number>();
  #unsynced: number[] = [];
  #totalBytes = 0;

  constructor(folder: string) {
    this.#folder = folder;
    makeDirectorySync(folder);
  }

  /** Of finished files. */
  get totalBytes(): number {
    return this.#totalBytes;
  }

  /** Removes unreferenced files and returns the first free number. `referenced` must hold every number in use. */
  sweep(referenced: ReadonlySet<number>): number {
    let highest = 0;
    for (const name of readdirSync(this.#folder)) {
      const file = Number(FILE_NAME.exec(name)?.[1] ?? Number.NaN);
      if (Number.isNaN(file)) continue;
      highest = Math.max(highest, file);
      if (referenced.has(file)) this.#addSize(file, statSync(join(this.#folder, name)).size);
      else removeFile(join(this.#folder, name));
    }
    for (const file of referenced) highest = Math.max(highest, file);
    return highest + 1;
  }

  /** Appends; on failure removes the file and returns false. */
  append(file: number, bytes: Uint8Array): boolean {
    if (this.#failed.has(file)) return false;
    try {
      const target = this.#open.get(file) ?? this.#create(file);
      let from = 0;
      while (from < bytes.length) from += writeSync(target.fd, bytes, from);
      target.bytes += bytes.length;
      return true;
    } catch (error) {
      if (this.#failedBytes === undefined) this.#failureReason = storageErrorReason(error);
      this.#failedBytes = (this.#open.get(file)?.bytes ?? 0) + bytes.length;
      this.discard(file);
      this.#failed.add(file);
      return false;
    }
  }

  /** Why bodies are rejected, to complete a message. Returned once until a body of the failed size is written. */
  takeFailureReason(): string | null {
    const failureReason = this.#failureReason;
    this.#failureReason = null;
    return failureReason;
  }

  /** Marks a file as complete; it is closed at the next sync. */
  finish(file: number): void {
    const target = this.#open.get(file);
    if (this.#failed.delete(file) || target === undefined) return;
    if (this.#failedBytes !== undefined && target.bytes >= this.#failedBytes) this.#failedBytes = undefined;
    this.#addSize(file, target.bytes);
    this.#unsynced.push(file);
  }

  /** True if the body is complete. */
  has(file: number): boolean {
    return this.#sizes.has(file);
  }

  /** Deletes a file, finished or not. */
  discard(file: number): void {
    this.#failed.delete(file);
    const target = this.#open.get(file);
    if (target !== undefined) {
      closeSync(target.fd);
      this.#open.delete(file);
    }
    this.#totalBytes -= this.#sizes.get(file) ?? 0;
    this.#sizes.delete(file);
    removeFile(bodyFilePath(this.#folder, file));
  }

  /** Closes all files; unfinished ones are removed at the next start. */
  close(): void {
    for (const target of this.#open.values()) closeSync(target.fd);
    this.#open.clear();
    this.#unsynced = [];
  }

  /** Syncs and closes finished files. A failed file is retried by the next call. */
  async sync(): Promise<void> {
    const files = this.#unsynced;
    if (files.length === 0) return;
    this.#unsynced = [];
    const failures: unknown[] = [];
    for (const file of files) {
      try {
        await this.#bringToDisk(file);
      } catch (error) {
        failures.push(error);
        this.#unsynced.push(file);
      }
    }
    await syncFolder(this.#folder);
    if (failures.length > 0) throw failures[0];
  }

  async #bringToDisk(file: number): Promise<void> {
    const target = this.#open.get(file);
    if (target === undefined) return;
    // `discard` must not close the descriptor during the sync.
    this.#open.delete(file);
    try {
      await promisify(fsync)(target.fd);
    } catch (error) {
      if (this.has(file)) this.#open.set(file, target);
      else closeSync(target.fd);
      throw error;
    }
    closeSync(target.fd);
  }

  #create(file: number): OpenFile {
    const target = { fd: openSync(bodyFilePath(this.#folder, file), "wx", 0o600), bytes: 0 };
    this.#open.set(file, target);
    return target;
  }

  #addSize(file: number, bytes: number): void {
    this.#sizes.set(file, bytes);
    this.#totalBytes += bytes;
  }
}

/** Ignores missing files; a file that cannot be removed is swept at the next start. */
function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    return;
  }
}

/** A new name is durable only once its folder is synced. Systems that cannot sync folders do not need it. */
async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch {
    return;
  }
}

/** Reads stored bodies from rows and files. */
export class StoredBodies {
  readonly #folder: string;
  readonly #find: Statement;

  constructor(database: Database, folder: string) {
    this.#folder = folder;
    this.#find = database.prepare("SELECT bytes, file FROM body WHERE key = ?");
  }

  /** A prefix of a body; undefined if nothing is stored. */
  read(seq: number, side: "request" | "response", maxBytes: number): Uint8Array | undefined {
    const row = this.#find.get(seq * 2 + (side === "request" ? 0 : 1));
    if (row === undefined) return undefined;
    const { bytes, file } = row;
    if (bytes instanceof Uint8Array) return bytes.length <= maxBytes ? bytes : bytes.subarray(0, maxBytes);
    return file === null || file === undefined
      ? undefined
      : readFilePart(bodyFilePath(this.#folder, Number(file)), 0, maxBytes);
  }

  /** File path or bytes; undefined if nothing is stored. */
  locate(seq: number, side: "request" | "response"): Uint8Array | string | undefined {
    const row = this.#find.get(seq * 2 + (side === "request" ? 0 : 1));
    if (row?.["bytes"] instanceof Uint8Array) return row["bytes"];
    const file = row?.["file"];
    return file === null || file === undefined ? undefined : bodyFilePath(this.#folder, Number(file));
  }
}

/** Bytes `start` to `end`; undefined if the file is gone: entries are removed at any time. */
export function readFilePart(path: string, start: number, end: number): Uint8Array | undefined {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return undefined;
  }
  try {
    const until = Math.min(end, fstatSync(fd).size);
    const bytes = new Uint8Array(Math.max(0, until - start));
    let filled = 0;
    while (filled < bytes.length) {
      const read = readSync(fd, bytes, filled, bytes.length - filled, start + filled);
      if (read === 0) break;
      filled += read;
    }
    return filled === bytes.length ? bytes : bytes.subarray(0, filled);
  } finally {
    closeSync(fd);
  }
}
