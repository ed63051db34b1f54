import { existsSync } from "node:fs";
import { inBothReadings, READABLE } from "@headworks/query-language";
import type { Database, SqlRow, Statement } from "../database.ts";
import { RECORD_COLUMNS, RECORD_HEAD_COLUMNS, RowRecord } from "../read/row-record.ts";
import type { StoredBodies } from "../read/stored-bodies.ts";
import type { RequiredText } from "./required-text.ts";
import { type Segment, SignatureTable } from "./signature-table.ts";
import { SignatureColumns } from "./text-signature.ts";

const PAGE_SEQS = 65_536;

/** A set of entry numbers: a bit for each number near others, nothing for the gaps that old sessions leave. */
class SeqBits {
  readonly #pages = new Map<number, Uint8Array>();

  has(seq: number): boolean {
    const page = this.#pages.get(Math.floor(seq / PAGE_SEQS));
    if (page === undefined) return false;
    const place = seq % PAGE_SEQS;
    return ((page[place >> 3] ?? 0) & (1 << (place & 7))) !== 0;
  }

  add(seq: number): void {
    const number = Math.floor(seq / PAGE_SEQS);
    let page = this.#pages.get(number);
    if (page === undefined) this.#pages.set(number, (page = new Uint8Array(PAGE_SEQS / 8)));
    const place = seq % PAGE_SEQS;
    page[place >> 3] = (page[place >> 3] ?? 0) | (1 << (place & 7));
  }

  delete(seq: number): void {
    const page = this.#pages.get(Math.floor(seq / PAGE_SEQS));
    const place = seq % PAGE_SEQS;
    if (page !== undefined) page[place >> 3] = (page[place >> 3] ?? 0) & ~(1 << (place & 7));
  }

  clear(): void {
    this.#pages.clear();
  }
}

/** Columns of a segment, at least: an entry is never split over two segments. */
const COLUMNS_OF_SEGMENT = 512;
/** Searches may look at so many entries that are not indexed, and so many entries may be removed, before it is worth acting. */
const WORTHWHILE_ENTRIES = 4096;
const NUMBERS_AT_ONCE = 4096;
const ENTRIES_AT_ONCE = 16;

const MARKED = "e.id || ' ' || e.request_body_stored || ' ' || e.response_body_stored";

/** Where the index is kept, and of what. */
export interface TextIndexSetup {
  readonly path: string;
  /** Numbers from here on are given in this run of the program, whatever an earlier run used them for. */
  readonly firstNewSeq: number;
  /** For tests: segments that are complete sooner. */
  readonly columnsOfSegment?: number;
}

/** What the index says about entries for one demand, until its `version` changes. */
export interface TextFinding {
  readonly version: number;
  /** False: the entry is not indexed, and nothing is known. */
  knows(seq: number): boolean;
  /** False for an entry that is known: the query does not hold. True may be wrong. */
  mayHold(seq: number): boolean;
}

/**
 * Signatures of the texts of stored entries (URL, fields, decoded bodies), so that a search need not look at each.
 * They are made from the stored rows, by whoever searches and afterwards, never while an entry is captured, and live in
 * a file of their own. What has no signature is simply looked at; without the file, or when it breaks, that is all.
 */
export class TextIndex {
  /** Changes when findings are void. */
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
  /** Numbers up to this one were looked at by the current round of indexing. */
  #roundAt = 0;
  #ahead: number[] = [];
  #missed = 0;
  #removed = 0;
  #newestAtLook = -1;

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

  /** Entries with numbers that were removed; `all` when whole sessions went. */
  noteRemoved(count: number, all: boolean): void {
    this.#removed += all ? WORTHWHILE_ENTRIES : count;
  }

  /** A search looked at entries that it found nothing about here. */
  noteMissed(count: number): void {
    this.#missed += count;
    if (this.#missed < WORTHWHILE_ENTRIES) return;
    this.#missed = 0;
    this.#isWanted = true;
  }

  /** Undefined when nothing is indexed. */
  find(demand: RequiredText): TextFinding | undefined {
    return this.#guarded(() => {
      if (!existsSync(this.#path) && this.#state === "closed") return undefined;
      this.#open();
      if (this.#segments.length === 0 && this.#tail.count === 0) return undefined;
      const mayHold = this.#evaluate(demand);
      return { version: this.version, knows: (seq) => this.#known.has(seq), mayHold };
    });
  }

  /** Searches asked for more to be indexed. */
  get isWanted(): boolean {
    return this.#isWanted && this.#state !== "broken";
  }

  /** To be called now and then: where texts were searched before, what came since is indexed once nothing arrives. */
  look(): void {
    this.#guarded(() => {
      if (this.#state === "closed" && !existsSync(this.#path)) return;
      const newest = Number(this.#newest.get()?.["seq"] ?? 0);
      const isQuiet = newest === this.#newestAtLook;
      this.#newestAtLook = newest;
      if (isQuiet && newest - this.#highestKnown > WORTHWHILE_ENTRIES) this.#isWanted = true;
    });
  }

  /** Indexes until the end of its turn. False: everything is indexed. */
  step(turnEndsMs: number): boolean {
    if (!this.isWanted) return false;
    this.#guarded(() => {
      this.#open();
      if (this.#removed >= WORTHWHILE_ENTRIES) this.#dropDead();
      do this.#isWanted = this.#indexSome();
      while (this.#isWanted && performance.now() < turnEndsMs);
    });
    return this.isWanted;
  }

  #evaluate(demand: RequiredText): (seq: number) => boolean {
    if (demand.kind !== "rows") {
      const terms = demand.terms.map((term) => this.#evaluate(term));
      return demand.kind === "all"
        ? (seq) => terms.every((mayHold) => mayHold(seq))
        : (seq) => terms.some((mayHold) => mayHold(seq));
    }
    const found = new SeqBits();
    for (const segment of this.#segments) this.#table?.find(segment, demand.rows, (seq) => found.add(seq));
    this.#tail.find(demand.rows, ({ first, last }) => {
      for (let place = first; place <= last; place += 1) found.add(this.#tail.entries[place]?.seq ?? 0);
    });
    return (seq) => found.has(seq);
  }

  /** False: there is nothing left. */
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

  /** What an earlier run left is believed as far as it is about the entries that are there now. */
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

  /** Keeps a segment, unless most of its entries are gone or it speaks of others: those that are left are indexed anew. */
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

  /** Searching works without an index: whatever goes wrong with it only makes it disappear. */
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

/** All texts that a free search looks into; undefined when a body cannot be read now. */
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
