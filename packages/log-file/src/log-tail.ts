import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { listArchives } from "./archives.ts";

export interface LogTail {
  /** Oldest first, without line ends. */
  readonly lines: readonly string[];
  /** File and offset to continue from, valid across rotation. */
  readonly cursor: string;
  /** Earlier lines were left out or are gone. */
  readonly isMissing: boolean;
}

/** Maximum bytes read per call. */
const WINDOW_BYTES = 1_048_576;
const LINE_FEED = 0x0a;

/** The last `limit` lines within the last {@link WINDOW_BYTES}. A missing file has none. */
export async function lastLines(path: string, limit: number): Promise<LogTail> {
  await using opened = await openRegular(path);
  if (opened === undefined) return { lines: [], cursor: cursorText(0n, 0), isMissing: false };
  const from = Math.max(0, opened.sizeBytes - WINDOW_BYTES);
  const bytes = await readAt(opened.file, from, opened.sizeBytes - from);
  const end = bytes.lastIndexOf(LINE_FEED) + 1;
  // The window may start within a line.
  const begin = from === 0 ? 0 : bytes.indexOf(LINE_FEED) + 1;
  const all = begin < end ? linesOf(bytes.subarray(begin, end)) : [];
  const lines = all.slice(-limit);
  return { lines, cursor: cursorText(opened.inode, from + end), isMissing: from > 0 || lines.length < all.length };
}

/**
 * At most `limit` lines after `cursor`. A file rotated meanwhile is read to its end first; lines of a removed file are
 * missing. Undefined for an invalid cursor.
 */
export async function linesSince(path: string, cursor: string, limit: number): Promise<LogTail | undefined> {
  const position = parseCursor(cursor);
  if (position === undefined) return undefined;
  const found = await statOrNothing(path);
  if (found?.ino === position.inode) {
    const tail = await linesFrom(path, position, limit);
    if (tail !== undefined) return tail;
  }
  const archives = await listArchives(path);
  const at = archives.findIndex(({ inode }) => inode === position.inode);
  const archive = archives[at];
  if (archive !== undefined) {
    const tail = await linesFrom(archive.path, position, limit);
    if (tail !== undefined && tail.lines.length > 0) return tail;
    const next = at === 0 ? path : archives[at - 1]?.path;
    const start = next === undefined ? undefined : await linesFrom(next, undefined, limit);
    if (start !== undefined) return start;
    return { lines: [], cursor, isMissing: false };
  }
  const start = await linesFrom(path, undefined, limit);
  const isMissing = position.inode !== 0n;
  return start === undefined ? { lines: [], cursor, isMissing: false } : { ...start, isMissing };
}

interface Position {
  readonly inode: bigint;
  readonly offset: number;
}

function cursorText(inode: bigint, offset: number): string {
  return `${inode}-${offset}`;
}

function parseCursor(text: string): Position | undefined {
  const [, inode, offset] = /^(\d{1,20})-(\d{1,15})$/.exec(text) ?? [];
  return inode === undefined || offset === undefined ? undefined : { inode: BigInt(inode), offset: Number(offset) };
}

/** Undefined if the file is missing or shorter than the offset, as after truncation. */
async function linesFrom(path: string, position: Position | undefined, limit: number): Promise<LogTail | undefined> {
  await using opened = await openRegular(path);
  if (opened === undefined) return undefined;
  const offset = position?.offset ?? 0;
  if ((position !== undefined && position.inode !== opened.inode) || offset > opened.sizeBytes) return undefined;
  const bytes = await readAt(opened.file, offset, Math.min(WINDOW_BYTES, opened.sizeBytes - offset));
  let end = 0;
  const lines: string[] = [];
  while (lines.length < limit) {
    const next = bytes.indexOf(LINE_FEED, end);
    if (next === -1) break;
    lines.push(bytes.toString("utf8", end, next));
    end = next + 1;
  }
  // A line longer than the window is returned in parts, so that reading advances.
  if (end === 0 && bytes.length === WINDOW_BYTES) {
    lines.push(bytes.toString("utf8"));
    end = bytes.length;
  }
  return { lines, cursor: cursorText(opened.inode, offset + end), isMissing: false };
}

interface OpenedFile extends AsyncDisposable {
  readonly file: FileHandle;
  readonly sizeBytes: number;
  readonly inode: bigint;
}

async function openRegular(path: string): Promise<OpenedFile | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  const facts = await file.stat({ bigint: true });
  if (!facts.isFile()) {
    await file.close();
    return undefined;
  }
  return { file, sizeBytes: Number(facts.size), inode: facts.ino, [Symbol.asyncDispose]: () => file.close() };
}

async function statOrNothing(path: string) {
  try {
    return await stat(path, { bigint: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

async function readAt(file: FileHandle, from: number, sizeBytes: number): Promise<Buffer> {
  const bytes = Buffer.alloc(sizeBytes);
  let length = 0;
  while (length < sizeBytes) {
    const { bytesRead } = await file.read(bytes, length, sizeBytes - length, from + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return bytes.subarray(0, length);
}

function linesOf(bytes: Buffer): string[] {
  return bytes.toString("utf8", 0, bytes.length - 1).split("\n");
}
