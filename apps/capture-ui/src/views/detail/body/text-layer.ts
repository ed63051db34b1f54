import { ByteStore } from "./byte-store.ts";
import { RowIndex } from "./row-index.ts";
import { StringStates } from "./string-states.ts";
import type { SearchResult } from "./text-search.ts";

/** A row as the windowed viewer shows it. */
export interface TextRow {
  readonly text: string;
  readonly line: number;
  /** The row carries on the line above it. */
  readonly continued: boolean;
  /** The row begins inside a JSON string that began in a row above. */
  readonly inString: boolean;
}

/** A match with its place on the screen; columns are positions in the row's text. */
export interface RowMatch {
  readonly row: number;
  readonly startColumn: number;
  /** Past the row's end if the match goes on in the next row. */
  readonly endColumn: number;
}

/** Rows are cut here when lines are not wrapped: longer ones make scrolling slow in every browser. */
const UNWRAPPED_ROW_BYTES = 2000;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Text that grows while it arrives, as rows: the body as sent, or its laid-out form. */
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

  /** True once something did not fit. */
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

  /** Lays the rows out anew; null for lines that are not wrapped. */
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

  /** Where matches of a search lie on the screen. */
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

  /** The whole as one string, or null above `limitBytes`. */
  text(limitBytes: number): string | null {
    return this.#store.length > limitBytes ? null : decoder.decode(this.bytes);
  }
}
