import { randomUUID } from "node:crypto";
import { closeSync, fsync, openSync, statSync } from "node:fs";
import { promisify } from "node:util";
import { storageErrorKind } from "@headworks/files";
import { beyondLimit, maxBytes, type StoreLimits } from "../capture-store.ts";
import { checkpoint, type Database, openDatabase, shrink, type Statement, TRAFFIC_MIGRATIONS } from "../database.ts";
import { ChangeLog, SessionTable } from "../sessions/session-table.ts";
import { BodyFiles } from "../stored-bodies.ts";
import { StreamRows } from "../streams/stream-rows.ts";
import type { FrameBatch } from "../streams/stream-store.ts";
import { entriesOfBatch, EntryRows } from "./entry-record.ts";
import type { RecordBatch, WriterCall } from "./writer-messages.ts";

/** Entries removed per transaction: takes a few milliseconds, so batches are hardly delayed. */
const STEP_ENTRIES = 500;
/** Entries checked for size per transaction. */
const SIZES_PER_STEP = 2000;

/**
 * Enforces the limits and removes cleared or deleted entries, oldest first, a bounded number per transaction. Limits
 * never remove running entries, whose final state is still to be stored. Entries larger than a lowered limit are
 * removed before all others.
 */
class Retention {
  #limits: StoreLimits;
  readonly #database: Database;
  readonly #sessions: SessionTable;
  readonly #rows: EntryRows;
  readonly #streams: StreamRows;
  /** Sessions with rows at or below their floor. */
  readonly cleared = new Set<number>();
  /** Sessions being imported; they count towards the size limit once complete. */
  readonly importing = new Set<number>();
  /** Non-active sessions that exchanges are recorded into. */
  readonly receiving = new Set<number>();
  /** Deleted sessions that still have rows. */
  readonly #deleted = new Set<number>();
  readonly #oldestOfSession: Statement;
  readonly #oldest: Statement;
  readonly #upTo: Statement;
  readonly #sizes: Statement;
  /** True if entries larger than the limit may exist: they were stored under a higher limit. */
  #mayBeTooLarge = true;
  /** Entries up to this number have been checked and fit. */
  #fittingUpTo = 0;

