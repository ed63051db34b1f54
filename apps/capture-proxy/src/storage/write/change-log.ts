import type { SessionTable } from "../sessions/session-table.ts";
import type { SessionRecord, StoreChange } from "./writer-messages.ts";

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
    if (this.activeSession !== undefined) table.setActive(this.activeSession);
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
