import { randomUUID } from "node:crypto";
import type { BodyFiles } from "../read/body-files.ts";
import type { ChangeLog } from "./change-log.ts";
import type { Database, SqlRow, Statement } from "../database.ts";
import { BatchReader } from "./batch-memory.ts";
import { NOT_STORED, PART_END, RECORDED_BEFORE } from "./entry-record.ts";
import type { BodyRecord, EntryRecord } from "./entry-record.ts";
import type { SessionTable } from "../sessions/session-table.ts";
import type { StreamRows } from "../streams/stream-rows.ts";
import type { RecordBatch } from "./writer-messages.ts";

const ENTRY_COLUMNS = [
  "seq",
  "id",
  "session",
  "state",
  "started_ms",
  "method",
  "scheme",
  "host",
  "port",
  "path",
  "status",
  "status_message",
  "request_type",
  "response_type",
  "resource_type",
  "duration_us",
  "ttfb_us",
  "request_size",
  "response_size",
  "request_version",
  "response_version",
  "flags",
  "source",
  "client_addr",
  "server_addr",
  "connection_id",
  "failure_code",
  "timings",
  "request_body_size",
  "request_body_stored",
  "request_body_state",
  "response_body_size",
  "response_body_stored",
  "response_body_state",
  "note",
] as const;

/** A decoded record with its field texts and inline bodies. */
export interface IncomingEntry {
  readonly record: EntryRecord;
  readonly requestFields: string;
  readonly responseFields: string;
  readonly tls: string;
  readonly requestBytes: Uint8Array | undefined;
  readonly responseBytes: Uint8Array | undefined;
  /** Body before rules replaced it. */
  readonly originalRequest: Uint8Array | undefined;
  readonly originalResponse: Uint8Array | undefined;
  /** Read from a file; the id may be taken. */
  readonly isImported: boolean;
}

const EMPTY = new Uint8Array(0);
const NEW = RECORDED_BEFORE.indexOf("no");
const AGAIN = RECORDED_BEFORE.indexOf("yes");

/** Bodies are views of the batch's memory. */
export function* entriesOfBatch({ entries, memory, firstSeq }: RecordBatch): Generator<IncomingEntry> {
  const reader = new BatchReader(memory);
  const body = (bytes: number, whenEmpty?: Uint8Array): Uint8Array | undefined => {
    if (bytes <= 0) return bytes === 0 ? whenEmpty : undefined;
    return reader.body(bytes);
  };
  for (let index = 0; index < entries; index += 1) {
    const [line = "", requestFields = "[]", responseFields = "", tls = ""] = reader.text().split(PART_END);
    const record = JSON.parse(line) as EntryRecord;
    if (firstSeq !== undefined) record[0] = firstSeq + index;
    const requestBytes = body(record[31][3]);
    const responseBytes = body(record[32][3]);
    const effect = record[34];
    const originalRequest = body(effect?.requestBytes ?? -1, EMPTY);
    const originalResponse = body(effect?.responseBytes ?? -1, EMPTY);
    yield {
      record,
      requestFields,
      responseFields,
      tls,
      requestBytes,
      responseBytes,
      originalRequest,
      originalResponse,
      isImported: firstSeq !== undefined,
    };
  }
}

/** Writes and removes entry rows, always within the caller's transaction. */
export class EntryRows {
  readonly #sessions: SessionTable;
  readonly #files: BodyFiles;
  readonly #streams: StreamRows;
  readonly #insert: Statement;
  readonly #update: Statement;
  readonly #insertHead: Statement;
  readonly #insertBody: Statement;
  readonly #existing: Statement;
  readonly #byId: Statement;
  readonly #deleteEntry: Statement;
  readonly #deleteHead: Statement;
  readonly #deleteBodies: Statement;
  readonly #insertEffect: Statement;
  readonly #deleteEffect: Statement;
  #highestSeq: number;