  constructor(database: Database, sessions: SessionTable, rows: EntryRows, streams: StreamRows, limits: StoreLimits) {
    this.#database = database;
    this.#sessions = sessions;
    this.#rows = rows;
    this.#streams = streams;
    this.#limits = limits;
    this.#oldestOfSession = database.prepare(
      "SELECT seq FROM entry WHERE session = ? AND seq > ? AND state <> 0 ORDER BY seq LIMIT ?",
    );
    this.#oldest = database.prepare("SELECT seq FROM entry WHERE state <> 0 ORDER BY seq LIMIT ?");
    this.#upTo = database.prepare("SELECT seq FROM entry WHERE session = ? AND seq <= ? ORDER BY seq LIMIT ?");
    this.#sizes = database.prepare(
      "SELECT e.seq, e.state, e.request_body_stored + e.response_body_stored + IFNULL(length(f.request_body), 0) + " +
        "IFNULL(length(f.response_body), 0) + (SELECT IFNULL(SUM(s.stored_bytes), 0) FROM stream s WHERE s.id = e.id " +
        "AND s.is_gone = 0) AS bytes FROM entry e LEFT JOIN effect f ON f.seq = e.seq WHERE e.seq > ? ORDER BY e.seq LIMIT ?",
    );
    this.recall();
  }

  get limits(): StoreLimits {
    return this.#limits;
  }

  set limits(limits: StoreLimits) {
    const isLower = maxBytes(limits) < maxBytes(this.#limits);
    this.#limits = limits;
    if (!isLower) return;
    this.#mayBeTooLarge = true;
    this.#fittingUpTo = 0;
  }

  /** Reloads pending removals from the tables, at start and after a failed transaction. */
  recall(): void {
    this.#deleted.clear();
    this.cleared.clear();
    for (const row of this.#database.prepare("SELECT number FROM session WHERE doomed = 1").all()) {
      this.scheduleDeletion(Number(row["number"]));
    }
    for (const session of this.#sessions.all()) if (session.floorSeq > 0) this.cleared.add(session.number);
  }

  /** Schedules the rows of a deleted session for removal. */
  scheduleDeletion(number: number): void {
    this.#deleted.add(number);
    this.cleared.delete(number);
    this.importing.delete(number);
    this.receiving.delete(number);
  }

  get isNeeded(): boolean {
    return (
      this.#deleted.size > 0 ||
      this.cleared.size > 0 ||
      this.#streams.isUntidy ||
      this.#excessEntries() > 0 ||
      this.#excessBytes() > 0
    );
  }

  /** One bounded step of enforcing the limits, within a batch's transaction. */
  enforce(log: ChangeLog): void {
    this.#pruneEntries(log);
    this.#pruneBytes(log);
  }

  /** One bounded step of pending removals. */
  step(log: ChangeLog): void {
    const [deletedSession] = this.#deleted;
    const [clearedSession] = this.cleared;
    if (deletedSession !== undefined) this.#removeDeleted(deletedSession, log);
    else if (clearedSession !== undefined) this.#removeCleared(clearedSession, log);
    else if (this.#streams.isUntidy) this.#streams.tidy();
    else this.enforce(log);
  }

  /** Sum over all sessions that are recorded into. */
  #excessEntries(log?: ChangeLog): number {
    let excess = this.#excessOf(this.#sessions.activeNumber, log);
    for (const number of this.receiving) {
      if (number !== this.#sessions.activeNumber) excess += this.#excessOf(number, log);
    }
    return excess - this.#unprunable;
  }

  #excessOf(number: number, log: ChangeLog | undefined): number {
    const session = log?.session(this.#sessions, number) ?? this.#sessions.byNumber(number);
    return session === undefined ? 0 : beyondLimit(session.entryCount, this.limits);
  }

  /** Entries over the limit that were running at the last attempt; avoids retrying at once. */
  #unprunable = 0;

  #pruneEntries(log: ChangeLog): void {
    this.#unprunable = 0;
    for (const number of new Set([this.#sessions.activeNumber, ...this.receiving])) {
      const excess = this.#excessOf(number, log);
      const floorSeq = this.#sessions.byNumber(number)?.floorSeq ?? 0;
      if (excess <= 0) continue;
      const wanted = Math.min(excess, STEP_ENTRIES);
      const rows = this.#oldestOfSession.all(number, floorSeq, wanted);
      for (const row of rows) this.#prune(Number(row["seq"]), log);
      if (rows.length < wanted) this.#unprunable += excess - rows.length;
    }
  }

  #excessBytes(log?: ChangeLog): number {
    const maxStoredBytes = maxBytes(this.#limits);
    if (maxStoredBytes === Number.POSITIVE_INFINITY || this.cleared.size > 0 || this.#deleted.size > 0) return 0;
    let storedBytes = this.#sessions.totalStoredBytes;
    for (const session of log?.touched ?? []) {
      storedBytes += session.storedBytes - (this.#sessions.byNumber(session.number)?.storedBytes ?? 0);
    }
    for (const number of this.importing) {
      storedBytes -= (log?.session(this.#sessions, number) ?? this.#sessions.byNumber(number))?.storedBytes ?? 0;
    }
    return storedBytes - maxStoredBytes - this.#unprunableBytes;
  }

  #unprunableBytes = 0;

  #pruneBytes(log: ChangeLog): void {
    this.#unprunableBytes = 0;
    if (this.#excessBytes(log) <= 0 || !this.#pruneTooLarge(log)) return;
    const rows = this.#oldest.all(STEP_ENTRIES);
    for (const row of rows) {
      if (this.#excessBytes(log) <= 0) return;
      this.#prune(Number(row["seq"]), log);
      log.prunedForSize += 1;
    }
    const excess = this.#excessBytes(log);
    if (rows.length > 0 || excess <= 0) return;
    // Only running entries are left: shed the oldest frames of their streams.
    if (this.#streams.shed(excess, log) === 0) this.#unprunableBytes = excess;
  }

  /** Removes entries that exceed the limit alone. Returns false if some are still to be checked. */
  #pruneTooLarge(log: ChangeLog): boolean {
    if (!this.#mayBeTooLarge) return true;
    const rows = this.#sizes.all(this.#fittingUpTo, SIZES_PER_STEP);
    const maxStoredBytes = maxBytes(this.#limits);
    const tooLarge = rows.filter((row) => row["state"] !== 0 && Number(row["bytes"]) > maxStoredBytes);
    for (const row of tooLarge) this.#prune(Number(row["seq"]), log);
    log.prunedForSize += tooLarge.length;
    const isLast = rows.length < SIZES_PER_STEP;
    // Advance only if nothing was removed: after a rollback the entries must be found again.
    if (tooLarge.length === 0) {
      this.#fittingUpTo = Number(rows.at(-1)?.["seq"] ?? this.#fittingUpTo);
      this.#mayBeTooLarge = !isLast;
    }
    return isLast;
  }

  #prune(seq: number, log: ChangeLog): void {
    const id = this.#rows.remove(seq, log);
    if (id !== undefined) log.prunedIds.push(id);
  }

  #removeDeleted(number: number, log: ChangeLog): void {
    const rows = this.#upTo.all(number, Number.MAX_SAFE_INTEGER, STEP_ENTRIES);
    for (const row of rows) this.#rows.remove(Number(row["seq"]), log, false);
    if (rows.length === STEP_ENTRIES) return;
    this.#database.prepare("DELETE FROM session WHERE number = ?").run(number);
    this.#deleted.delete(number);
  }

  #removeCleared(number: number, log: ChangeLog): void {
    const floor = this.#sessions.byNumber(number)?.floorSeq ?? 0;
    const rows = this.#upTo.all(number, floor, STEP_ENTRIES);
    for (const row of rows) this.#rows.remove(Number(row["seq"]), log, false);
    if (rows.length < STEP_ENTRIES) this.cleared.delete(number);
  }
}

/** Log pages (16 KiB each) before SQLite checkpoints: fewer, larger checkpoints. */
const AUTO_CHECKPOINT_PAGES = 4000;

const INTERRUPTED = JSON.stringify({
  stage: "receive",
  side: "internal",
  code: "SHUTDOWN",
  message: "Interrupted by a restart",
});

/** Called after each commit. */
type OnChange = (log: ChangeLog, sessions: SessionTable) => void;

/** Writes the traffic database. Every method runs one or more transactions. */
export class TrafficWriter {
  readonly sessions: SessionTable;
  readonly files: BodyFiles;
  readonly nextFile: number;
  readonly #path: string;
  readonly #database: Database;
  readonly #rows: EntryRows;
  readonly #streams: StreamRows;
  readonly #retention: Retention;
  readonly #onChange: OnChange;

  /** Opens or creates the database. Throws as {@link openDatabase}. */
  constructor(path: string, bodiesFolder: string, limits: StoreLimits, onChange: OnChange) {
    this.#path = path;
    this.#onChange = onChange;
    this.#database = openDatabase(path, {
      migrations: TRAFFIC_MIGRATIONS,
      synchronous: "NORMAL",
      autoCheckpointPages: AUTO_CHECKPOINT_PAGES,
      cacheBytes: 16_777_216,
    });
    try {
      this.files = new BodyFiles(bodiesFolder);
      const referenced = this.#database.prepare("SELECT file FROM body WHERE file IS NOT NULL").all();
      this.nextFile = this.files.sweep(new Set(referenced.map((row) => Number(row["file"]))));
      this.sessions = new SessionTable(this.#database);
      this.#ensureActiveSession();
      this.#streams = new StreamRows(this.#database, this.sessions);
      this.#rows = new EntryRows(this.#database, this.sessions, this.files, this.#streams, this.#lastSeq());
      this.#retention = new Retention(this.#database, this.sessions, this.#rows, this.#streams, limits);
      this.#failInterrupted();
      this.#streams.closeInterrupted();
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /** Newest entry number ever stored. */
  get highestSeq(): number {
    return this.#rows.highestSeq;
  }

  get nextStream(): number {
    return this.#streams.highestNumber + 1;
  }

  /** Commits a batch of frames. After an error nothing is stored and the batch may be retried. */
  writeFrames(batch: FrameBatch): void {
    try {
      this.#commit((log) => {
        this.#streams.store(batch, log);
        this.#retention.enforce(log);
      });
    } catch (error) {
      // Errors other than those of the disk are permanent: drop the batch instead of blocking the queue.
      if (storageErrorKind(error) !== "other") throw error;
    }
  }

  /** Commits a batch. After an error nothing is stored and the batch may be retried. */
  write(batch: RecordBatch): { readonly lost: number; readonly bodiesNotStored: number } {
    try {
      return this.#writeBatch(batch, false);
    } catch (error) {
      if (storageErrorKind(error) !== "other") throw error;
      // Skip the invalid entry instead of blocking the queue.
      return this.#writeBatch(batch, true);
    }
  }

  #writeBatch(batch: RecordBatch, tolerant: boolean): { readonly lost: number; readonly bodiesNotStored: number } {
    const log = this.#commit((change) => {
      for (const entry of entriesOfBatch(batch)) {
        if (!tolerant) {
          this.#rows.store(entry, change);
          continue;
        }
        this.#database.exec("SAVEPOINT one");
        try {
          this.#rows.store(entry, change);
        } catch (error) {
          if (storageErrorKind(error) !== "other") throw error;
          this.#database.exec("ROLLBACK TO one");
          change.entriesLost += 1;
        }
        this.#database.exec("RELEASE one");
      }
      this.#retention.enforce(change);
    });
    return { lost: log.entriesLost, bodiesNotStored: log.bodiesNotStored };
  }

  setLimits(limits: StoreLimits): void {
    this.#retention.limits = limits;
  }

  /** Removes a bounded number of entries for limits, clearing or deletion. Returns false if nothing is left to do. */
  tidy(): boolean {
    if (!this.#retention.isNeeded) return false;
    try {
      this.#commit((log) => this.#retention.step(log));
    } catch (error) {
      this.#retention.recall();
      this.#streams.recall();
      throw error;
    }
    return this.#retention.isNeeded;
  }

  /** Runs a change whose result is durable on return. */
  call(request: WriterCall): unknown {
    return this.#durably(() => {
      switch (request.op) {
        case "createSession":
          return this.#createSession(request);
        case "updateSession":
          return this.#updateSession(request);
        case "keepSession":
          return this.#keepSession(request.id);
        case "tidy":
          return this.tidy();
        case "appendBody":
          return this.#appendBody(request);
        case "deleteSession":
          return this.#deleteSession(request.id);
        case "receive":
          if (request.isReceiving) this.#retention.receiving.add(request.session);
          else this.#retention.receiving.delete(request.session);
          return undefined;
        case "switchSession":
          return this.#switchSession(request.id, request.nowMs);
        case "clearSession":
          return this.#clearSession(request);
        case "setNote":
          return this.#setNote(request.id, request.note);
        case "deleteEntries":
          return this.#deleteEntries(request.ids);
        case "clearStreams":
          return void this.#commit((log) => this.#streams.clearKind(request.kind, log));
      }
    });
  }

  /** Makes all commits durable: a checkpoint syncs the log first, so syncing the log suffices. */
  async sync(): Promise<void> {
    await this.files.sync();
    const fd = openSync(`${this.#path}-wal`, "r+");
    try {
      await promisify(fsync)(fd);
    } finally {
      closeSync(fd);
    }
  }

  /** Checkpoints the log. Throws if the file cannot grow. */
  checkpoint(empty = false): void {
    checkpoint(this.#database, empty);
  }

  /** Returns unused space to the disk if it is nearly all of the file. */
  shrink(isTight: boolean): void {
    shrink(this.#database, isTight);
  }

  /** Size of database, log and body files. */
  get sizeBytes(): number {
    return fileSize(this.#path) + fileSize(`${this.#path}-wal`) + this.files.totalBytes;
  }

  close(): void {
    this.files.close();
    this.#database.close();
  }

  /** Runs work in a transaction; after its commit applies and publishes the changes. */
  #commit(work: (log: ChangeLog) => void): ChangeLog {
    const log = new ChangeLog();
    // Read once: published times must equal the stored ones.
    const nowMs = Date.now();
    const counted = this.#database.transaction(() => {
      work(log);
      const sessions = [...log.touched].map((session) => ({
        ...session,
        updatedMs: Math.max(nowMs, session.updatedMs),
      }));
      for (const session of sessions) this.sessions.writeCounters(session);
      return sessions;
    });
    for (const session of counted) log.put(session);
    log.apply(this.sessions);
    this.#rows.highestSeq = Math.max(this.#rows.highestSeq, log.highestSeq);
    for (const file of log.removedFiles) this.files.discard(file);
    if (!log.isEmpty) this.#onChange(log, this.sessions);
    return log;
  }

  #durably<T>(work: () => T): T {
    this.#database.exec("PRAGMA synchronous = FULL");
    try {
      return work();
    } finally {
      this.#database.exec("PRAGMA synchronous = NORMAL");
    }
  }

  #lastSeq(): number {
    const row = this.#database
      .prepare(
        "SELECT MAX((SELECT COALESCE(MAX(seq), 0) FROM entry), (SELECT COALESCE(MAX(floor_seq), 0) FROM session)) AS seq",
      )
      .get();
    return Number(row?.["seq"] ?? 0);
  }

  #ensureActiveSession(): void {
    if (this.sessions.active !== undefined) return;
    this.#durably(() =>
      this.#database.transaction(() => {
        const session =
          this.sessions.all()[0] ?? this.sessions.insert(randomUUID(), "Default Session", null, Date.now());
        this.sessions.writeActive(session.number);
        this.sessions.put(session);
        this.sessions.activeNumber = session.number;
      }),
    );
  }

  /** Marks entries as failed that were running when the process ended. */
  #failInterrupted(): void {
    const pending = this.#database.prepare("SELECT seq FROM entry WHERE state = 0").all();
    if (pending.length === 0) return;
    const fail = this.#database.prepare("UPDATE entry SET state = 2, failure_code = 'SHUTDOWN' WHERE seq = ?");
    const explain = this.#database.prepare("UPDATE head SET failure = ? WHERE seq = ?");
    this.#database.transaction(() => {
      for (const row of pending) {
        fail.run(row["seq"] ?? null);
        explain.run(INTERRUPTED, row["seq"] ?? null);
      }
    });
  }

  #createSession(request: WriterCall & { op: "createSession" }): unknown {
    const log = this.#commit((change) => {
      const session = this.sessions.insert(request.id, request.name, request.notes, request.nowMs);
      if (request.isProvisional) {
        this.#markDeleted(session.number, 1);
        this.#retention.importing.add(session.number);
      }
      change.put(session);
    });
    return log.toChange(this.sessions).sessions[0];
  }

  #keepSession(id: string): boolean {
    const session = this.sessions.byId(id);
    if (session === undefined) return false;
    this.#commit(() => this.#markDeleted(session.number, 0));
    this.#retention.importing.delete(session.number);
    this.#streams.newIds.delete(session.number);
    return true;
  }

  #markDeleted(number: number, isDeleted: 0 | 1): void {
    this.#database.prepare("UPDATE session SET doomed = ? WHERE number = ?").run(isDeleted, number);
  }

  #appendBody({ file, bytes, isLast }: WriterCall & { op: "appendBody" }): void {
    if (bytes.length > 0 && !this.files.append(file, bytes)) throw new Error("A body file cannot be written");
    // Detach at once: the garbage collector would let many of them accumulate.
    bytes.buffer.transfer(0);
    if (isLast) this.files.finish(file);
  }

  #updateSession(request: WriterCall & { op: "updateSession" }): unknown {
    const session = this.sessions.byId(request.id);
    if (session === undefined) return undefined;
    const next = {
      ...session,
      name: request.name ?? session.name,
      notes: request.notes === undefined ? session.notes : request.notes,
      tags: request.tags ?? session.tags,
      updatedMs: request.nowMs,
    };
    const log = this.#commit((change) => {
      this.sessions.write(next);
      change.put(next);
    });
    return log.toChange(this.sessions).sessions[0];
  }

  #deleteSession(id: string): "deleted" | "unknown" | "active" {
    const session = this.sessions.byId(id);
    if (session === undefined) return "unknown";
    if (session.number === this.sessions.activeNumber) return "active";
    this.#commit((log) => {
      this.#markDeleted(session.number, 1);
      log.removedSessions.push(session);
      log.reset = true;
    });
    this.#retention.scheduleDeletion(session.number);
    this.#streams.newIds.delete(session.number);
    return "deleted";
  }

  #switchSession(id: string, nowMs: number): number | undefined {
    const session = this.sessions.byId(id);
    if (session === undefined) return undefined;
    this.#commit((log) => {
      this.sessions.writeActive(session.number);
      log.put({ ...session, updatedMs: nowMs });
      log.activeSession = session.number;
    });
    return beyondLimit(session.entryCount, this.#retention.limits);
  }

  #clearSession({ id, nowMs, upToSeq, upToStream }: WriterCall & { op: "clearSession" }): boolean {
    const session = this.sessions.byId(id);
    if (session === undefined) return false;
    const floorSeq = Math.max(this.highestSeq, upToSeq);
    this.#commit((log) => {
      const cleared = { ...session, floorSeq, entryCount: 0, storedBytes: 0, updatedMs: nowMs };
      this.sessions.write(cleared);
      this.#streams.clearSession(session.number);
      log.put(cleared);
      log.reset = true;
    });
    this.#streams.clearedUpTo.set(session.number, upToStream);
    this.#retention.cleared.add(session.number);
    return true;
  }

  #setNote(id: string, note: string | null): boolean {
    let found = false;
    this.#commit((log) => {
      const row = this.#database.prepare("UPDATE entry SET note = ? WHERE id = ? RETURNING seq, session").get(note, id);
      if (row === undefined) return;
      found = true;
      log.changedSeqs.push(Number(row["seq"]));
    });
    return found;
  }

  #deleteEntries(ids: readonly string[]): string[] {
    const find = this.#database.prepare("SELECT seq, session FROM entry WHERE id = ?");
    const removed: string[] = [];
    this.#commit((log) => {
      for (const id of ids) {
        const row = find.get(id);
        if (row === undefined) continue;
        const seq = Number(row["seq"]);
        const session = log.session(this.sessions, Number(row["session"]));
        if (session === undefined || seq <= session.floorSeq) continue;
        if (this.#rows.remove(seq, log) !== undefined) removed.push(id);
      }
    });
    return removed;
  }
}

function fileSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
