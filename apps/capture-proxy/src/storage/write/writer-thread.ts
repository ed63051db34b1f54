import { randomFillSync } from "node:crypto";
import { closeSync, openSync, renameSync, rmSync, statfsSync, statSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { parentPort } from "node:worker_threads";
import { storageErrorKind } from "@headworks/files";
import { DatabaseTooNewError, storageErrorReason } from "../database.ts";
import type { FrameBatch } from "../streams/stream-store.ts";
import { TrafficWriter } from "./traffic-writer.ts";
import type { FromWriter, RecordBatch, StoreChange, ToWriter, WriterCall, WriterSetup } from "./writer-messages.ts";

/** Below this much free space a disk is tight. */
const TIGHT_BYTES = 1_073_741_824;
/** A tight disk counts as roomy again above this (hysteresis). */
const ROOMY_BYTES = 1_342_177_280;
const RESERVE_BYTES = 33_554_432;
/** Maximum part of the free space that is reserved. */
const SHARE_OF_FREE = 1 / 8;
const PIECE_BYTES = 131_072;
type FreeBytes = (path: string) => number;

/** Reserves disk space: deleting from a database needs space first. */
export class DiskReserve {
  readonly #path: string;
  readonly #freeBytes: FreeBytes;
  heldBytes: number;
  /** As of the last {@link measure}. */
  isTight = false;

  /** @param path may exist from an earlier run */
  constructor(path: string, freeBytes: FreeBytes = freeBytesAt) {
    this.#path = path;
    this.#freeBytes = freeBytes;
    this.heldBytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Measures free space; reserves on a tight disk, releases otherwise. */
  measure(directory: string): void {
    let free: number;
    try {
      free = this.#freeBytes(directory);
    } catch {
      return;
    }
    this.isTight = free < (this.isTight ? ROOMY_BYTES : TIGHT_BYTES);
    if (!this.isTight) this.release();
    else this.#hold(Math.min(RESERVE_BYTES, (free + this.heldBytes) * SHARE_OF_FREE));
  }

  /** Returns false if nothing was reserved. */
  release(): boolean {
    if (this.heldBytes === 0) return false;
    try {
      rmSync(this.#path, { force: true });
    } catch {
      return false;
    }
    this.heldBytes = 0;
    return true;
  }

  #hold(bytes: number): void {
    // Grow only when the reserve at least doubles: earlier there may have been almost no free space.
    if (bytes < PIECE_BYTES || bytes < 2 * this.heldBytes) return;
    this.release();
    // Random bytes are incompressible, also for compressing file systems.
    const piece = randomFillSync(Buffer.allocUnsafe(PIECE_BYTES));
    let file: number;
    try {
      file = openSync(this.#path, "w", 0o600);
    } catch {
      return;
    }
    try {
      while (this.heldBytes + PIECE_BYTES <= bytes) this.heldBytes += writeSync(file, piece);
    } catch {
      // Less space than reported: keep what was written.
    } finally {
      closeSync(file);
    }
  }
}

function freeBytesAt(path: string): number {
  const { bsize, bavail, blocks } = statfsSync(path);
  // Some file systems report no block counts.
  return blocks === 0 ? Number.POSITIVE_INFINITY : bsize * bavail;
}

/** Delay of the retry after a failed commit. */
const RETRY_MS = 1000;
/** Maximum delay until commits are synced, well within the promised second. */
const SYNC_MS = 500;
/** Interval of free-space checks. */
const CHECK_SPACE_MS = 10_000;

/**
 * On a tight disk the log is checkpointed before it exceeds this part of the reserve: both the log and the file grow.
 */
const SHARE_IN_LOG = 1 / 8;

const FREEING: ReadonlySet<WriterCall["op"]> = new Set([
  "clearSession",
  "deleteSession",
  "deleteEntries",
  "clearStreams",
]);

const PROBLEMS = {
  full: "The disk is full: requests are still proxied, but new entries are not stored",
  "read-only": "The data directory is not writable: requests are still proxied, but new entries are not stored",
  corrupt: "The traffic database is damaged",
  busy: "Another program has locked the traffic database: new entries are queued",
  io: "The disk reports errors: requests are still proxied, but new entries are not stored",
  other: "The traffic database rejects new entries",
} as const;

/** Runs on the writer thread: commits batches in order, retains them while the disk fails. */
export class WriterThread {
  readonly #setup: WriterSetup;
  readonly #post: (message: FromWriter, transfer?: ArrayBuffer[]) => void;
  readonly #end: () => void;
  #writer: TrafficWriter | undefined;
  /** Batches not yet committed; bounded by the proxy thread's backlog limits. */
  readonly #waiting: (RecordBatch | FrameBatch)[] = [];
  #problem: string | null = null;
  /** Reason of the last failed commit. */
  #failureReason: string | null = null;
  #retry: NodeJS.Timeout | undefined;
  #syncTimer: NodeJS.Timeout | undefined;
  #syncing: Promise<void> | undefined;
  #isSyncDue = false;
  #tidying = false;
  #closing = false;
  /** Space for deleting on a full disk. */
  readonly #reserve: DiskReserve;
  readonly #spaceTimer: NodeJS.Timeout;
  /** True while a full disk is being freed: no batches are committed meanwhile. */
  #isFreeing = false;
  /** True if entries were removed since the last commit: a full disk may have room again. */
  #hasFreed = false;
  #isShrinkDue = false;
  /** Bytes written since the last checkpoint. */
  #loggedBytes = 0;

  constructor(setup: WriterSetup, post: (message: FromWriter, transfer?: ArrayBuffer[]) => void, end: () => void) {
    this.#setup = setup;
    this.#post = post;
    this.#end = end;
    this.#reserve = new DiskReserve(`${setup.path}.reserve`);
    this.#spaceTimer = setInterval(() => this.#checkSpace(), CHECK_SPACE_MS).unref();
  }

  /** Opens the database and posts `ready` or `openFailed`. */
  start(): void {
    try {
      const movedAside = this.#openWithRoom();
      const writer = this.#running;
      this.#post({
        kind: "ready",
        change: fullChange(writer),
        nextSeq: writer.highestSeq + 1,
        nextFile: writer.nextFile,
        nextStream: writer.nextStream,
        movedAside,
      });
      this.#post({ kind: "size", bytes: writer.sizeBytes });
      this.#checkSpace();
      this.#tidySoon();
    } catch (error) {
      const tooNew = error instanceof DatabaseTooNewError;
      const isStorageError = storageErrorKind(error) !== "other";
      this.#post({ kind: "openFailed", error: storageErrorReason(error), tooNew, isStorageError });
      this.#end();
    }
  }

  receive(message: ToWriter): void {
    switch (message.kind) {
      case "batch":
      case "frames":
        this.#waiting.push(message);
        if (this.#problem === null) this.#drain();
        return;
      case "piece":
        return this.#writePiece(message);
      case "fileEnd":
        return this.#running.files.finish(message.file);
      case "fileDiscard":
        return this.#running.files.discard(message.file);
      case "limits":
        this.#running.setLimits(message.limits);
        this.#hasFreed = true;
        this.#isFreeing = this.#problem !== null;
        return this.#tidySoon();
      case "call":
        return this.#call(message);
      case "close":
        void this.#close();
    }
  }

  get #running(): TrafficWriter {
    if (this.#writer === undefined) throw new Error("The writer is not open");
    return this.#writer;
  }

  #openWithRoom(): string | null {
    try {
      return this.#open();
    } catch (error) {
      if (storageErrorKind(error) !== "full" || !this.#reserve.release()) throw error;
      return this.#open();
    }
  }

  /** Returns where a corrupt file was moved, or null. */
  #open(): string | null {
    try {
      this.#writer = this.#newWriter();
      return null;
    } catch (error) {
      if (storageErrorKind(error) !== "corrupt") throw error;
      const aside = moveAside(this.#setup.path, this.#setup.bodiesFolder);
      this.#writer = this.#newWriter();
      return aside;
    }
  }

  #newWriter(): TrafficWriter {
    const { path, bodiesFolder, limits } = this.#setup;
    return new TrafficWriter(path, bodiesFolder, limits, (log, sessions) =>
      this.#post({ kind: "change", change: log.toChange(sessions) }),
    );
  }

  #writePiece({ file, bytes }: ToWriter & { kind: "piece" }): void {
    const { files } = this.#running;
    if (!files.append(file, bytes)) this.#post({ kind: "fileFailed", file, failureReason: files.takeFailureReason() });
    this.#post({ kind: "pieceDone", bytes: bytes.length });
  }

  #drain(): void {
    if (this.#isFreeing) return;
    for (let batch = this.#waiting[0]; batch !== undefined; batch = this.#waiting[0]) {
      const startedMs = performance.now();
      try {
        this.#keepLogShort();
        if (batch.kind === "frames") this.#running.writeFrames(batch);
        const result = batch.kind === "batch" ? this.#running.write(batch) : undefined;
        this.#waiting.shift();
        this.#hasFreed = false;
        this.#loggedBytes += batch.bytes;
        const transfer = batch.kind === "batch" ? [batch.memory] : [];
        this.#post(committed(batch, result, performance.now() - startedMs), transfer);
      } catch (error) {
        return this.#fail(error);
      }
    }
    this.#setProblem(null);
    this.#syncSoon();
    this.#tidySoon();
  }

  #fail(error: unknown): void {
    const errorKind = storageErrorKind(error);
    if (errorKind === "corrupt" && this.#replaceDatabase()) return this.#drain();
    if (errorKind === "full" && this.#hasFreed && !this.#closing) return this.#freeFirst();
    const reason = error instanceof Error ? error.message : String(error);
    this.#failureReason = storageErrorReason(error);
    this.#setProblem(`${PROBLEMS[errorKind]} (${reason})`);
    this.#retryLater();
  }

  #retryLater(): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#drain();
    }, RETRY_MS);
  }

  /** Frees space before retrying commits: removals may have been requested earlier. */
  #freeFirst(): void {
    this.#hasFreed = false;
    this.#isFreeing = true;
    this.#tidySoon();
  }

  /** Moves a file found corrupt while running aside for rescue and continues with a new one. */
  #replaceDatabase(): boolean {
    try {
      const old = this.#running;
      old.close();
      const aside = moveAside(this.#setup.path, this.#setup.bodiesFolder);
      this.#writer = this.#newWriter();
      const removedSessions = old.sessions.all().map((session) => session.number);
      this.#post({ kind: "change", change: { ...fullChange(this.#writer), removedSessions } });
      this.#post({ kind: "reopened", movedAside: aside });
      return true;
    } catch {
      return false;
    }
  }

  #setProblem(problem: string | null): void {
    if (problem === this.#problem) return;
    this.#problem = problem;
    this.#post({ kind: "problem", problem });
  }

  /** Checkpoints grow the file; on a tight disk they run early, so that the reserve covers the rest. */
  #keepLogShort(): void {
    if (!this.#reserve.isTight || this.#loggedBytes < this.#reserve.heldBytes * SHARE_IN_LOG) return;
    this.#running.checkpoint();
    this.#loggedBytes = 0;
  }

  #checkSpace(): void {
    if (this.#problem === null && !this.#isFreeing) this.#reserve.measure(dirname(this.#setup.path));
  }

  #call(message: ToWriter & { kind: "call" }): void {
    try {
      this.#post({ kind: "response", call: message.call, value: this.#carryOut(message.request) });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const errorKind = storageErrorKind(error);
      const isStorageError = errorKind !== "other";
      this.#post({
        kind: "callFailed",
        call: message.call,
        error: `${PROBLEMS[errorKind]} (${reason})`,
        isStorageError,
      });
    }
    this.#tidySoon();
  }

  #carryOut(request: WriterCall): unknown {
    if (!FREEING.has(request.op)) return this.#running.call(request);
    const value = this.#withRoom(() => this.#running.call(request));
    this.#hasFreed = true;
    this.#isFreeing ||= this.#problem !== null;
    this.#isShrinkDue = true;
    return value;
  }

  /** Runs work that frees space; on a full disk releases the reserve for it. */
  #withRoom<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (storageErrorKind(error) !== "full" || !this.#reserve.release()) throw error;
      this.#isFreeing = true;
      this.#emptyLog();
      return work();
    }
  }

  #emptyLog(): void {
    try {
      this.#running.checkpoint(true);
      this.#loggedBytes = 0;
    } catch {
      // Not enough room for a full checkpoint; the retried work may need less.
    }
  }

  /** Runs bounded steps, yielding to messages in between, until nothing is left. */
  #tidySoon(): void {
    if (this.#tidying || this.#closing) return;
    this.#tidying = true;
    setImmediate(() => {
      this.#tidying = false;
      if (this.#closing || (this.#problem !== null && !this.#isFreeing)) return;
      try {
        const isMore = this.#withRoom(() => this.#running.tidy());
        if (this.#isFreeing) this.#withRoom(() => this.#running.checkpoint());
        if (isMore) this.#tidySoon();
        else this.#tidied();
      } catch (error) {
        this.#isFreeing = false;
        this.#fail(error);
      }
    });
  }

  #tidied(): void {
    if (this.#isShrinkDue) this.#shrink();
    if (!this.#isFreeing) return;
    this.#isFreeing = false;
    this.#drain();
  }

  #shrink(): void {
    this.#isShrinkDue = false;
    try {
      this.#running.shrink(this.#reserve.isTight);
      this.#post({ kind: "size", bytes: this.#running.sizeBytes });
    } catch {
      // SQLite reuses the free pages.
    }
  }

  #syncSoon(): void {
    this.#syncTimer ??= setTimeout(() => {
      this.#syncTimer = undefined;
      this.#isSyncDue = true;
      this.#syncing ??= this.#syncWhileDue().finally(() => (this.#syncing = undefined));
    }, SYNC_MS);
  }

  /** Commits during a sync are covered by the next one. */
  async #syncWhileDue(): Promise<void> {
    while (this.#isSyncDue) {
      this.#isSyncDue = false;
      await this.#sync();
    }
  }

  async #sync(): Promise<void> {
    try {
      await this.#running.sync();
      this.#post({ kind: "size", bytes: this.#running.sizeBytes });
      this.#checkSpace();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#setProblem(`${PROBLEMS.io} (${reason})`);
      this.#retryLater();
    }
  }

  async #close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#syncTimer);
    clearInterval(this.#spaceTimer);
    this.#isFreeing = false;
    if (this.#waiting.length > 0) this.#drain();
    clearTimeout(this.#retry);
    clearTimeout(this.#syncTimer);
    await this.#syncing;
    await this.#sync();
    clearTimeout(this.#retry);
    this.#running.close();
    this.#post({ kind: "closed", failureReason: this.#waiting.length > 0 ? this.#failureReason : null });
    this.#end();
  }
}

function committed(
  batch: RecordBatch | FrameBatch,
  result: { readonly lost: number; readonly bodiesNotStored: number } | undefined,
  ms: number,
): FromWriter {
  if (batch.kind === "frames") return { kind: "framesCommitted", bytes: batch.bytes };
  const { lost, bodiesNotStored } = result ?? { lost: 0, bodiesNotStored: 0 };
  const { entries, bytes, memory } = batch;
  return { kind: "committed", entries, bytes, written: entries - lost, lost, bodiesNotStored, ms, memory };
}

/** A change from the empty state to all sessions. */
function fullChange(writer: TrafficWriter): StoreChange {
  return {
    sessions: writer.sessions.all(),
    removedSessions: [],
    activeSession: writer.sessions.activeNumber,
    changedSeqs: [],
    streamedSeqs: [],
    removedSeqs: [],
    prunedIds: [],
    prunedForSize: 0,
    reset: true,
  };
}

/** Renames a corrupt database, its log and its bodies, which a new database would sweep. */
function moveAside(path: string, bodiesFolder: string): string {
  const suffixOfNow = `.corrupt-${new Date().toISOString().replaceAll(/[:.]/gu, "-")}`;
  const aside = `${path}${suffixOfNow}`;
  renameSync(path, aside);
  try {
    renameSync(bodiesFolder, `${bodiesFolder}${suffixOfNow}`);
  } catch {
    // There are no bodies, or they remain and are swept: capture must continue in both cases.
  }
  for (const suffix of ["-wal", "-shm"]) {
    try {
      renameSync(`${path}${suffix}`, `${aside}${suffix}`);
    } catch {
      rmSync(`${path}${suffix}`, { force: true });
    }
  }
  return aside;
}

// Entry point of the thread; importing the class elsewhere has no side effect.
const port = parentPort;

port?.once("message", (setup: WriterSetup) => {
  const thread = new WriterThread(
    setup,
    (message: FromWriter, transfer?: ArrayBuffer[]) => port.postMessage(message, transfer),
    () => port.close(),
  );
  port.on("message", (message: ToWriter) => thread.receive(message));
  thread.start();
});
