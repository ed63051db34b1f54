import type { SessionTable } from "../sessions/session-table.ts";
import type { SessionRecord, StoreChange } from "./writer-messages.ts";

/** What one transaction changes. It is applied to memory and told to others only when the transaction is committed. */
export class ChangeLog {
  readonly changedSeqs: number[] = [];
  /** Entries whose streams went on; their rows are as they were. */
  readonly streamedSeqs: number[] = [];
  readonly removedSeqs: number[] = [];
  readonly prunedIds: string[] = [];
  /** So many of them because the bodies of all sessions are too large. */
  prunedForSize = 0;
  /** Files of bodies whose rows are gone. */
  readonly removedFiles: number[] = [];
  readonly removedSessions: SessionRecord[] = [];
  bodiesNotStored = 0;
  entriesLost = 0;
  highestSeq = 0;
  reset = false;
  activeSession: number | undefined;
  readonly #sessions = new Map<number, SessionRecord>();

  /** The session as this transaction sees it. */
  session(table: SessionTable, number: number): SessionRecord | undefined {
    return this.#sessions.get(number) ?? table.byNumber(number);
  }

  put(session: SessionRecord): void {
    this.#sessions.set(session.number, session);
  }

  /** Counts entries and stored bytes of a session up or down. */
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

  /** Moves the changes into memory; the transaction was committed. */
  apply(table: SessionTable): void {
    for (const session of this.#sessions.values()) table.put(session);
    for (const session of this.removedSessions) table.remove(session);
    if (this.activeSession !== undefined) table.setActive(this.activeSession);
  }

  /** For those outside the writer. Call after `apply`. */
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

  /** Nothing that others keep copies of was changed. */
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
