import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { OutboxEvent } from "./state-store.ts";
import type { StoreResponses } from "./store-messages.ts";

/** Maximum number of rows. */
const MAX_EVENTS = 10_000;
/** An envelope has at most 16 KiB, so a page fits into one message. */
const PAGE_EVENTS = 500;

/** Critical events with their pending targets. */
export class OutboxTable {
  readonly #add: StatementSync;
  readonly #addTarget: StatementSync;
  readonly #removeTarget: StatementSync;
  readonly #acknowledge: StatementSync;
  readonly #page: StatementSync;
  readonly #targets: StatementSync;
  readonly #count: StatementSync;
  readonly #dropSurplus: StatementSync;
  readonly #dropOld: StatementSync;

  constructor(database: DatabaseSync) {
    this.#add = database.prepare(
      "INSERT INTO event (id, kind, created_ms, envelope, acked_ms) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING seq",
    );
    this.#addTarget = database.prepare(
      "INSERT INTO event_target (event_seq, target) VALUES (?, ?) ON CONFLICT DO NOTHING",
    );
    this.#removeTarget = database.prepare(
      "DELETE FROM event_target WHERE event_seq = (SELECT seq FROM event WHERE id = ?) AND target = ?",
    );
    this.#acknowledge = database.prepare(
      "UPDATE event SET acked_ms = ? WHERE id = ? AND acked_ms IS NULL AND NOT EXISTS (SELECT 1 FROM event_target WHERE event_seq = event.seq)",
    );
    this.#page = database.prepare(
      "SELECT seq, id, kind, created_ms, envelope FROM event WHERE acked_ms IS NULL AND seq > ? ORDER BY seq LIMIT ?",
    );
    this.#targets = database.prepare("SELECT target FROM event_target WHERE event_seq = ? ORDER BY target");
    this.#count = database.prepare("SELECT COUNT(*) AS events FROM event");
    // Acknowledged ones first, oldest first; then the oldest others.
    this.#dropSurplus = database.prepare(
      "DELETE FROM event WHERE seq IN (SELECT seq FROM event ORDER BY acked_ms IS NULL, seq LIMIT ?)",
    );
    this.#dropOld = database.prepare(
      "DELETE FROM event WHERE seq IN (SELECT seq FROM event WHERE acked_ms < ? LIMIT ?)",
    );
  }

  append(event: OutboxEvent, nowMs: number): void {
    const ackedMs = event.targets.length === 0 ? Math.floor(nowMs) : null;
    const row = this.#add.get(event.id, event.kind, Math.floor(event.createdMs), event.envelope, ackedMs);
    const seq = row?.["seq"];
    if (typeof seq !== "number") return;
    for (const target of event.targets) this.#addTarget.run(seq, target);
    const surplus = Number(this.#count.get()?.["events"]) - MAX_EVENTS;
    if (surplus > 0) this.#dropSurplus.run(surplus);
  }

  acknowledge(id: string, target: string, nowMs: number): void {
    this.#removeTarget.run(id, target);
    this.#acknowledge.run(Math.floor(nowMs), id);
  }

  /** A page of unacknowledged events in insertion order. */
  pending(afterSeq: number): StoreResponses["pendingEvents"] {
    const rows = this.#page.all(afterSeq, PAGE_EVENTS);
    const events = rows.map((row) => ({
      id: String(row["id"]),
      kind: String(row["kind"]),
      createdMs: Number(row["created_ms"]),
      envelope: String(row["envelope"]),
      targets: this.#targets.all(Number(row["seq"])).map((target) => String(target["target"])),
    }));
    const last = rows.at(-1);
    return { events, nextSeq: rows.length < PAGE_EVENTS ? undefined : Number(last?.["seq"]) };
  }

  /** Deletes at most `limit` events acknowledged before a time; returns their number. */
  prune(ackedBeforeMs: number, limit: number): number {
    return Number(this.#dropOld.run(Math.floor(ackedBeforeMs), limit).changes);
  }
}
