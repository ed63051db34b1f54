import type { StoreLimits } from "../capture-store.ts";
import type { ChangeLog, SessionTable } from "../sessions/session-table.ts";
import type { EntryRows } from "./entry-record.ts";
import type { Database, Statement } from "../database.ts";
import type { StreamRows } from "../streams/stream-rows.ts";

/** Entries removed per transaction: takes a few milliseconds, so batches are hardly delayed. */
const STEP_ENTRIES = 500;
/** Entries checked for size per transaction. */
const SIZES_PER_STEP = 2000;
const MIB = 1_048_576;

/** Number of entries above `maxRequests`. */
export function beyondLimit(entries: number, { maxRequests }: StoreLimits): number {
  return maxRequests === 0 ? 0 : Math.max(0, entries - maxRequests);
}

/** Size limit for the bodies of all sessions. */
export function maxBytes({ maxTotalSizeMb }: StoreLimits): number {
  return maxTotalSizeMb === null ? Number.POSITIVE_INFINITY : maxTotalSizeMb * MIB;
}

/**
 * Enforces the limits and removes cleared or deleted entries, oldest first, a bounded number per transaction. Limits
 * never remove running entries, whose final state is still to be stored. Entries larger than a lowered limit are
 * removed before all others.
 */
export class Retention {
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
      this.#streams.isTidyNeeded ||
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
    else if (this.#streams.isTidyNeeded) this.#streams.tidy();
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

  /**
   * Removes entries that exceed the limit alone, so that older ones are not removed for them. Returns false if some are
   * still to be checked.
   */
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
