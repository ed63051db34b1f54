import { existsSync, rmSync } from "node:fs";
import { inBothReadings, type Query, READABLE, type TextValue } from "@headworks/query-language";
import { type Database, openDatabase, SEARCH_MIGRATIONS, type SqlRow, type Statement } from "../database.ts";
import { RECORD_COLUMNS, RECORD_HEAD_COLUMNS, RowRecord } from "../read/row-record.ts";
import type { StoredBodies } from "../stored-bodies.ts";
import { type IndexedEntry, rowsOfNeedle, SIGNATURE_ROWS, SignatureColumns } from "./text-signature.ts";

/** Signature rows that must be set for every entry that may match: all rows, or one of several alternatives. */
type RequiredText =
  | { readonly kind: "rows"; readonly rows: readonly number[] }
  | { readonly kind: "all" | "any"; readonly terms: readonly RequiredText[] };

/** Fields that search bodies only. Other fields have columns or are rarely used alone. */
const BODY_FIELDS: ReadonlySet<string> = new Set(["body", "req.body", "resp.body"]);

/** Undefined if any text may match. */
export function requiredTextOf(query: Query): RequiredText | undefined {
  switch (query.kind) {
    case "and":
      return allOf(query.terms.map(requiredTextOf));
    case "or":
      return anyOf(query.terms.map(requiredTextOf));
    case "preset":
      return requiredTextOf(query.query);
    case "anywhere":
      return requiredTextOfValue(query.value);
    case "field": {
      const { test } = query;
      if (!BODY_FIELDS.has(query.field) || test.kind !== "text" || test.mode !== "matches") return undefined;
      return anyOf(test.values.map(requiredTextOfValue));
    }
    default:
      return undefined;
  }
}

function requiredTextOfValue(value: TextValue): RequiredText | undefined {
  switch (value.kind) {
    case "literal":
      return requiredTextOfLiteral(value.text);
    case "wildcard":
      return allOf(value.parts.map(requiredTextOfLiteral));
    case "pattern":
      return undefined;
  }
}

/** The query language compares free texts and bodies in lower case. */
function requiredTextOfLiteral(text: string): RequiredText | undefined {
  const rows = rowsOfNeedle(text.toLowerCase());
  return rows === undefined ? undefined : { kind: "rows", rows };
}

function allOf(terms: readonly (RequiredText | undefined)[]): RequiredText | undefined {
  const known = terms.filter((term) => term !== undefined);
  return known.length === 0 ? undefined : { kind: "all", terms: known };
}

function anyOf(terms: readonly (RequiredText | undefined)[]): RequiredText | undefined {
  const known = terms.filter((term) => term !== undefined);
  return known.length === 0 || known.length < terms.length ? undefined : { kind: "any", terms: known };
}

const ROWS_OF_SLICE = 32;
const SLICES_OF_SEGMENT = SIGNATURE_ROWS / ROWS_OF_SLICE;

/** Columns of a finished segment; its bits stay on disk. */
interface Segment {
  readonly number: number;
  readonly columns: number;
}

/** Finished signatures in a file of their own, which may be lost at any time. */
class SignatureTable {
  readonly #database: Database;
  readonly #slice: Statement;
  readonly #segment: Statement;

  /** Opens or creates the file; replaces an unusable one. Throws SQLite's error if that fails. */
  static open(path: string): SignatureTable {
    try {
      return new SignatureTable(path);
    } catch {
      for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
      return new SignatureTable(path);
    }
  }