  constructor(database: Database, sessions: SessionTable, files: BodyFiles, streams: StreamRows, highestSeq: number) {
    this.#sessions = sessions;
    this.#files = files;
    this.#streams = streams;
    this.#highestSeq = highestSeq;
    this.#insert = database.prepare(
      `INSERT INTO entry (${ENTRY_COLUMNS.join(", ")}) VALUES (${ENTRY_COLUMNS.map(() => "?").join(", ")})`,
    );
    const updated = ENTRY_COLUMNS.filter((column) => column !== "seq" && column !== "session" && column !== "note");
    this.#update = database.prepare(
      `UPDATE entry SET ${updated.map((column) => `${column} = ?`).join(", ")} WHERE seq = ?`,
    );
    this.#insertHead = database.prepare("INSERT OR REPLACE INTO head VALUES (?, ?, ?, ?, ?, ?, ?)");
    this.#insertBody = database.prepare("INSERT OR REPLACE INTO body VALUES (?, ?, ?)");
    this.#existing = database.prepare(
      "SELECT session, request_body_stored + response_body_stored AS stored FROM entry WHERE seq = ?",
    );
    this.#byId = database.prepare("SELECT 1 FROM entry WHERE id = ?");
    this.#deleteEntry = database.prepare(
      "DELETE FROM entry WHERE seq = ? RETURNING id, session, request_body_stored + response_body_stored AS stored",
    );
    this.#deleteHead = database.prepare("DELETE FROM head WHERE seq = ?");
    this.#insertEffect = database.prepare("INSERT OR REPLACE INTO effect VALUES (?, ?, ?, ?, ?)");
    this.#deleteEffect = database.prepare(
      "DELETE FROM effect WHERE seq = ? RETURNING IFNULL(length(request_body), 0) + IFNULL(length(response_body), 0) AS stored",
    );
    this.#deleteBodies = database.prepare("DELETE FROM body WHERE key BETWEEN ? AND ? RETURNING file");
  }

  /** Newest entry number ever stored. */
  get highestSeq(): number {
    return this.#highestSeq;
  }

  /** Call after the commit. */
  raiseHighest(seq: number): void {
    this.#highestSeq = Math.max(this.#highestSeq, seq);
  }

  /**
   * Inserts an entry, or replaces its running state. An entry known to have been stored and deleted since stays
   * deleted.
   */
  store(entry: IncomingEntry, log: ChangeLog): void {
    const { record } = entry;
    if (entry.isImported && this.#byId.get(record[2]) !== undefined) {
      const id = randomUUID();
      this.#streams.renamed(record[3], record[2], id);
      record[2] = id;
    }
    const request = this.#settle(record[31], log);
    const response = this.#settle(record[32], log);
    const replaced = (entry.originalRequest?.length ?? 0) + (entry.originalResponse?.length ?? 0);
    const stored = request[1] + response[1] + replaced;
    const before = record[1] === NEW ? undefined : this.#existing.get(record[0]);
    const mustBeThere = before !== undefined || record[1] === AGAIN;
    const isGone = mustBeThere ? !this.#isVisible(before, record[0], log) : this.#isCleared(record, log);
    if (isGone) {
      log.removedFiles.push(...[request[4], response[4]].filter((file) => file !== 0));
      return;
    }
    const session =
      before === undefined
        ? (log.session(this.#sessions, record[3])?.number ?? this.#sessions.activeNumber)
        : Number(before["session"]);
    if (before !== undefined) {
      const [seq, id, , ...values] = rowValues(record, request, response, session);
      // Keep a note that was set while the exchange ran.
      this.#update.run(id ?? null, ...values.slice(0, -1), seq ?? null);
    } else {
      this.#insert.run(...rowValues(record, request, response, session));
    }
    this.#insertHead.run(
      record[0],
      entry.requestFields,
      textOrNull(record[28]),
      entry.responseFields === "" ? null : entry.responseFields,
      textOrNull(record[29]),
      textOrNull(record[30]),
      entry.tls === "" ? null : entry.tls,
    );
    if (request[4] !== 0) this.#insertBody.run(record[0] * 2, null, request[4]);
    else if (entry.requestBytes !== undefined) this.#insertBody.run(record[0] * 2, entry.requestBytes, null);
    if (response[4] !== 0) this.#insertBody.run(record[0] * 2 + 1, null, response[4]);
    else if (entry.responseBytes !== undefined) this.#insertBody.run(record[0] * 2 + 1, entry.responseBytes, null);
    this.#storeEffect(entry);
    log.count(this.#sessions, session, before === undefined ? 1 : 0, stored - Number(before?.["stored"] ?? 0));
    if (before !== undefined || record[0] < Math.max(this.#highestSeq, log.highestSeq)) log.changedSeqs.push(record[0]);
    log.highestSeq = Math.max(log.highestSeq, record[0]);
  }

  /** Removes an entry and everything that belongs to it. Returns its id, undefined if there is none. */
  remove(seq: number, log: ChangeLog, counts = true): string | undefined {
    const row = this.#deleteEntry.get(seq);
    if (row === undefined) return undefined;
    this.#deleteHead.run(seq);
    for (const body of this.#deleteBodies.all(seq * 2, seq * 2 + 1)) {
      if (body["file"] !== null) log.removedFiles.push(Number(body["file"]));
    }
    const replaced = Number(this.#deleteEffect.get(seq)?.["stored"] ?? 0);
    if (counts) log.count(this.#sessions, Number(row["session"]), -1, -Number(row["stored"]) - replaced);
    log.removedSeqs.push(seq);
    this.#streams.remove(String(row["id"]), log, counts);
    return String(row["id"]);
  }

  #storeEffect({ record, originalRequest, originalResponse }: IncomingEntry): void {
    const effect = record[34];
    if (effect === null) return;
    const { trace, request, response } = effect;
    const original = request === null && response === null ? null : JSON.stringify({ request, response });
    this.#insertEffect.run(
      record[0],
      JSON.stringify(trace),
      original,
      originalRequest ?? null,
      originalResponse ?? null,
    );
  }

  #isVisible(row: SqlRow | undefined, seq: number, log: ChangeLog): boolean {
    if (row === undefined) return false;
    const session = log.session(this.#sessions, Number(row["session"]));
    return session !== undefined && seq > session.floorSeq;
  }

  /** True if the session was cleared after the entry was numbered. */
  #isCleared(record: EntryRecord, log: ChangeLog): boolean {
    const session = log.session(this.#sessions, record[3]) ?? this.#sessions.active;
    return session !== undefined && record[0] <= session.floorSeq;
  }

  /** Marks a spooled body as not stored if its file failed. */
  #settle(body: BodyRecord, log: ChangeLog): BodyRecord {
    if (body[4] !== 0 && !this.#files.has(body[4])) {
      log.bodiesNotStored += 1;
      return [body[0], 0, NOT_STORED, 0, 0];
    }
    return body;
  }
}

function textOrNull(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function rowValues(
  record: EntryRecord,
  request: BodyRecord,
  response: BodyRecord,
  session: number,
): (string | number | null)[] {
  const failure = record[30];
  return [
    record[0],
    record[2],
    session,
    record[4],
    record[5],
    record[6],
    record[7],
    record[8],
    record[9],
    record[10],
    record[11],
    record[12],
    record[13],
    record[14],
    record[15],
    record[16],
    record[17],
    record[18],
    record[19],
    record[20],
    record[21],
    record[22],
    record[23],
    record[24],
    record[25],
    record[26],
    failure === null ? null : failure.code,
    record[27],
    request[0],
    request[1],
    request[2],
    response[0],
    response[1],
    response[2],
    record[33],
  ];
}
