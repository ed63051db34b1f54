import { randomUUID } from "node:crypto";
import type { Failure, RuleKind, RuleTrace, TlsInfo } from "@headworks/capture-contract";
import type { FieldLines, RawFields } from "@headworks/http1";
import type { RequestMessage, ResponseMessage } from "#exchange/exchange.ts";
import type { Database, SqlRow, Statement } from "../database.ts";
import type { ChangeLog, SessionTable } from "../sessions/session-table.ts";
import type { BodyFiles } from "../stored-bodies.ts";
import type { StreamRows } from "../streams/stream-rows.ts";
import type { RecordBatch } from "./writer-messages.ts";

/** Codes of `entry.state`, in contract order. */
export const ENTRY_STATES = ["pending", "complete", "failed", "closed"] as const;
export type EntryStateCode = 0 | 1 | 2 | 3;

/** Bits of `entry.flags`. */
export const FLAG_MODIFIED = 1;
export const FLAG_PASSTHROUGH = 2;
export const FLAG_SCRIPTED = 4;

/** Order of the bits; append new kinds. */
export const RULE_KINDS = [
  "block",
  "rewrite",
  "mock",
  "breakpoint",
  "throttle",
  "script",
  "plugin",
] as const satisfies readonly RuleKind[];

/** One bit for each kind of rule that affected the entry, above the flags. */
const FIRST_RULE_FLAG = 8;

/** Bits of the kinds of rules in `entry.flags`. */
export function flagsOfKinds(trace: readonly { readonly kind: RuleKind }[]): number {
  return trace.reduce((flags, { kind }) => flags | (FIRST_RULE_FLAG << RULE_KINDS.indexOf(kind)), 0);
}

/** Inverse of {@link flagsOfKinds}. */
export function kindsOfFlags(flags: number): RuleKind[] {
  return flags < FIRST_RULE_FLAG ? [] : RULE_KINDS.filter((_kind, index) => (flags & (FIRST_RULE_FLAG << index)) !== 0);
}

/** Indexes are stored in `entry.*_body_state`. */
export const BODY_STATES = ["none", "complete", "truncated", "not_stored"] as const;
export const NOT_STORED = BODY_STATES.indexOf("not_stored");

/** Column order: member names in every entry would double its size. */
export const TLS_COLUMNS = [
  "client_version",
  "client_cipher",
  "sni",
  "upstream_version",
  "upstream_cipher",
  "upstream_verified",
  "upstream_subject",
  "upstream_issuer",
  "upstream_valid_to",
  "upstream_client_certificate",
] as const satisfies readonly (keyof TlsInfo)[];

export function tlsText(tls: TlsInfo): string {
  return JSON.stringify(TLS_COLUMNS.map((name) => tls[name]));
}

/** Rule effects as sent to the writer and stored; replaced bodies are separate. */
export interface EffectRecord {
  readonly trace: readonly RuleTrace[];
  readonly request: RequestMessage | null;
  readonly response: ResponseMessage | null;
  /** Sizes of the replaced bodies; -1 if not replaced. */
  readonly requestBytes: number;
  readonly responseBytes: number;
}

/** Whether a running state of the entry was stored before; "maybe" if the writer thread ended meanwhile. */
export const RECORDED_BEFORE = ["no", "yes", "maybe"] as const;
export type RecordedBefore = (typeof RECORDED_BEFORE)[number];

/** An entry as sent to the writer, a JSON array. */
export type EntryRecord = [
  seq: number,
  /** Index into {@link RECORDED_BEFORE}. */
  before: number,
  id: string,
  sessionNumber: number,
  state: EntryStateCode,
  startedMs: number,
  method: string,
  scheme: string,
  host: string,
  port: number,
  path: string,
  status: number | null,
  statusMessage: string | null,
  requestType: string | null,
  responseType: string | null,
  resourceType: string,
  durationUs: number | null,
  ttfbUs: number | null,
  requestSize: number,
  responseSize: number | null,
  requestVersion: string | null,
  responseVersion: string | null,
  flags: number,
  source: string,
  clientAddress: string | null,
  serverAddress: string | null,
  connection: number | null,
  /** JSON, stored as is. */
  timings: string,
  requestTrailers: RawFields | null,
  responseTrailers: RawFields | null,
  failure: Failure | null,
  requestBody: BodyRecord,
  responseBody: BodyRecord,
  /** Null keeps the note of an entry that is replaced. */
  note: string | null,
  effect: EffectRecord | null,
];

/** `inlineBytes` follow in the batch memory in order; `spooled` is the number of a file written earlier. */
export type BodyRecord = [size: number, stored: number, state: number, inlineBytes: number, spooled: number];
export const NO_BODY: BodyRecord = [0, 0, 0, 0, 0];