  private constructor(path: string) {
    this.#database = openDatabase(path, {
      migrations: SEARCH_MIGRATIONS,
      // Segments lost in a power failure are rebuilt.
      synchronous: "NORMAL",
      cacheBytes: 4_194_304,
    });
    try {
      this.#slice = this.#database.prepare("SELECT bits FROM slice WHERE key = ?");
      this.#segment = this.#database.prepare("SELECT seqs, marks, spans FROM segment WHERE number = ?");
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  close(): void {
    this.#database.close();
  }

  segments(): Segment[] {
    return this.#database
      .prepare("SELECT number, columns FROM segment ORDER BY number")
      .all()
      .map((row) => ({ number: Number(row["number"]), columns: Number(row["columns"]) }));
  }

  entries(segment: Segment): IndexedEntry[] {
    const row = this.#segment.get(segment.number);
    const seqs = new Float64Array(bufferOf(row?.["seqs"]));
    const marks = new Int32Array(bufferOf(row?.["marks"]));
    if (seqs.length !== marks.length) throw new Error("A segment of the text index is damaged");
    return Array.from(seqs, (seq, index) => ({ seq, mark: marks[index] ?? 0 }));
  }

  save(signatures: SignatureColumns): Segment {
    const { entries, spans, count } = signatures;
    const { bits, strideBytes } = signatures.matrix();
    return this.#database.transaction(() => {
      const { lastInsertRowid } = this.#database
        .prepare("INSERT INTO segment (columns, seqs, marks, spans) VALUES (?, ?, ?, ?)")
        .run(
          count,
          bytesOf(Float64Array.from(entries, ({ seq }) => seq)),
          bytesOf(Int32Array.from(entries, ({ mark }) => mark)),
          bytesOf(Int32Array.from(spans.flatMap(({ first, last }) => [first, last]))),
        );
      const number = Number(lastInsertRowid);
      const insert = this.#database.prepare("INSERT INTO slice VALUES (?, ?)");
      const sliceBytes = ROWS_OF_SLICE * strideBytes;
      for (let part = 0; part < SLICES_OF_SEGMENT; part += 1) {
        insert.run(number * SLICES_OF_SEGMENT + part, bits.subarray(part * sliceBytes, (part + 1) * sliceBytes));
      }
      return { number, columns: count };
    });
  }

  remove(segment: Segment): void {
    this.#database.transaction(() => {
      this.#database.prepare("DELETE FROM segment WHERE number = ?").run(segment.number);
      const first = segment.number * SLICES_OF_SEGMENT;
      this.#database.prepare("DELETE FROM slice WHERE key BETWEEN ? AND ?").run(first, first + SLICES_OF_SEGMENT - 1);
    });
  }

  /** Entries whose columns have all given rows set. */
  find(segment: Segment, rows: readonly number[], onSeq: (seq: number) => void): void {
    const strideBytes = Math.ceil(segment.columns / 8);
    const columns = new Uint8Array(strideBytes).fill(0xff);
    for (const row of rows) {
      const bits = this.#bits(segment, row, strideBytes);
      let left = 0;
      for (let byte = 0; byte < strideBytes; byte += 1) {
        left |= columns[byte] = (columns[byte] ?? 0) & (bits[byte] ?? 0);
      }
      if (left === 0) return;
    }
    const found = this.#segment.get(segment.number);
    const seqs = new Float64Array(bufferOf(found?.["seqs"]));
    const spans = new Int32Array(bufferOf(found?.["spans"]));
    for (let column = 0; column < segment.columns; column += 1) {
      if (((columns[column >> 3] ?? 0) & (1 << (column & 7))) === 0) continue;
      const last = spans[column * 2 + 1] ?? -1;
      for (let index = spans[column * 2] ?? 0; index <= last; index += 1) onSeq(seqs[index] ?? 0);
    }
  }

  #bits(segment: Segment, row: number, strideBytes: number): Uint8Array {
    const part = Math.floor(row / ROWS_OF_SLICE);
    const found = this.#slice.get(segment.number * SLICES_OF_SEGMENT + part)?.["bits"];
    if (!(found instanceof Uint8Array) || found.length !== ROWS_OF_SLICE * strideBytes) {
      throw new Error("A slice of the text index is damaged");
    }
    const from = (row % ROWS_OF_SLICE) * strideBytes;
    return found.subarray(from, from + strideBytes);
  }
}

function bytesOf(numbers: Float64Array | Int32Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}

