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
import { archiveNames } from "./archive-name.ts";
import { pruneArchives } from "./archives.ts";
import { periodStart, type Rotation } from "./rotation-period.ts";
import { problemSentence } from "./trouble.ts";
import { type OverflowRule, WaitingLines } from "./waiting-lines.ts";

/** Windows has neither of the last two; there they are undefined. */
const FLAGS =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  (constants.O_NOFOLLOW ?? 0) |
  (constants.O_NONBLOCK ?? 0);

/** Time, as it can be moved by tests. */
export interface LogClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds that never go back. */
  monotonic(): number;
  every(intervalMs: number, callback: () => void): () => void;
  after(delayMs: number, callback: () => void): () => void;
}

/** What may change while the file is written. */
export interface LogFileLimits {
  /** Archives that are kept. */
  readonly maxFiles: number;
  /** No file gets larger by whole lines, whatever the rotation; a longer line has a file of its own. */
  readonly maxFileBytes: number;
  /** False: a line is on its way to the disk when {@link LogFile.write} returns. */
  readonly isAsync: boolean;
  /** Lines that may wait for the disk. */
  readonly bufferLines: number;
  readonly overflow: OverflowRule;
}

export interface LogFileOptions extends LogFileLimits {
  readonly path: string;
  readonly rotation: Rotation;
  readonly clock: LogClock;
  /** The file cannot be written, in a sentence: said once, and again only after it could be. */
  readonly onProblem: (sentence: string) => void;
  /** The file can be written again; so many lines were lost meanwhile. */
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
/** A file that was taken away is missed after so long; looking costs a call of the system. */
const LOOK_MS = 250;
const RETRY_MS = 1000;
/** A disk that is full and free by turns is not announced at each turn. */
const ANNOUNCE_MS = 600_000;
const CHUNK_BYTES = 262_144;

/** Whole lines, but for the rest of what a write has taken a part of. */
interface Chunk {
  readonly bytes: Buffer;
  readonly lines: number;
}

/**
 * A file that lines are appended to, put away by time, size or on request. Writing never throws and, but for `isAsync`
 * false, never waits for the disk: one write is under way at a time, what comes meanwhile waits in bounded memory, and
 * what has no room is counted. A file that cannot be written is tried again every second.
 */
export class LogFile {
  readonly #options: LogFileOptions;
  #limits: LogFileLimits;
  readonly #waiting: WaitingLines;
  #descriptor: number | undefined;
  #sizeBytes = 0;
  #period: number | undefined;
  #lookedMs = Number.NEGATIVE_INFINITY;
  /** What a write has not taken; it goes first. */
  #rest: Chunk | undefined;
  /** What a write is under way with. */
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

  /** Opens the file at once; when that fails, it is trouble like any other. */
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

  /** Takes a line, its line end included. */
  write(line: string): void {
    if (this.#isClosed) return;
    this.#waiting.add(Buffer.from(line));
    if (this.#inFlight !== undefined || this.#problem !== undefined) return;
    if (this.#limits.isAsync) this.#pump();
    else this.flushSync();
  }

  /** Puts the file away with all lines given so far, and begins a new one. Gives the archive's path. Rejects when it cannot. */
  async rotate(): Promise<string> {
    if (this.#isClosed) throw new Error("the log file is closed");
    const request = Promise.withResolvers<string>();
    this.#rotations.push(request);
    if (this.#inFlight === undefined) this.#settleRotations();
    return await request.promise;
  }

  /** Takes over other limits; archives that are too many go at once. */
  setLimits(limits: LogFileLimits): void {
    this.#limits = limits;
    this.#waiting.maxLines = limits.bufferLines;
    this.#waiting.rule = limits.overflow;
    this.#prune();
  }

  /** Resolves when all lines given so far are written, or none can be written now, and no archive is left to remove. */
  async settled(): Promise<void> {
    if (this.#inFlight !== undefined) {
      this.#idle ??= Promise.withResolvers();
      await this.#idle.promise;
    }
    await this.#pruning;
  }

  /** Writes what waits before it returns. For the end of the process: a write that is under way may come out later. */
  flushSync(): void {
    this.#try(() => {
      while ((this.#rest ?? this.#waiting.nextBytes) !== undefined) {
        const { descriptor, chunk } = this.#nextChunk();
        this.#rest = chunk;
        this.#wrote(chunk, writeSync(descriptor, chunk.bytes));
      }
    });
  }

  /** Writes what waits and closes the file. What cannot be written is lost. */
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

  /** Begins to write what waits, where nothing is under way. */
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

  /** What to write next, and where to; puts the file away first where it would get too large. */
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

  /** The opened file, which is the one at the path: opened anew where somebody took it away. */
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

  /** Gives the descriptor of the new file. Where another process has put the file away already, its successor is taken. */
  #putAway(): number {
    this.#renameFile();
    return this.#ready();
  }

  /** The path of the archive; undefined when somebody else was quicker. */
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
      // Network file systems tell of lost writes here; there is nobody left to write them again.
    }
  }

  /** Each request gets an archive of its own, also those that came while a write was under way. */
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

  /** A file of another hour or day, be it a later one or, after the clock was set back, an earlier one, is put away. */
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
        // A directory in which nothing can be removed shows when the file itself is to be moved in it.
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
    // A full disk takes a new file but no line, so only a line tells that all is well; without one, opening must do.
    if ((this.#rest ?? this.#waiting.nextBytes) !== undefined) return this.#pump();
    this.#try(() => {
      this.#ready();
      this.#recover();
    });
  }

  /** The file took a line. It is told when there is room for the line that the caller will write about it. */
  #recover(): void {
    this.#problem = undefined;
    if (!this.#wasTold || this.#waiting.length >= this.#limits.bufferLines / 2) return;
    this.#wasTold = false;
    this.#options.onRecovered(this.#waiting.dropped - this.#droppedBefore);
  }
}

/** A log file opened for appending. */
interface AppendFile {
  readonly descriptor: number;
  readonly sizeBytes: number;
  /** When its last line was written, milliseconds since 1970. */
  readonly modifiedMs: number;
}

/**
 * Opens or creates a file for its owner alone, with the directory it lies in. Throws for what is no regular file: a link
 * would send the log to a place that nobody chose, and a pipe could hold it up.
 */
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

/** Whether `path` still leads to the opened file, and how large that is now; others may write to it as well. */
function lookAgain(path: string, descriptor: number): { readonly isThere: boolean; readonly sizeBytes: number } {
  const own = fstatSync(descriptor);
  const found = lstatSync(path, { throwIfNoEntry: false });
  return { isThere: found?.ino === own.ino && found.dev === own.dev, sizeBytes: own.size };
}

/** Gives a file the first free name of an archive; no file that is there is ever replaced. Gives the new path. */
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

/** Takes a name by an empty file: a rename alone would replace what another process has put there meanwhile. */
function reserve(path: string): boolean {
  try {
    closeSync(openSync(path, "wx", 0o600));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}
