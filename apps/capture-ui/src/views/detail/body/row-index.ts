import { NumberList } from "./byte-store.ts";

const NEWLINE = 10;
const RETURN = 13;

/** One row on the screen: `[start, end)` in bytes, without the line break. */
export interface RowRange {
  readonly start: number;
  readonly end: number;
  /** Number of the line from 1. */
  readonly line: number;
  /** True if the row carries on a line that began in a row above. */
  readonly continued: boolean;
}

/**
 * Cuts text that arrives in pieces into rows of at most `maxRowBytes` bytes, never inside a UTF-8 sequence. A line longer
 * than that takes several rows, so that a body of one endless line can be scrolled like any other.
 */
export class RowIndex {
  readonly maxRowBytes: number;
  readonly #starts = new NumberList();
  readonly #lines = new NumberList();
  #length = 0;
  #rowStart = 0;
  #line = 1;

  constructor(maxRowBytes: number) {
    this.maxRowBytes = Math.max(8, maxRowBytes);
    this.#open(0);
  }

  /** Number of rows; a text that ends in a line break has an empty last row. */
  get length(): number {
    return this.#starts.length;
  }

  get lines(): number {
    return this.#line;
  }

  /** Takes the next piece. */
  push(chunk: Uint8Array): void {
    const base = this.#length;
    for (let index = 0; index < chunk.length; index++) {
      const byte = chunk[index] ?? 0;
      const offset = base + index;
      // A row may be four bytes over its width rather than split a character.
      if (
        offset - this.#rowStart >= this.maxRowBytes &&
        byte !== NEWLINE &&
        byte !== RETURN &&
        (byte & 0xc0) !== 0x80
      ) {
        this.#open(offset);
      } else if (offset - this.#rowStart >= this.maxRowBytes + 4 && byte !== NEWLINE) {
        // Not UTF-8 at all: any place is as good as another.
        this.#open(offset);
      }
      if (byte === NEWLINE) {
        this.#line++;
        this.#open(offset + 1);
      }
    }
    this.#length += chunk.length;
  }

  /** The rows `[from, to)`; `bytes` is the text of which the pieces were pushed. */
  ranges(from: number, to: number, bytes: Uint8Array): RowRange[] {
    const found: RowRange[] = [];
    for (let row = Math.max(0, from); row < Math.min(to, this.length); row++) {
      const start = this.#starts.at(row);
      let end = row + 1 < this.length ? this.#starts.at(row + 1) : this.#length;
      if (end > start && bytes[end - 1] === NEWLINE) end--;
      if (end > start && bytes[end - 1] === RETURN) end--;
      found.push({ start, end, line: this.#lines.at(row), continued: start > 0 && bytes[start - 1] !== NEWLINE });
    }
    return found;
  }

  /** The row that holds a byte. */
  rowOf(offset: number): number {
    return Math.max(0, this.#starts.floorIndex(offset));
  }

  /** The first row of the line that holds a byte. */
  lineStart(row: number): number {
    const line = this.#lines.at(row);
    let low = 0;
    let high = row;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#lines.at(middle) < line) low = middle + 1;
      else high = middle;
    }
    return this.#starts.at(low);
  }

  #open(offset: number): void {
    this.#starts.push(offset);
    this.#lines.push(this.#line);
    this.#rowStart = offset;
  }
}