/** Positions in {@link EntryRecord} that are read one by one. */
const [SEQ, BEFORE, ID, SESSION] = [0, 1, 2, 3] as const;
const [TIMINGS, REQUEST_TRAILERS, RESPONSE_TRAILERS, FAILURE] = [27, 28, 29, 30] as const;
const [REQUEST_BODY, RESPONSE_BODY, NOTE, EFFECT] = [31, 32, 33, 34] as const;
/** Positions in {@link BodyRecord}. */
const [SIZE, STORED, STATE, INLINE, FILE] = [0, 1, 2, 3, 4] as const;

/** Separator of the parts of an entry; neither JSON nor field lines contain it. */
const PART_END = "\0";

/**
 * Joins the parts of an entry: the record, then request fields, response fields and TLS facts, which are stored as is
 * and empty if absent. Fields are the received field lines if available, otherwise JSON.
 */
export function entryText(
  record: EntryRecord,
  request: FieldsOfMessage,
  response: FieldsOfMessage | undefined,
  tls: string,
): string {
  const responseText = response === undefined ? "" : fieldsText(response);
  return `${JSON.stringify(record)}${PART_END}${fieldsText(request)}${PART_END}${responseText}${PART_END}${tls}`;
}

interface FieldsOfMessage {
  readonly fields: Readonly<RawFields>;
  readonly fieldLines?: FieldLines;
}

/** Never empty: an empty part means no message. */
function fieldsText({ fields, fieldLines }: FieldsOfMessage): string {
  return fieldLines === undefined || fieldLines === "" ? JSON.stringify(fields) : fieldLines;
}

const MAX_ENTRIES = 256;
/** A batch is sent when it is full or the next entry does not fit. */
export const BATCH_BYTES = 1_048_576;
/** Length of an entry's text, little-endian, before the text. */
const LENGTH_BYTES = 4;
/** Upper bound of the UTF-8 bytes per UTF-16 code unit. */
const CHARACTER_BYTES = 3;

/** Encoded entries in one transferable buffer: the length of the text, the text, the body bytes. */
export class BatchMemory {
  readonly memory: ArrayBuffer;
  readonly #bytes: Buffer;
  entries = 0;
  usedBytes = 0;

  constructor(memory: ArrayBuffer) {
    this.memory = memory;
    this.#bytes = Buffer.from(memory);
  }

  /** Allocates at least {@link BATCH_BYTES}, more if the entry needs it. */
  static for(text: string, bodyBytes: number): BatchMemory {
    return new BatchMemory(new ArrayBuffer(Math.max(BATCH_BYTES, maxBytes(text, bodyBytes))));
  }

  get isFull(): boolean {
    return this.entries >= MAX_ENTRIES;
  }

  hasRoomFor(text: string, bodyBytes: number): boolean {
    return this.usedBytes + maxBytes(text, bodyBytes) <= this.#bytes.length;
  }

  /** Requires {@link hasRoomFor}. */
  add(text: string, bodies: readonly Uint8Array[]): void {
    const start = this.usedBytes + LENGTH_BYTES;
    const textBytes = this.#bytes.write(text, start, "utf8");
    this.#bytes.writeUInt32LE(textBytes, this.usedBytes);
    let at = start + textBytes;
    for (const body of bodies) {
      this.#bytes.set(body, at);
      at += body.length;
    }
    this.usedBytes = at;
    this.entries += 1;
  }
}

function maxBytes(text: string, bodyBytes: number): number {
  return LENGTH_BYTES + CHARACTER_BYTES * text.length + bodyBytes;
}

/** Reads entries in insertion order. Bodies are views of the buffer. */
export class BatchReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(memory: ArrayBuffer) {
    this.#bytes = Buffer.from(memory);
  }

  /** Starts the next entry. Read its bodies before the next call. */
  text(): string {
    const start = this.#at + LENGTH_BYTES;
    this.#at = start + this.#bytes.readUInt32LE(this.#at);
    return this.#bytes.toString("utf8", start, this.#at);
  }

  body(sizeBytes: number): Uint8Array {
    const body = new Uint8Array(this.#bytes.buffer, this.#at, sizeBytes);
    this.#at += sizeBytes;
    return body;
  }
}

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
interface IncomingEntry {
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
    if (firstSeq !== undefined) record[SEQ] = firstSeq + index;
    const requestBytes = body(record[REQUEST_BODY][INLINE]);
    const responseBytes = body(record[RESPONSE_BODY][INLINE]);
    const effect = record[EFFECT];
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
  /** Newest entry number ever committed. */
  highestSeq: number;

