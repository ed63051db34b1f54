import type { ChangeLog, SessionTable } from "../sessions/session-table.ts";
import type { Database, Statement } from "../database.ts";
import { STATE_CLOSED } from "./stream-store.ts";
import type { FrameBatch, FrameBatchText, FrameTuple, StreamOpening, StreamProgress } from "./stream-store.ts";

/** Frames removed per transaction: takes a few milliseconds, so batches are hardly delayed. */
const STEP_FRAMES = 2000;
const STEP_BYTES = 33_554_432;

/** An existing stream with the changes of a batch. */
interface UpdatedStream {
  readonly session: number;
  readonly kind: number;
  frames: number;
  bytes: number;
}

/** Writes and removes stream and frame rows, always within the caller's transaction. */
export class StreamRows {
  readonly #database: Database;
  readonly #sessions: SessionTable;
  readonly #insertStream: Statement;
  readonly #updateStream: Statement;
  readonly #countStored: Statement;
  readonly #insertFrame: Statement;
  readonly #goneById: Statement;
  readonly #untidy: Statement;
  readonly #oldFrames: Statement;
  readonly #deleteFrames: Statement;
  readonly #tidied: Statement;
  readonly #deleteStream: Statement;
  readonly #ownEntry: Statement;
  /** New ids of imported entries whose ids were taken, by session; deleted at the end of the import. */
  readonly newIds = new Map<number, Map<string, string>>();
  /** By session: streams up to this number were opened before the session was cleared, and are dropped. */
  readonly clearedUpTo = new Map<number, number>();
  #hasStreams: boolean;
  isUntidy: boolean;

