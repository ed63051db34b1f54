import { rmSync } from "node:fs";
import { openDatabase, SEARCH_MIGRATIONS } from "../database.ts";
import type { Database, Statement } from "../database.ts";
import { SIGNATURE_ROWS } from "./text-signature.ts";
import type { IndexedEntry, SignatureColumns } from "./text-signature.ts";

const ROWS_OF_SLICE = 32;
const SLICES_OF_SEGMENT = SIGNATURE_ROWS / ROWS_OF_SLICE;

/** Columns of a finished segment; its bits stay on disk. */
export interface Segment {
  readonly number: number;
  readonly columns: number;
}

/** Finished signatures in a file of their own, which may be lost at any time. */
export class SignatureTable {
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
      for (let place = spans[column * 2] ?? 0; place <= last; place += 1) onSeq(seqs[place] ?? 0);
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