  constructor(database: Database, sessions: SessionTable, files: BodyFiles, streams: StreamRows, highestSeq: number) {
    this.#sessions = sessions;
    this.#files = files;
    this.#streams = streams;
    this.highestSeq = highestSeq;
    this.#insert = database.prepare(
      `INSERT INTO entry (${ENTRY_COLUMNS.join(", ")}) VALUES (${ENTRY_COLUMNS.map(() => "?").join(", ")})`,
    );
    const updated = ENTRY_COLUMNS.filter((column) => column !== "seq" && column !== "session").map((column) =>
      // Keeps a note that was set while the exchange ran.
      column === "note" ? "note = COALESCE(?, note)" : `${column} = ?`,
    );
    this.#update = database.prepare(`UPDATE entry SET ${updated.join(", ")} WHERE seq = ?`);
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

  /** Inserts an entry or replaces its running state. An entry that was stored and deleted stays deleted. */
  store(entry: IncomingEntry, log: ChangeLog): void {
    const { record } = entry;
    if (entry.isImported && this.#byId.get(record[ID]) !== undefined) {
      const id = randomUUID();
      this.#streams.renamed(record[SESSION], record[ID], id);
      record[ID] = id;
    }
    const request = this.#withStoredState(record[REQUEST_BODY], log);
    const response = this.#withStoredState(record[RESPONSE_BODY], log);
    const replaced = (entry.originalRequest?.length ?? 0) + (entry.originalResponse?.length ?? 0);
    const stored = request[STORED] + response[STORED] + replaced;
    const before = record[BEFORE] === NEW ? undefined : this.#existing.get(record[SEQ]);
    const mustBeThere = before !== undefined || record[BEFORE] === AGAIN;
    const isGone = mustBeThere ? !this.#isVisible(before, record[SEQ], log) : this.#isCleared(record, log);
    if (isGone) {
      log.removedFiles.push(...[request[FILE], response[FILE]].filter((file) => file !== 0));
      return;
    }
    const session =
      before === undefined
        ? (log.session(this.#sessions, record[SESSION])?.number ?? this.#sessions.activeNumber)
        : Number(before["session"]);
    if (before !== undefined) {
      const [seq, id, , ...values] = rowValues(record, request, response, session);
      this.#update.run(id ?? null, ...values, seq ?? null);
    } else {
      this.#insert.run(...rowValues(record, request, response, session));
    }
    this.#insertHead.run(
      record[SEQ],
      entry.requestFields,
      jsonOrNull(record[REQUEST_TRAILERS]),
      entry.responseFields === "" ? null : entry.responseFields,
      jsonOrNull(record[RESPONSE_TRAILERS]),
      jsonOrNull(record[FAILURE]),
      entry.tls === "" ? null : entry.tls,
    );
    if (request[FILE] !== 0) this.#insertBody.run(record[SEQ] * 2, null, request[FILE]);
    else if (entry.requestBytes !== undefined) this.#insertBody.run(record[SEQ] * 2, entry.requestBytes, null);
    if (response[FILE] !== 0) this.#insertBody.run(record[SEQ] * 2 + 1, null, response[FILE]);
    else if (entry.responseBytes !== undefined) this.#insertBody.run(record[SEQ] * 2 + 1, entry.responseBytes, null);
    this.#storeEffect(entry);
    log.count(this.#sessions, session, before === undefined ? 1 : 0, stored - Number(before?.["stored"] ?? 0));
    const isNewest = before === undefined && record[SEQ] >= Math.max(this.highestSeq, log.highestSeq);
    if (!isNewest) log.changedSeqs.push(record[SEQ]);
    log.highestSeq = Math.max(log.highestSeq, record[SEQ]);
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
    const effect = record[EFFECT];
    if (effect === null) return;
    const { trace, request, response } = effect;
    const original = request === null && response === null ? null : JSON.stringify({ request, response });
    this.#insertEffect.run(
      record[SEQ],
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
    const session = log.session(this.#sessions, record[SESSION]) ?? this.#sessions.active;
    return session !== undefined && record[SEQ] <= session.floorSeq;
  }

  /** Marks a spooled body as not stored if its file failed. */
  #withStoredState(body: BodyRecord, log: ChangeLog): BodyRecord {
    if (body[FILE] !== 0 && !this.#files.has(body[FILE])) {
      log.bodiesNotStored += 1;
      return [body[SIZE], 0, NOT_STORED, 0, 0];
    }
    return body;
  }
}

function jsonOrNull(value: unknown): string | null {
  return value === null ? null : JSON.stringify(value);
}

function rowValues(
  record: EntryRecord,
  request: BodyRecord,
  response: BodyRecord,
  session: number,
): (string | number | null)[] {
  const failure = record[FAILURE];
  return [
    record[SEQ],
    record[ID],
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
    record[TIMINGS],
    request[SIZE],
    request[STORED],
    request[STATE],
    response[SIZE],
    response[STORED],
    response[STATE],
    record[NOTE],
  ];
}
