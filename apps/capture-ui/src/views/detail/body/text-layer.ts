import { ByteStore, NumberList } from "./byte-store.ts";
import type { SearchResult } from "./text-search.ts";

const NEWLINE = 10;
const RETURN = 13;

/**
 * Splits text that arrives in chunks into rows of at most `maxRowBytes` bytes, never inside a UTF-8 sequence. Longer
 * lines take several rows, so that a body of one long line scrolls like any other.
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

  push(chunk: Uint8Array): void {
    const base = this.#length;
    for (let index = 0; index < chunk.length; index++) {
      const byte = chunk[index] ?? 0;
      const offset = base + index;
      // A row may exceed its width by four bytes rather than split a character.
      if (
        offset - this.#rowStart >= this.maxRowBytes &&
        byte !== NEWLINE &&
        byte !== RETURN &&
        (byte & 0xc0) !== 0x80
      ) {
        this.#open(offset);
      } else if (offset - this.#rowStart >= this.maxRowBytes + 4 && byte !== NEWLINE) {
        // Not UTF-8: any position is acceptable.
        this.#open(offset);
      }
      if (byte === NEWLINE) {
        this.#line++;
        this.#open(offset + 1);
      }
    }
    this.#length += chunk.length;
  }

  /** The rows `[from, to)`; `bytes` is the pushed text. */
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

  rowOf(offset: number): number {
    return Math.max(0, this.#starts.floorIndex(offset));
  }

  /** The first row of the line containing a byte. */
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

/** A row as the windowed viewer shows it. */
export interface TextRow {
  readonly text: string;
  readonly line: number;
  /** The row continues the previous line. */
  readonly continued: boolean;
  /** The row starts inside a JSON string. */
  readonly inString: boolean;
}

/** A match on screen; columns are positions in the row's text. */
export interface RowMatch {
  readonly row: number;
  readonly startColumn: number;
  /** Past the row's end if the match continues in the next row. */
  readonly endColumn: number;
}

/** Row limit without wrapping: longer rows make scrolling slow in every browser. */
const UNWRAPPED_ROW_BYTES = 2000;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Growing text as rows: the body as sent, or formatted. */
export class TextLayer {
  readonly #store: ByteStore;
  readonly #isJson: boolean;
  readonly #states = new StringStates();
  #index = new RowIndex(UNWRAPPED_ROW_BYTES);

  constructor(limitBytes: number, isJson: boolean) {
    this.#store = new ByteStore(limitBytes);
    this.#isJson = isJson;
  }

  get rows(): number {
    return this.#index.length;
  }

  get lines(): number {
    return this.#index.lines;
  }

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#store.view();
  }

  get cut(): boolean {
    return this.#store.full;
  }

  append(chunk: Uint8Array): void {
    const before = this.#store.length;
    this.#store.append(chunk);
    const added = this.#store.view(before);
    this.#index.push(added);
    if (this.#isJson) this.#states.push(added);
  }

  /** Splits the rows again; null disables wrapping. */
  wrapAt(columns: number | null): void {
    this.#index = new RowIndex(columns === null ? UNWRAPPED_ROW_BYTES : Math.min(UNWRAPPED_ROW_BYTES, columns));
    this.#index.push(this.bytes);
  }

  /** The rows `[from, to)`. */
  window(from: number, to: number): TextRow[] {
    const bytes = this.bytes;
    return this.#index.ranges(from, to, bytes).map(({ start, end, line, continued }) => ({
      text: decoder.decode(bytes.subarray(start, end)),
      line,
      continued,
      inString: this.#isJson && continued && this.#states.insideAt(bytes, start),
    }));
  }

  /** Positions of search matches on screen. */
  locate(result: SearchResult): RowMatch[] {
    const bytes = this.bytes;
    return result.matches.map(({ start, end }) => {
      const row = this.#index.rowOf(start);
      const rowStart = this.#index.ranges(row, row + 1, bytes)[0]?.start ?? 0;
      const columns = (to: number) => decoder.decode(bytes.subarray(rowStart, to)).length;
      const startColumn = columns(start);
      return { row, startColumn, endColumn: startColumn + decoder.decode(bytes.subarray(start, end)).length };
    });
  }

  /** The whole text as one string, or null above `limitBytes`. */
  text(limitBytes: number): string | null {
    return this.#store.length > limitBytes ? null : decoder.decode(this.bytes);
  }
}

/** One row: `[start, end)` in bytes, without the line break. */
interface RowRange {
  readonly start: number;
  readonly end: number;
  /** Line number from 1. */
  readonly line: number;
  /** The row continues a line of a previous row. */
  readonly continued: boolean;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BLOCK_BYTES = 65_536;

/** 0 outside a string, 1 inside, 2 inside after a backslash. */
type State = 0 | 1 | 2;

/**
 * Whether any byte of a JSON text is inside a string, without reading from the beginning: the state is stored per
 * block. A line break ends a string, since JSON forbids them inside.
 */
export class StringStates {
  readonly #blocks: State[] = [];
  #state: State = 0;
  #length = 0;

  push(chunk: Uint8Array): void {
    for (let index = 0; index < chunk.length; index++) {
      if (this.#length % BLOCK_BYTES === 0) this.#blocks.push(this.#state);
      this.#length++;
      this.#state = step(this.#state, chunk[index] ?? 0);
    }
  }

  /** Whether the byte at `offset` is inside a string. */
  insideAt(bytes: Uint8Array, offset: number): boolean {
    const block = Math.floor(offset / BLOCK_BYTES);
    let state = this.#blocks[block] ?? this.#state;
    for (let at = block * BLOCK_BYTES; at < Math.min(offset, this.#length); at++) state = step(state, bytes[at] ?? 0);
    return state !== 0;
  }
}

function step(state: State, byte: number): State {
  if (byte === NEWLINE) return 0;
  if (state === 2) return 1;
  if (byte === QUOTE) return state === 0 ? 1 : 0;
  return state === 1 && byte === BACKSLASH ? 2 : state;
}
