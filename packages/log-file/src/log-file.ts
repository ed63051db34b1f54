import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  openSync,
  renameSync,
  unlinkSync,
  write,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { makeDirectorySync } from "@headworks/files";
import { archiveNames, pruneArchives } from "./archives.ts";
import { type OverflowRule, WaitingLines } from "./waiting-lines.ts";

/** The last two are undefined on Windows. */
const FLAGS =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  (constants.O_NOFOLLOW ?? 0) |
  (constants.O_NONBLOCK ?? 0);

/** Replaceable in tests. */
export interface LogClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Monotonic milliseconds. */
  monotonic(): number;
  every(intervalMs: number, callback: () => void): () => void;
  after(delayMs: number, callback: () => void): () => void;
}

/** Limits that may change at run time. */
export interface LogFileLimits {
  /** Archives kept. */
  readonly maxFiles: number;
  /** Maximum file size with any rotation; a longer line has a file of its own. */
  readonly maxFileBytes: number;
  /** False: {@link LogFile.write} is synchronous. */
  readonly isAsync: boolean;
  /** Maximum buffered lines. */
  readonly bufferLines: number;
  readonly overflow: OverflowRule;
}

export interface LogFileOptions extends LogFileLimits {
  readonly path: string;
  readonly rotation: Rotation;
  readonly clock: LogClock;
  /** Called once per outage, with a sentence. */
  readonly onProblem: (sentence: string) => void;
  /** Called when writing works again, with the number of lines lost. */
  readonly onRecovered: (droppedLines: number) => void;
}

export interface LogFileStatus {
  readonly sizeBytes: number;
  readonly waitingLines: number;
  readonly highWater: number;
  readonly droppedLines: number;
  readonly writtenLines: number;
  /** Why the file cannot be written now. */
  readonly problem: string | undefined;
}

const CHECK_PERIOD_MS = 60_000;

/** Interval of checks for a removed file; each costs a system call. */
const LOOK_MS = 250;
const RETRY_MS = 1000;

/** Minimum interval of reports, for a disk that is full intermittently. */
const ANNOUNCE_MS = 600_000;
const CHUNK_BYTES = 262_144;

/** Whole lines, except after a partial write. */
interface Chunk {
  readonly bytes: Buffer;
  readonly lines: number;
}

/**
 * An append-only file, rotated by time, by size or on request. Writing never throws and, unless `isAsync` is false,
 * never blocks: one write is in flight, further lines are buffered up to a limit and then counted as lost. A failing
 * file is retried every second.
 */
export class LogFile {
  readonly #options: LogFileOptions;
  #limits: LogFileLimits;
  readonly #waiting: WaitingLines;
  #descriptor: number | undefined;
  #sizeBytes = 0;
  #period: number | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** Left over from a partial write; written first. */
  #rest: Chunk | undefined;
  #inFlight: Chunk | undefined;
  #isClosed = false;
  #written = 0;
  #problem: string | undefined;
  #toldMs = Number.NEGATIVE_INFINITY;
  #wasTold = false;
  #droppedBefore = 0;
  #stopRetry: (() => void) | undefined;
  readonly #stopChecks: () => void;
  #rotations: PromiseWithResolvers<string>[] = [];
  #idle: PromiseWithResolvers<void> | undefined;
  #pruning: Promise<void> = Promise.resolve();

  /** Opens the file immediately; a failure is handled like a failed write. */
  constructor(options: LogFileOptions) {
    this.#options = options;
    this.#limits = options;
    this.#waiting = new WaitingLines(options.bufferLines, options.overflow);
    this.#stopChecks = options.clock.every(CHECK_PERIOD_MS, () => this.#check());
    this.#try(() => this.#ready());
    this.#prune();
  }

  get status(): LogFileStatus {
    return {
      sizeBytes: this.#sizeBytes,
      waitingLines: this.#waiting.length + (this.#rest?.lines ?? 0) + (this.#inFlight?.lines ?? 0),
      highWater: this.#waiting.highWater,
      droppedLines: this.#waiting.dropped,
      writtenLines: this.#written,
      problem: this.#problem,
    };
  }

