import { randomUUID } from "node:crypto";
import { closeSync, fsync, openSync, statSync } from "node:fs";
import { promisify } from "node:util";
import { storageErrorKind } from "@headworks/files";
import { BodyFiles } from "../stored-bodies.ts";
import { ChangeLog, SessionTable } from "../sessions/session-table.ts";
import { entriesOfBatch, EntryRows } from "./entry-record.ts";
import type { StoreLimits } from "../capture-store.ts";
import { checkpoint, openDatabase, shrink, TRAFFIC_MIGRATIONS, type Database } from "../database.ts";
import { beyondLimit, Retention } from "./retention.ts";
import { StreamRows } from "../streams/stream-rows.ts";
import type { FrameBatch } from "../streams/stream-message.ts";
import type { RecordBatch, WriterCall } from "./writer-messages.ts";

/** Log pages (16 KiB each) before SQLite checkpoints: fewer, larger checkpoints. */
const AUTO_CHECKPOINT_PAGES = 4000;
const INTERRUPTED = JSON.stringify({
  stage: "receive",
  side: "internal",
  code: "SHUTDOWN",
  message: "Interrupted by a restart",
});

/** Called after each commit. */
export type OnChange = (log: ChangeLog, sessions: SessionTable) => void;

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
      this.#streams.settleInterrupted();
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

  /**
   * Makes all commits so far durable without blocking further ones. A checkpoint syncs the log before it copies pages,
   * so syncing the log suffices.
   */
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
    this.#rows.raiseHighest(log.highestSeq);
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
        this.sessions.setActive(session.number);
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
    this.#streams.forgetRenamed(session.number);
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
    this.#streams.forgetRenamed(session.number);
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
    this.#streams.refuseUpTo(session.number, upToStream);
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
