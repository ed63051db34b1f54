import { renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { storageErrorKind } from "@headworks/files";
import { storageErrorReason } from "../database.ts";
import { DiskReserve } from "./disk-reserve.ts";
import { DatabaseTooNewError } from "../migrations.ts";
import { TrafficWriter } from "./traffic-writer.ts";
import type { ChangeLog } from "./change-log.ts";
import type { SessionTable } from "../sessions/session-table.ts";
import type { FrameBatch } from "../streams/stream-message.ts";
import type { FromWriter, RecordBatch, StoreChange, ToWriter, WriterCall, WriterSetup } from "./writer-messages.ts";

/** After a failed commit the next attempt comes so much later. */
const RETRY_MS = 1000;
/** Committed entries are brought to the disk at the latest after this time, well within the promised second. */
const SYNC_MS = 500;

/** A disk that nothing is stored on is looked at so often. */
const LOOK_MS = 10_000;
/** On a tight disk the log is moved into the file before it holds more than this part of what is set aside: both grow. */
const SHARE_IN_LOG = 1 / 8;

/** Calls that remove entries. */
const FREEING: ReadonlySet<WriterCall["op"]> = new Set([
  "clearSession",
  "deleteSession",
  "deleteEntries",
  "clearStreams",
]);

const SENTENCES = {
  full: "The disk is full: traffic goes on, but new entries cannot be stored",
  "read-only": "The data directory cannot be written: traffic goes on, but new entries cannot be stored",
  corrupt: "The traffic database is damaged",
  busy: "Another program holds the traffic database: new entries wait to be stored",
  io: "The disk reports errors: traffic goes on, but new entries cannot be stored",
  other: "The traffic database refuses entries",
} as const;

/** What the writer thread does with messages: commits batches in order, keeps them while the disk refuses, tidies in between. */
export class WriterThread {
  readonly #setup: WriterSetup;
  readonly #post: (message: FromWriter, transfer?: ArrayBuffer[]) => void;
  readonly #end: () => void;
  #writer: TrafficWriter | undefined;
  /** Batches that wait for the disk. The proxy thread bounds them: it sends no more than its backlog allows. */
  readonly #waiting: (RecordBatch | FrameBatch)[] = [];
  #problem: string | null = null;
  /** Why the last attempt to commit failed. */
  #refusal: string | null = null;
  #retry: NodeJS.Timeout | undefined;
  #syncTimer: NodeJS.Timeout | undefined;
  #syncing: Promise<void> | undefined;
  #isSyncDue = false;
  #tidying = false;
  #closing = false;
  /** Space for removing something from a full disk. */
  readonly #reserve: DiskReserve;
  readonly #looking: NodeJS.Timeout;
  /** Something is removed from a disk that was full: nothing else is stored until there is room. */
  #isFreeing = false;
  /** Something was removed since entries were last stored: a disk that is full may have room for them after all. */
  #hasFreed = false;
  /** So much may be unused now that the file can be made smaller. */
  #isShrinkDue = false;
  /** Written since the log was last moved into the file. */
  #loggedBytes = 0;

  constructor(setup: WriterSetup, post: (message: FromWriter, transfer?: ArrayBuffer[]) => void, end: () => void) {
    this.#setup = setup;
    this.#post = post;
    this.#end = end;
    this.#reserve = new DiskReserve(`${setup.path}.reserve`);
    this.#looking = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** Opens the database and says `ready` or `refused`. */
  start(): void {
    try {
      const movedAside = this.#openWithRoom();
      const writer = this.#running;
      this.#post({
        kind: "ready",
        change: everything(writer),
        nextSeq: writer.highestSeq + 1,
        nextFile: writer.nextFile,
        nextStream: writer.nextStream,
        movedAside,
      });
      this.#post({ kind: "size", bytes: writer.sizeBytes });
      this.#look();
      this.#tidySoon();
    } catch (error) {
      const tooNew = error instanceof DatabaseTooNewError;
      const isStorageError = storageErrorKind(error) !== "other";
      this.#post({ kind: "refused", error: storageErrorReason(error), tooNew, isStorageError });
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

  /** Gives the path a damaged file was moved to, or null. */
  #open(): string | null {
    const { path, bodiesFolder, limits } = this.#setup;
    const onChange = (log: ChangeLog, sessions: SessionTable): void =>
      this.#post({ kind: "change", change: log.toChange(sessions) });
    try {
      this.#writer = new TrafficWriter(path, bodiesFolder, limits, onChange);
      return null;
    } catch (error) {
      if (storageErrorKind(error) !== "corrupt") throw error;
      const aside = moveAside(path, bodiesFolder);
      this.#writer = new TrafficWriter(path, bodiesFolder, limits, onChange);
      return aside;
    }
  }

  #writePiece({ file, bytes }: ToWriter & { kind: "piece" }): void {
    const { files } = this.#running;
    if (!files.append(file, bytes)) this.#post({ kind: "fileFailed", file, refusal: files.takeRefusal() });
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
    if (errorKind === "corrupt" && this.#startAnew()) return this.#drain();
    if (errorKind === "full" && this.#hasFreed && !this.#closing) return this.#freeFirst();
    const reason = error instanceof Error ? error.message : String(error);
    this.#refusal = storageErrorReason(error);
    this.#setProblem(`${SENTENCES[errorKind]} (${reason})`);
    this.#retry ??= setTimeout(() => {
      this.#retry = undefined;
      this.#drain();
    }, RETRY_MS);
  }

  /** What was asked to be removed is removed before entries are tried again: they may have come first. */
  #freeFirst(): void {
    this.#hasFreed = false;
    this.#isFreeing = true;
    this.#tidySoon();
  }

  /** Damage found while running: the file is kept for rescue, and capture goes on in a new one. */
  #startAnew(): boolean {
    const { path, bodiesFolder, limits } = this.#setup;
    try {
      const old = this.#running;
      old.close();
      const aside = moveAside(path, bodiesFolder);
      this.#writer = new TrafficWriter(path, bodiesFolder, limits, (log, sessions) =>
        this.#post({ kind: "change", change: log.toChange(sessions) }),
      );
      const removedSessions = old.sessions.all().map((session) => session.number);
      this.#post({ kind: "change", change: { ...everything(this.#writer), removedSessions } });
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

  /**
   * What is in the log can only be moved into a file that has room to grow. On a tight disk it is moved while there is room,
   * and what is set aside is enough for the rest.
   */
  #keepLogShort(): void {
    if (!this.#reserve.isTight || this.#loggedBytes < this.#reserve.heldBytes * SHARE_IN_LOG) return;
    this.#running.moveLog();
    this.#loggedBytes = 0;
  }

  #look(): void {
    if (this.#problem === null && !this.#isFreeing) this.#reserve.look(dirname(this.#setup.path));
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
        error: `${SENTENCES[errorKind]} (${reason})`,
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

  /** Runs what frees space; on a full disk with what is set aside for that. */
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
      this.#running.moveLog(true);
      this.#loggedBytes = 0;
    } catch {
      // There is too little room for all of it; what is to be done may need less.
    }
  }

  /** One bounded step, then everybody else's turn, until nothing is left. */
  #tidySoon(): void {
    if (this.#tidying || this.#closing) return;
    this.#tidying = true;
    setImmediate(() => {
      this.#tidying = false;
      if (this.#closing || (this.#problem !== null && !this.#isFreeing)) return;
      try {
        const isMore = this.#withRoom(() => this.#running.tidy());
        if (this.#isFreeing) this.#withRoom(() => this.#running.moveLog());
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
      // What is unused will be used again.
    }
  }

  #syncSoon(): void {
    this.#syncTimer ??= setTimeout(() => {
      this.#syncTimer = undefined;
      this.#isSyncDue = true;
      this.#syncing ??= this.#syncWhileDue().finally(() => (this.#syncing = undefined));
    }, SYNC_MS);
  }

  /** What was committed while one sync went on is in the next one. */
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
      this.#look();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#setProblem(`${SENTENCES.io} (${reason})`);
      this.#retry ??= setTimeout(() => {
        this.#retry = undefined;
        this.#drain();
      }, RETRY_MS);
    }
  }

  async #close(): Promise<void> {
    this.#closing = true;
    clearTimeout(this.#retry);
    clearTimeout(this.#syncTimer);
    clearInterval(this.#looking);
    this.#isFreeing = false;
    if (this.#waiting.length > 0) this.#drain();
    clearTimeout(this.#retry);
    clearTimeout(this.#syncTimer);
    await this.#syncing;
    await this.#sync();
    clearTimeout(this.#retry);
    this.#running.close();
    this.#post({ kind: "closed", refusal: this.#waiting.length > 0 ? this.#refusal : null });
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

/** All sessions, as a change from nothing. */
function everything(writer: TrafficWriter): StoreChange {
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

/** Keeps a damaged database under another name, with its log and its bodies: a new one would sweep them away. */
function moveAside(path: string, bodiesFolder: string): string {
  const suffixOfNow = `.corrupt-${new Date().toISOString().replaceAll(/[:.]/gu, "-")}`;
  const aside = `${path}${suffixOfNow}`;
  renameSync(path, aside);
  try {
    renameSync(bodiesFolder, `${bodiesFolder}${suffixOfNow}`);
  } catch {
    // There are no bodies yet, or they stay and are swept: capture must go on either way.
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