  /** The line includes its line end. */
  write(line: string): void {
    if (this.#isClosed) return;
    this.#waiting.add(Buffer.from(line));
    if (this.#inFlight !== undefined || this.#problem !== undefined) return;
    if (this.#limits.isAsync) this.#pump();
    else this.flushSync();
  }

  /** Rotates after all lines so far; returns the archive's path, or rejects. */
  async rotate(): Promise<string> {
    if (this.#isClosed) throw new Error("the log file is closed");
    const request = Promise.withResolvers<string>();
    this.#rotations.push(request);
    if (this.#inFlight === undefined) this.#settleRotations();
    return await request.promise;
  }

  /** Removes excess archives immediately. */
  setLimits(limits: LogFileLimits): void {
    this.#limits = limits;
    this.#waiting.maxLines = limits.bufferLines;
    this.#waiting.rule = limits.overflow;
    this.#prune();
  }

  /** Resolves when all lines so far are written, or cannot be now, and excess archives are removed. */
  async settled(): Promise<void> {
    if (this.#inFlight !== undefined) {
      this.#idle ??= Promise.withResolvers();
      await this.#idle.promise;
    }
    await this.#pruning;
  }

  /** Writes the buffer synchronously at the end of the process; a write in flight may complete later. */
  flushSync(): void {
    this.#try(() => {
      while ((this.#rest ?? this.#waiting.nextBytes) !== undefined) {
        const { descriptor, chunk } = this.#nextChunk();
        this.#rest = chunk;
        this.#wrote(chunk, writeSync(descriptor, chunk.bytes));
      }
    });
  }

  /** Writes the buffer and closes the file; unwritable lines are lost. */
  async close(): Promise<void> {
    await this.settled();
    if (this.#isClosed) return;
    this.flushSync();
    this.#isClosed = true;
    this.#stopChecks();
    this.#stopRetry?.();
    this.#waiting.dropAll();
    for (const request of this.#rotations.splice(0)) request.reject(new Error("the log file is closed"));
    this.#closeDescriptor();
  }

  /** Starts a write unless one is in flight. */
  #pump(): void {
    if (this.#inFlight !== undefined || this.#isClosed) return;
    if ((this.#rest ?? this.#waiting.nextBytes) === undefined) return this.#becomeIdle();
    this.#try(() => {
      const { descriptor, chunk } = this.#nextChunk();
      this.#rest = undefined;
      this.#inFlight = chunk;
      write(descriptor, chunk.bytes, (error, writtenBytes) => {
        this.#inFlight = undefined;
        if (error === null) this.#wrote(chunk, writtenBytes);
        else {
          this.#rest = chunk;
          this.#fail(error);
        }
        if (this.#rotations.length > 0) this.#settleRotations();
        if (this.#problem === undefined) this.#pump();
        else this.#becomeIdle();
      });
    });
    if (this.#inFlight === undefined) this.#becomeIdle();
  }

  #becomeIdle(): void {
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  /** The next chunk and its descriptor; rotates first if the file would exceed its limit. */
  #nextChunk(): { readonly descriptor: number; readonly chunk: Chunk } {
    const descriptor = this.#ready();
    if (this.#rest !== undefined) return { descriptor, chunk: this.#rest };
    const next = this.#waiting.nextBytes ?? 0;
    if (this.#sizeBytes > 0 && this.#sizeBytes + next > this.#capBytes()) {
      return { descriptor: this.#putAway(), chunk: this.#waiting.take(this.#roomBytes()) };
    }
    return { descriptor, chunk: this.#waiting.take(this.#roomBytes()) };
  }

  #roomBytes(): number {
    return Math.min(CHUNK_BYTES, this.#capBytes() - this.#sizeBytes);
  }

  #capBytes(): number {
    const { rotation } = this.#options;
    return rotation.mode === "size"
      ? Math.min(rotation.sizeBytes, this.#limits.maxFileBytes)
      : this.#limits.maxFileBytes;
  }

  #wrote(chunk: Chunk, writtenBytes: number): void {
    this.#sizeBytes += writtenBytes;
    if (writtenBytes < chunk.bytes.length) {
      this.#rest = { bytes: chunk.bytes.subarray(writtenBytes), lines: chunk.lines };
      return;
    }
    this.#rest = undefined;
    this.#written += chunk.lines;
    this.#recover();
    if (this.#sizeBytes > this.#capBytes()) this.#try(() => void this.#putAway());
  }

  /** The descriptor of the file at the path, reopened if the file was removed. */
  #ready(): number {
    const { path, clock } = this.#options;
    const nowMs = clock.monotonic();
    if (this.#descriptor !== undefined && Math.abs(nowMs - this.#lookedMs) >= LOOK_MS) {
      const { isThere, sizeBytes } = lookAgain(path, this.#descriptor);
      this.#lookedMs = nowMs;
      this.#sizeBytes = sizeBytes;
      if (!isThere) this.#closeDescriptor();
    }
    if (this.#descriptor === undefined) this.#open();
    if (this.#descriptor === undefined) throw new Error("the file is not open");
    return this.#descriptor;
  }

  #open(): void {
    const { path, rotation, clock } = this.#options;
    const { descriptor, sizeBytes, modifiedMs } = openAppendFile(path);
    this.#descriptor = descriptor;
    this.#sizeBytes = sizeBytes;
    this.#lookedMs = clock.monotonic();
    this.#period = periodStart(rotation, sizeBytes === 0 ? clock.now() : modifiedMs);
    this.#checkPeriod();
  }

  /** Rotates and returns the new descriptor. If another process rotated already, opens its new file. */
  #putAway(): number {
    this.#renameFile();
    return this.#ready();
  }

  /** The archive's path; undefined if another process was faster. */
  #renameFile(): string | undefined {
    const { path, clock } = this.#options;
    if (this.#descriptor !== undefined && !lookAgain(path, this.#descriptor).isThere) {
      this.#closeDescriptor();
      return undefined;
    }
    const archive = putAway(path, clock.now());
    this.#closeDescriptor();
    this.#prune();
    return archive;
  }

  #closeDescriptor(): void {
    if (this.#descriptor === undefined) return;
    const descriptor = this.#descriptor;
    this.#descriptor = undefined;
    this.#sizeBytes = 0;
    try {
      closeSync(descriptor);
    } catch {
      // Network file systems report lost writes here, too late to repeat them.
    }
  }

  /** Each request gets its own archive, also those made during a write. */
  #settleRotations(): void {
    for (const request of this.#rotations.splice(0)) {
      try {
        this.flushSync();
        if (this.#problem !== undefined) throw new Error(this.#problem);
        this.#ready();
        const archive = this.#renameFile() ?? this.#rotateAnew();
        this.#ready();
        request.resolve(archive);
      } catch (error) {
        this.#fail(error);
        request.reject(new Error(this.#problem ?? (error as Error).message));
      }
    }
  }

  #rotateAnew(): string {
    this.#ready();
    const archive = this.#renameFile();
    if (archive === undefined) throw new Error("others move the file away at the same time");
    return archive;
  }

  #check(): void {
    if (this.#inFlight !== undefined || this.#isClosed) return;
    this.#try(() => {
      this.#ready();
      this.#checkPeriod();
    });
    this.#pump();
  }

  /** Rotates a file of another hour or day, later or, after the clock was set back, earlier. */
  #checkPeriod(): void {
    const period = periodStart(this.#options.rotation, this.#options.clock.now());
    if (period === this.#period) return;
    if (this.#sizeBytes > 0) this.#renameFile();
    this.#period = period;
    if (this.#descriptor === undefined) this.#open();
  }

  #prune(): void {
    this.#pruning = this.#pruning.then(async () => {
      try {
        await pruneArchives(this.#options.path, this.#limits.maxFiles);
      } catch {
        // Missing permission to remove files shows when the log file itself is renamed.
      }
    });
  }

  #try(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    const isNew = this.#problem === undefined;
    const sentence = problemSentence(this.#options.path, error);
    this.#problem = sentence;
    this.#stopRetry ??= this.#options.clock.after(RETRY_MS, () => this.#retry());
    if (!isNew) return;
    const nowMs = this.#options.clock.monotonic();
    if (nowMs - this.#toldMs < ANNOUNCE_MS) return;
    this.#toldMs = nowMs;
    this.#wasTold = true;
    this.#droppedBefore = this.#waiting.dropped;
    this.#options.onProblem(sentence);
  }

  #retry(): void {
    this.#stopRetry = undefined;
    if (this.#isClosed || this.#inFlight !== undefined) return;
    // A full disk may create a file but not take a line, so only a written line proves recovery; without one opening
    // must suffice.
    if ((this.#rest ?? this.#waiting.nextBytes) !== undefined) return this.#pump();
    this.#try(() => {
      this.#ready();
      this.#recover();
    });
  }

  /** Reports recovery after a written line, when there is room for the line that the caller will log about it. */
  #recover(): void {
    this.#problem = undefined;
    if (!this.#wasTold || this.#waiting.length >= this.#limits.bufferLines / 2) return;
    this.#wasTold = false;
    this.#options.onRecovered(this.#waiting.dropped - this.#droppedBefore);
  }
}

interface AppendFile {
  readonly descriptor: number;
  readonly sizeBytes: number;
  /** Time of the last line, milliseconds since 1970. */
  readonly modifiedMs: number;
}

/** Opens or creates a regular file with mode 0600, and its directory; throws for anything else. */
function openAppendFile(path: string): AppendFile {
  makeDirectorySync(dirname(path));
  const descriptor = openSync(path, FLAGS, 0o600);
  try {
    const facts = fstatSync(descriptor);
    if (!facts.isFile()) throw new Error("it is not a regular file");
    if ((facts.mode & 0o077) !== 0) fchmodSync(descriptor, 0o600);
    return { descriptor, sizeBytes: facts.size, modifiedMs: facts.mtimeMs };
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

/** Whether `path` still names the open file, and its size, which other writers may change. */
function lookAgain(path: string, descriptor: number): { readonly isThere: boolean; readonly sizeBytes: number } {
  const own = fstatSync(descriptor);
  const found = lstatSync(path, { throwIfNoEntry: false });
  return { isThere: found?.ino === own.ino && found.dev === own.dev, sizeBytes: own.size };
}

/** Renames a file to the first free archive name without replacing a file; returns the new path. */
function putAway(path: string, atMs: number): string {
  for (const name of archiveNames(basename(path), atMs)) {
    const target = join(dirname(path), name);
    if (!reserve(target)) continue;
    try {
      renameSync(path, target);
      return target;
    } catch (error) {
      unlinkSync(target);
      throw error;
    }
  }
  throw new Error("unreachable");
}

/** Creates an empty file under the name: a plain rename would replace a file that another process created meanwhile. */
function reserve(path: string): boolean {
  try {
    closeSync(openSync(path, "wx", 0o600));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Time-based rotation, in addition to the size limit. */
export type Rotation =
  | { readonly mode: "never" }
  | { readonly mode: "hourly" }
  | { readonly mode: "daily" }
  | { readonly mode: "size"; readonly sizeBytes: number };

/**
 * Start of the local hour or day of `atMs`, milliseconds since 1970; undefined without time-based rotation. Moments
 * with equal starts share a file. An hour repeated when the clock is set back counts separately.
 */
export function periodStart(rotation: Rotation, atMs: number): number | undefined {
  const at = new Date(atMs);
  switch (rotation.mode) {
    case "hourly":
      // Subtracts the displayed minutes: some zones are offset by half an hour.
      return atMs - ((at.getMinutes() * 60 + at.getSeconds()) * 1000 + at.getMilliseconds());
    case "daily":
      return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
    default:
      return undefined;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EDQUOT: "the quota of the disk is used up",
  EROFS: "the disk is read-only",
  EACCES: "the file or its directory may not be written",
  EPERM: "the file or its directory may not be written",
  ELOOP: "it is a link",
  EISDIR: "it is a directory",
  ENXIO: "it is not a regular file",
  ENOTDIR: "its directory is a file",
  EEXIST: "its directory is a file",
  EMFILE: "too many files are open",
  ENFILE: "too many files are open",
  EFBIG: "the file may not get larger",
};

/** Why a log file cannot be written; an error made from such a sentence keeps it. */
function problemSentence(path: string, error: unknown): string {
  const { message } = error as Error;
  return message.startsWith("The log file") ? message : `The log file ${path} cannot be written: ${reasonOf(error)}`;
}

/** The system error in words, to complete a sentence. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === undefined ? message : (REASONS[code] ?? code);
}
