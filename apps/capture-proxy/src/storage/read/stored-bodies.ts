import { closeSync, openSync, readSync, fstatSync } from "node:fs";
import { bodyFilePath } from "./body-files.ts";
import type { Database, Statement } from "../database.ts";

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