  constructor(database: Database, sessions: SessionTable) {
    this.#database = database;
    this.#sessions = sessions;
    this.#insertStream = database.prepare(
      "INSERT OR IGNORE INTO stream (number, id, session, kind, state, method, url, host, path, client_addr, " +
        "request_fields, attributes, created_ms, last_ms, frames_sent, frames_received, bytes_sent, bytes_received, " +
        "frames_not_stored) VALUES (?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, '{}', ?, ?, 0, 0, 0, 0, 0)",
    );
    this.#updateStream = database.prepare(
      "UPDATE stream SET state = ?, server_addr = ?, response_fields = COALESCE(?, response_fields), subprotocol = ?, " +
        "close_code = ?, close_reason = ?, attributes = ?, closed_ms = ?, last_ms = ?, frames_sent = ?, " +
        "frames_received = ?, bytes_sent = ?, bytes_received = ?, frames_not_stored = ?, last_ordinal = ? " +
        "WHERE number = ? AND is_gone = 0 RETURNING session, kind, (SELECT e.seq FROM entry e WHERE e.id = stream.id) AS seq",
    );
    this.#countStored = database.prepare(
      "UPDATE stream SET frames_stored = frames_stored + ?, stored_bytes = stored_bytes + ? WHERE number = ?",
    );
    this.#insertFrame = database.prepare(
      "INSERT OR IGNORE INTO stream_frame (stream, ordinal, kind, direction, type, opcode, flags, effect, at_ms, size, " +
        "wire_size, mask, payload, original, attributes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
    this.#goneById = database.prepare(
      "UPDATE stream SET is_gone = 1, is_untidy = 1 WHERE id = ? AND is_gone = 0 RETURNING session, stored_bytes",
    );
    this.#untidy = database.prepare("SELECT number, is_gone, floor_ordinal FROM stream WHERE is_untidy = 1 LIMIT 1");
    this.#oldFrames = database.prepare(
      "SELECT ordinal, length(payload) + IFNULL(length(original), 0) AS bytes FROM stream_frame " +
        "WHERE stream = ? AND ordinal <= ? ORDER BY ordinal LIMIT ?",
    );
    this.#deleteFrames = database.prepare("DELETE FROM stream_frame WHERE stream = ? AND ordinal <= ?");
    this.#tidied = database.prepare("UPDATE stream SET is_untidy = 0 WHERE number = ?");
    this.#deleteStream = database.prepare("DELETE FROM stream WHERE number = ?");
    this.#ownEntry = database.prepare("SELECT 1 FROM entry WHERE id = ? AND session = ?");
    this.#hasStreams = database.prepare("SELECT 1 FROM stream LIMIT 1").get() !== undefined;
    this.isUntidy = this.#untidy.get() !== undefined;
  }

  get highestNumber(): number {
    return Number(this.#database.prepare("SELECT MAX(number) AS number FROM stream").get()?.["number"] ?? 0);
  }

  /** Closes streams that were open when the process ended and removes those without an entry. */
  closeInterrupted(): void {
    if (!this.#hasStreams) return;
    this.#database.transaction(() => {
      this.#database.exec(
        `UPDATE stream SET state = ${STATE_CLOSED}, closed_ms = IFNULL(closed_ms, last_ms) WHERE state <> ${STATE_CLOSED}`,
      );
      this.#database.exec(
        "UPDATE stream SET is_gone = 1, is_untidy = 1 WHERE is_gone = 0 AND id NOT IN (SELECT id FROM entry)",
      );
    });
    this.isUntidy = this.#untidy.get() !== undefined;
  }

  /** Frames of removed streams are dropped. */
  store(batch: FrameBatch, log: ChangeLog): void {
    const text = JSON.parse(batch.text) as FrameBatchText;
    this.#hasStreams = true;
    for (const opening of text.openings) this.#open(opening, batch.isImported === true);
    const updated = new Map<number, UpdatedStream>();
    for (const progress of text.progress) this.#update(progress, updated, log);
    let offset = 0;
    for (const frame of text.frames) {
      const [stream, , , , , , , , , , , payloadBytes, originalBytes] = frame;
      const bytes = payloadBytes + Math.max(0, originalBytes);
      const owner = updated.get(stream);
      if (owner !== undefined && this.#insert(frame, stream, owner.kind, batch.payloads, offset)) {
        owner.frames += 1;
        owner.bytes += bytes;
      }
      offset += bytes;
    }
    for (const [stream, { session, frames, bytes }] of updated) {
      if (frames === 0) continue;
      this.#countStored.run(frames, bytes, stream);
      log.count(this.#sessions, session, 0, bytes);
    }
  }

  /** An imported entry got a new id. */
  renamed(session: number, id: string, newId: string): void {
    const ids = this.newIds.get(session) ?? new Map<string, string>();
    this.newIds.set(session, ids.set(id, newId));
  }

  /** Removes the streams of an entry. `counts`: the session's byte counter still includes them. */
  remove(id: string, log: ChangeLog, counts: boolean): void {
    if (!this.#hasStreams) return;
    for (const row of this.#goneById.all(id)) {
      this.isUntidy = true;
      if (counts) log.count(this.#sessions, Number(row["session"]), 0, -Number(row["stored_bytes"]));
    }
  }

  /** Marks the session's streams as removed. */
  clearSession(session: number): void {
    if (!this.#hasStreams) return;
    this.#database
      .prepare("UPDATE stream SET is_gone = 1, is_untidy = 1 WHERE session = ? AND is_gone = 0")
      .run(session);
    this.isUntidy = true;
  }

  /** Removes the frames of a kind and its closed streams. */
  clearKind(kind: number, log: ChangeLog): void {
    if (!this.#hasStreams) return;
    const sums = this.#database
      .prepare("SELECT session, SUM(stored_bytes) AS bytes FROM stream WHERE kind = ? AND is_gone = 0 GROUP BY session")
      .all(kind);
    for (const row of sums) log.count(this.#sessions, Number(row["session"]), 0, -Number(row["bytes"]));
    const entries = this.#database.prepare(
      "SELECT e.seq FROM stream s JOIN entry e ON e.id = s.id WHERE s.kind = ? AND s.is_gone = 0",
    );
    for (const row of entries.iterate(kind)) log.streamedSeqs.push(Number(row["seq"]));
    this.#database
      .prepare(
        "UPDATE stream SET is_untidy = 1, is_gone = state = ?, floor_ordinal = last_ordinal, frames_stored = 0, " +
          "stored_bytes = 0 WHERE kind = ? AND is_gone = 0",
      )
      .run(STATE_CLOSED, kind);
    this.isUntidy = true;
  }

  /** Removes the oldest frames of open streams, whose entries cannot be removed; returns the bytes. */
  shed(wantedBytes: number, log: ChangeLog): number {
    if (!this.#hasStreams) return 0;
    const stream = this.#database
      .prepare(
        "SELECT number, session, floor_ordinal, (SELECT e.seq FROM entry e WHERE e.id = stream.id) AS seq FROM stream " +
          `WHERE state <> ${STATE_CLOSED} AND is_gone = 0 ` +
          "AND frames_stored > 0 ORDER BY stored_bytes DESC LIMIT 1",
      )
      .get();
    if (stream === undefined) return 0;
    const number = Number(stream["number"]);
    const { frames, bytes, upTo } = this.#oldest(number, Number.MAX_SAFE_INTEGER, wantedBytes);
    this.#deleteFrames.run(number, upTo);
    this.#database
      .prepare(
        "UPDATE stream SET floor_ordinal = ?, frames_stored = frames_stored - ?, stored_bytes = stored_bytes - ? WHERE number = ?",
      )
      .run(upTo, frames, bytes, number);
    if (stream["seq"] !== null) log.streamedSeqs.push(Number(stream["seq"]));
    log.count(this.#sessions, Number(stream["session"]), 0, -bytes);
    return bytes;
  }

  /** Reloads pending removals after a failed transaction. */
  recall(): void {
    this.isUntidy = this.#untidy.get() !== undefined;
  }

  /** Removes a bounded number of frames of removed streams. */
  tidy(): void {
    const stream = this.#untidy.get();
    if (stream === undefined) {
      this.isUntidy = false;
      return;
    }
    const number = Number(stream["number"]);
    const isGone = Number(stream["is_gone"]) === 1;
    const limit = isGone ? Number.MAX_SAFE_INTEGER : Number(stream["floor_ordinal"]);
    const { frames, upTo } = this.#oldest(number, limit, STEP_BYTES);
    if (frames > 0) {
      this.#deleteFrames.run(number, upTo);
      return;
    }
    if (isGone) this.#deleteStream.run(number);
    else this.#tidied.run(number);
  }

  #oldest(stream: number, limit: number, wantedBytes: number): { frames: number; bytes: number; upTo: number } {
    let frames = 0;
    let bytes = 0;
    let upTo = 0;
    for (const row of this.#oldFrames.iterate(stream, limit, STEP_FRAMES)) {
      frames += 1;
      bytes += Number(row["bytes"]);
      upTo = Number(row["ordinal"]);
      if (bytes >= wantedBytes) break;
    }
    return { frames, bytes, upTo };
  }

  #open(opening: StreamOpening, isImported: boolean): void {
    if (opening.number <= (this.clearedUpTo.get(opening.session) ?? 0)) return;
    const id = this.newIds.get(opening.session)?.get(opening.id) ?? opening.id;
    if (isImported && this.#ownEntry.get(id, opening.session) === undefined) return;
    this.#insertStream.run(
      opening.number,
      id,
      (this.#sessions.byNumber(opening.session) ?? this.#sessions.active)?.number ?? opening.session,
      opening.kind,
      opening.method,
      opening.url,
      opening.host,
      opening.path,
      opening.clientAddress,
      opening.requestFields,
      opening.createdMs,
      opening.createdMs,
    );
  }

  #update(progress: StreamProgress, updated: Map<number, UpdatedStream>, log: ChangeLog): void {
    const { number } = progress;
    const row = this.#updateStream.get(
      progress.state,
      progress.serverAddress,
      progress.responseFields,
      progress.subprotocol,
      progress.closeCode,
      progress.closeReason,
      progress.attributes,
      progress.closedMs,
      progress.lastMs,
      progress.framesSent,
      progress.framesReceived,
      progress.bytesSent,
      progress.bytesReceived,
      progress.framesNotStored,
      progress.lastOrdinal,
      number,
    );
    if (row === undefined) return;
    if (row["seq"] !== null) log.streamedSeqs.push(Number(row["seq"]));
    updated.set(number, { session: Number(row["session"]), kind: Number(row["kind"]), frames: 0, bytes: 0 });
  }

  /** False for a duplicate ordinal. */
  #insert(frame: FrameTuple, stream: number, kind: number, payloads: ArrayBuffer, offset: number): boolean {
    const [
      ,
      ordinal,
      direction,
      type,
      opcode,
      flags,
      effect,
      atMs,
      size,
      wire,
      mask,
      payloadBytes,
      originalBytes,
      attributes,
    ] = frame;
    const { changes } = this.#insertFrame.run(
      stream,
      ordinal,
      kind,
      direction,
      type,
      opcode,
      flags,
      effect,
      atMs,
      size,
      wire,
      mask,
      new Uint8Array(payloads, offset, payloadBytes),
      originalBytes < 0 ? null : new Uint8Array(payloads, offset + payloadBytes, originalBytes),
      attributes,
    );
    return changes > 0;
  }
}
