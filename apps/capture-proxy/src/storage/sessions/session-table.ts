import type { CaptureSession } from "@headworks/capture-contract";
import type { Database, SqlRow, Statement } from "../database.ts";
import type { SessionRecord, StoreChange } from "../write/writer-messages.ts";

/** Sessions in memory and in their table. Memory changes only after the commit, through {@link SessionTable.put}. */
export class SessionTable {
  readonly #database: Database;
  readonly #byNumber = new Map<number, SessionRecord>();
  readonly #byId = new Map<string, SessionRecord>();
  readonly #writeCounters: Statement;
  totalStoredBytes = 0;
  /** In memory; {@link writeActive} stores it. */
  activeNumber: number;

  constructor(database: Database) {
    this.#database = database;
    this.#writeCounters = database.prepare(
      "UPDATE session SET entry_count = ?, stored_bytes = ?, updated_ms = ? WHERE number = ?",
    );
    for (const row of database.prepare("SELECT * FROM session WHERE doomed = 0").all()) this.put(sessionOf(row));
    this.activeNumber = Number(
      database.prepare("SELECT value FROM fact WHERE name = 'active_session'").get()?.["value"] ?? 0,
    );
  }

  get active(): SessionRecord | undefined {
    return this.#byNumber.get(this.activeNumber);
  }

  all(): SessionRecord[] {
    return [...this.#byNumber.values()];
  }

  byId(id: string): SessionRecord | undefined {
    return this.#byId.get(id);
  }

  byNumber(number: number): SessionRecord | undefined {
    return this.#byNumber.get(number);
  }

  /** In memory only. */
  put(session: SessionRecord): void {
    this.totalStoredBytes += session.storedBytes - (this.#byNumber.get(session.number)?.storedBytes ?? 0);
    this.#byNumber.set(session.number, session);
    this.#byId.set(session.id, session);
  }

  /** In memory only. */
  remove(session: SessionRecord): void {
    this.totalStoredBytes -= this.#byNumber.get(session.number)?.storedBytes ?? 0;
    this.#byNumber.delete(session.number);
    this.#byId.delete(session.id);
  }

  /** In the table only; `put` the result after the commit. */
  insert(id: string, name: string | null, notes: string | null, nowMs: number): SessionRecord {
    const { lastInsertRowid } = this.#database
      .prepare("INSERT INTO session (id, name, notes, created_ms, updated_ms) VALUES (?, ?, ?, ?, ?)")
      .run(id, name, notes, nowMs, nowMs);
    return {
      number: lastInsertRowid,
      id,
      name,
      notes,
      tags: [],
      createdMs: nowMs,
      updatedMs: nowMs,
      entryCount: 0,
      storedBytes: 0,
      floorSeq: 0,
    };
  }

  /** In the table only. */
  write(session: SessionRecord): void {
    this.#database
      .prepare(
        "UPDATE session SET name = ?, notes = ?, tags = ?, updated_ms = ?, floor_seq = ?, entry_count = ?, stored_bytes = ? WHERE number = ?",
      )
      .run(
        session.name,
        session.notes,
        JSON.stringify(session.tags),
        session.updatedMs,
        session.floorSeq,
        session.entryCount,
        session.storedBytes,
        session.number,
      );
  }

  /** In the table only. */
  writeCounters(session: SessionRecord): void {
    this.#writeCounters.run(session.entryCount, session.storedBytes, session.updatedMs, session.number);
  }

  /** In the table only; set `activeNumber` after the commit. */
  writeActive(number: number): void {
    this.#database.prepare("INSERT OR REPLACE INTO fact (name, value) VALUES ('active_session', ?)").run(number);
  }
}

function sessionOf(row: SqlRow): SessionRecord {
  return {
    number: Number(row["number"]),
    id: String(row["id"]),
    name: row["name"] === null ? null : String(row["name"]),
    notes: row["notes"] === null ? null : String(row["notes"]),
    tags: JSON.parse(String(row["tags"])) as string[],
    createdMs: Number(row["created_ms"]),
    updatedMs: Number(row["updated_ms"]),
    entryCount: Number(row["entry_count"]),
    storedBytes: Number(row["stored_bytes"]),
    floorSeq: Number(row["floor_seq"]),
  };
}

export function shownSession(session: SessionRecord, isCurrent: boolean): CaptureSession {
  return {
    id: session.id,
    name: session.name,
    created_at: new Date(session.createdMs).toISOString(),
    updated_at: new Date(session.updatedMs).toISOString(),
    request_count: session.entryCount,
    total_size_bytes: session.storedBytes,
    is_current: isCurrent,
    notes: session.notes,
    tags: [...session.tags],
  };
}

/** The changes of one transaction, applied to memory and published only after its commit. */
export class ChangeLog {
  readonly changedSeqs: number[] = [];
  /** Entries with new stream data; their rows are unchanged. */
  readonly streamedSeqs: number[] = [];
  readonly removedSeqs: number[] = [];
  readonly prunedIds: string[] = [];
  /** How many of `prunedIds` were removed for the size limit. */
  prunedForSize = 0;
  /** Body files without rows. */
  readonly removedFiles: number[] = [];
  readonly removedSessions: SessionRecord[] = [];
  bodiesNotStored = 0;
  entriesLost = 0;
  highestSeq = 0;
  reset = false;
  activeSession: number | undefined;
  readonly #sessions = new Map<number, SessionRecord>();

  /** The session including this transaction's changes. */
  session(table: SessionTable, number: number): SessionRecord | undefined {
    return this.#sessions.get(number) ?? table.byNumber(number);
  }

  put(session: SessionRecord): void {
    this.#sessions.set(session.number, session);
  }

  /** Adds to the session's counters; the amounts may be negative. */
  count(table: SessionTable, number: number, entries: number, storedBytes: number): void {
    const session = this.session(table, number);
    if (session === undefined) return;
    this.#sessions.set(number, {
      ...session,
      entryCount: session.entryCount + entries,
      storedBytes: session.storedBytes + storedBytes,
    });
  }

  get touched(): IterableIterator<SessionRecord> {
    return this.#sessions.values();
  }

  /** Call after the commit. */
  apply(table: SessionTable): void {
    for (const session of this.#sessions.values()) table.put(session);
    for (const session of this.removedSessions) table.remove(session);
    if (this.activeSession !== undefined) table.activeNumber = this.activeSession;
  }

  /** Call after `apply`. */
  toChange(table: SessionTable): StoreChange {
    return {
      sessions: [...this.#sessions.values()].filter((session) => table.byNumber(session.number) !== undefined),
      removedSessions: this.removedSessions.map((session) => session.number),
      activeSession: table.activeNumber,
      changedSeqs: this.changedSeqs,
      streamedSeqs: this.streamedSeqs,
      removedSeqs: this.removedSeqs,
      prunedIds: this.prunedIds,
      prunedForSize: this.prunedForSize,
      reset: this.reset,
    };
  }

  /** True if no cached data changed. */
  get isEmpty(): boolean {
    return (
      this.#sessions.size === 0 &&
      this.removedSessions.length === 0 &&
      this.activeSession === undefined &&
      this.changedSeqs.length === 0 &&
      this.streamedSeqs.length === 0 &&
      this.removedSeqs.length === 0 &&
      !this.reset
    );
  }
}