function bufferOf(value: unknown): ArrayBuffer {
  if (!(value instanceof Uint8Array)) throw new Error("A segment of the text index is damaged");
  return value.slice().buffer;
}

const PAGE_SEQS = 65_536;

/** Entry numbers as sparse bit blocks: gaps left by old sessions take no memory. */
class SeqBits {
  readonly #pages = new Map<number, Uint8Array>();

  has(seq: number): boolean {
    const page = this.#pages.get(Math.floor(seq / PAGE_SEQS));
    if (page === undefined) return false;
    const index = seq % PAGE_SEQS;
    return ((page[index >> 3] ?? 0) & (1 << (index & 7))) !== 0;
  }

  add(seq: number): void {
    const number = Math.floor(seq / PAGE_SEQS);
    let page = this.#pages.get(number);
    if (page === undefined) this.#pages.set(number, (page = new Uint8Array(PAGE_SEQS / 8)));
    const index = seq % PAGE_SEQS;
    page[index >> 3] = (page[index >> 3] ?? 0) | (1 << (index & 7));
  }

  delete(seq: number): void {
    const page = this.#pages.get(Math.floor(seq / PAGE_SEQS));
    const index = seq % PAGE_SEQS;
    if (page !== undefined) page[index >> 3] = (page[index >> 3] ?? 0) & ~(1 << (index & 7));
  }

  clear(): void {
    this.#pages.clear();
  }
}

/** Minimum columns of a segment: entries are never split across segments. */
const COLUMNS_OF_SEGMENT = 512;
/** Unindexed entries scanned, or removed entries, before the index is updated. */
const MIN_UPDATE_ENTRIES = 4096;
const NUMBERS_AT_ONCE = 4096;
const ENTRIES_AT_ONCE = 16;
const MARKED = "e.id || ' ' || e.request_body_stored || ' ' || e.response_body_stored";

export interface TextIndexSetup {
  readonly path: string;
  /** Numbers from here on belong to this process, even if an earlier one used them. */
  readonly firstNewSeq: number;
  /** For tests: smaller segments. */
  readonly columnsOfSegment?: number;
}

/** Index result for one query, valid for one `version`. */
export interface TextFinding {
  readonly version: number;
  /** False: not indexed. */
  isIndexed(seq: number): boolean;
  /** False: excluded. True may be a false positive. */
  mayMatch(seq: number): boolean;
}

/**
 * Signatures of entry texts (URL, fields, decoded bodies), so that a search can skip entries. Built from stored rows by
 * searches and afterwards, never while capturing, in a separate file. Entries without a signature are scanned; so is
 * everything if the file fails.
 */
export class TextIndex {
  /** Changes when results become invalid. */
  version = 0;
  readonly #path: string;
  readonly #firstNewSeq: number;
  readonly #columnsOfSegment: number;
  readonly #bodies: StoredBodies;
  readonly #numbers: Statement;
  readonly #rows: Statement;
  readonly #marks: Statement;
  readonly #newest: Statement;
  #state: "closed" | "open" | "broken" = "closed";
  #table: SignatureTable | undefined;
  #segments: Segment[] = [];
  /** Not on disk yet. */
  #tail = new SignatureColumns();
  readonly #known = new SeqBits();
  #highestKnown = 0;
  #isWanted = false;
  /** Highest number covered by the current indexing round. */
  #roundAt = 0;
  #ahead: number[] = [];
  #missed = 0;
  #removed = 0;
  #newestAtCheck = -1;

  constructor(setup: TextIndexSetup, database: Database, bodies: StoredBodies) {
    this.#path = setup.path;
    this.#firstNewSeq = setup.firstNewSeq;
    this.#columnsOfSegment = setup.columnsOfSegment ?? COLUMNS_OF_SEGMENT;
    this.#bodies = bodies;
    this.#numbers = database.prepare("SELECT seq FROM entry WHERE seq > ? AND state <> 0 ORDER BY seq LIMIT ?");
    this.#rows = database.prepare(
      `SELECT ${RECORD_COLUMNS}, ${RECORD_HEAD_COLUMNS}, ${MARKED} AS marked, e.request_body_stored,
         e.response_body_stored FROM entry e JOIN head h ON h.seq = e.seq
       WHERE e.seq IN (SELECT value FROM json_each(?)) AND e.state <> 0`,
    );
    this.#marks = database.prepare(
      `SELECT group_concat(e.seq || ' ' || ${MARKED}, char(10)) AS marks FROM json_each(?) j JOIN entry e ON e.seq = j.value`,
    );
    this.#newest = database.prepare("SELECT MAX(seq) AS seq FROM entry");
  }

  close(): void {
    this.#table?.close();
    this.#table = undefined;
    this.#state = "broken";
  }

  /** Counts removed entries; `all` after the removal of whole sessions. */
  noteRemoved(count: number, all: boolean): void {
    this.#removed += all ? MIN_UPDATE_ENTRIES : count;
  }

  /** Counts scanned entries that were not indexed. */
  noteMissed(count: number): void {
    this.#missed += count;
    if (this.#missed < MIN_UPDATE_ENTRIES) return;
    this.#missed = 0;
    this.#isWanted = true;
  }

  /** Undefined if nothing is indexed. */
  find(required: RequiredText): TextFinding | undefined {
    return this.#guarded(() => {
      if (!existsSync(this.#path) && this.#state === "closed") return undefined;
      this.#open();
      if (this.#segments.length === 0 && this.#tail.count === 0) return undefined;
      const mayMatch = this.#evaluate(required);
      return { version: this.version, isIndexed: (seq) => this.#known.has(seq), mayMatch };
    });
  }

  /** Searches hit unindexed entries. */
  get isWanted(): boolean {
    return this.#isWanted && this.#state !== "broken";
  }

  /** Call periodically: after text searches, new entries are indexed once capture pauses. */
  planUpdate(): void {
    this.#guarded(() => {
      if (this.#state === "closed" && !existsSync(this.#path)) return;
      const newest = Number(this.#newest.get()?.["seq"] ?? 0);
      const isQuiet = newest === this.#newestAtCheck;
      this.#newestAtCheck = newest;
      if (isQuiet && newest - this.#highestKnown > MIN_UPDATE_ENTRIES) this.#isWanted = true;
    });
  }

  /** Indexes until `turnEndsMs`; returns false when done. */
  step(turnEndsMs: number): boolean {
    if (!this.isWanted) return false;
    this.#guarded(() => {
      this.#open();
      if (this.#removed >= MIN_UPDATE_ENTRIES) this.#dropDead();
      do this.#isWanted = this.#indexSome();
      while (this.#isWanted && performance.now() < turnEndsMs);
    });
    return this.isWanted;
  }

  #evaluate(required: RequiredText): (seq: number) => boolean {
    if (required.kind !== "rows") {
      const terms = required.terms.map((term) => this.#evaluate(term));
      return required.kind === "all"
        ? (seq) => terms.every((mayMatch) => mayMatch(seq))
        : (seq) => terms.some((mayMatch) => mayMatch(seq));
    }
    const found = new SeqBits();
    for (const segment of this.#segments) this.#table?.find(segment, required.rows, (seq) => found.add(seq));
    this.#tail.find(required.rows, ({ first, last }) => {
      for (let index = first; index <= last; index += 1) found.add(this.#tail.entries[index]?.seq ?? 0);
    });
    return (seq) => found.has(seq);
  }

  /** Returns false when done. */
  #indexSome(): boolean {
    if (this.#ahead.length === 0) {
      const numbers = this.#numbers.all(this.#roundAt, NUMBERS_AT_ONCE).map((row) => Number(row["seq"]));
      this.#roundAt = numbers.at(-1) ?? 0;
      if (numbers.length === 0) return false;
      this.#ahead = numbers.filter((seq) => !this.#known.has(seq)).reverse();
    }
    const seqs = this.#ahead.splice(-ENTRIES_AT_ONCE);
    if (seqs.length === 0) return true;
    for (const row of this.#rows.all(JSON.stringify(seqs))) this.#index(row);
    this.version += 1;
    if (this.#tail.count >= this.#columnsOfSegment && this.#table !== undefined) {
      this.#segments.push(this.#table.save(this.#tail));
      this.#tail = new SignatureColumns();
    }
    return true;
  }

  #index(row: SqlRow): void {
    const texts = textsOf(row, this.#bodies);
    if (texts === undefined) return;
    const seq = Number(row["seq"]);
    this.#tail.add({ seq, mark: markOf(String(row["marked"])) }, texts);
    this.#know(seq);
  }

  #know(seq: number): void {
    this.#known.add(seq);
    this.#highestKnown = Math.max(this.#highestKnown, seq);
  }

  /** Segments of an earlier process are kept as far as their entries still exist. */
  #open(): void {
    if (this.#state !== "closed") return;
    this.#state = "open";
    const table = (this.#table = SignatureTable.open(this.#path));
    for (const segment of table.segments()) this.#check(table, segment, (seq) => this.#know(seq));
  }

  #dropDead(): void {
    this.#removed = 0;
    this.#roundAt = 0;
    this.#ahead = [];
    const table = this.#table;
    const before = this.#segments;
    this.#segments = [];
    if (table !== undefined) for (const segment of before) this.#check(table, segment);
  }

  /** Keeps a segment unless most of its entries are gone or replaced; the remaining ones are indexed again. */
  #check(table: SignatureTable, segment: Segment, onKept?: (seq: number) => void): void {
    const entries = table.entries(segment);
    const marks = this.#marks.get(JSON.stringify(entries.map(({ seq }) => seq)))?.["marks"];
    const live = new Map<number, number>();
    for (const line of typeof marks === "string" ? marks.split("\n") : []) {
      const space = line.indexOf(" ");
      live.set(Number(line.slice(0, space)), markOf(line.slice(space + 1)));
    }
    const isTrue = entries.every(
      ({ seq, mark }) => (onKept === undefined || seq < this.#firstNewSeq) && (live.get(seq) ?? mark) === mark,
    );
    if (isTrue && live.size * 2 >= entries.length) {
      this.#segments.push(segment);
      if (onKept !== undefined) for (const { seq } of entries) onKept(seq);
      return;
    }
    table.remove(segment);
    this.version += 1;
    for (const { seq } of entries) this.#known.delete(seq);
  }

  /** Search works without the index: any failure disables it. */
  #guarded<T>(work: () => T): T | undefined {
    if (this.#state === "broken") return undefined;
    try {
      return work();
    } catch {
      this.#known.clear();
      this.#segments = [];
      this.#tail = new SignatureColumns();
      this.version += 1;
      this.close();
      return undefined;
    }
  }
}

/** Searched texts; undefined if a body is unreadable now. */
function textsOf(row: SqlRow, bodies: StoredBodies): string[] | undefined {
  let isMissing = false;
  const record = new RowRecord(row, "", {
    read: (seq, side, maxBytes) => {
      const bytes = bodies.read(seq, side, maxBytes);
      if (bytes === undefined && Number(row[`${side}_body_stored`]) > 0) isMissing = true;
      return bytes;
    },
  });
  const { url } = record;
  const readable = READABLE.url(url);
  const lines = readable === url ? [url] : [url, readable];
  for (const fields of [record.requestFields(), record.responseFields()]) {
    for (let index = 0; index + 1 < fields.length; index += 2) lines.push(`${fields[index]}: ${fields[index + 1]}`);
  }
  const texts = [inBothReadings(lines).join("\n"), record.requestText() ?? "", record.responseText() ?? ""];
  return isMissing ? undefined : texts.map((text) => text.toLowerCase());
}

/** FNV-1a, 32 bits. */
function markOf(text: string): number {
  let hash = 0x81_1c_9d_c5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01_00_01_93);
  return hash | 0;
}
