/**
 * Rows of the bit matrix. Every trigram and 4-gram of UTF-16 units sets the bit of its hashed row. Long texts contain
 * nearly every trigram; 4-grams distinguish texts, trigrams reduce false positives of short needles.
 */
export const SIGNATURE_ROWS = 16_384;
const ROW_BITS = 14;
/** Maximum bits of a column; beyond it says too little. */
const FULL_COLUMN = 6500;
/** Small entries share a column; a candidate column costs a check of all its entries. */
const ENTRIES_OF_COLUMN = 16;
/** A needle is represented by the n-grams that end at its first positions. All are in one column. */
const MAX_NEEDLE_POSITIONS = 32;

/** Full code units, so that non-ASCII letters stay distinct. */
function sumOfThree(first: number, second: number, third: number): number {
  return Math.imul(first, 0x9e_37_79_b1) + Math.imul(second, 0x85_eb_ca_77) + Math.imul(third, 0xc2_b2_ae_3d);
}

function rowOfThree(sum: number): number {
  return (sum | 0) >>> (32 - ROW_BITS);
}

function rowOfFour(sum: number, before: number): number {
  return ((sum + Math.imul(before, 0x27_d4_eb_2f) + 0x16_56_67_b1) | 0) >>> (32 - ROW_BITS);
}

/**
 * Rows set wherever the text occurs; it must be folded like the indexed texts. Undefined for a text that is too short.
 */
export function rowsOfNeedle(folded: string): number[] | undefined {
  if (folded.length < 3) return undefined;
  const rows = new Set<number>();
  for (let at = 2; at < Math.min(folded.length, MAX_NEEDLE_POSITIONS + 2); at += 1) {
    const sum = sumOfThree(folded.charCodeAt(at - 2), folded.charCodeAt(at - 1), folded.charCodeAt(at));
    rows.add(rowOfThree(sum));
    if (at >= 3) rows.add(rowOfFour(sum, folded.charCodeAt(at - 3)));
  }
  return [...rows];
}

/** `mark` distinguishes entries that reuse a number. */
export interface IndexedEntry {
  readonly seq: number;
  readonly mark: number;
}

/** Index range in the list of entries. */
export interface ColumnSpan {
  readonly first: number;
  last: number;
}

/** Builds signatures by columns: a few small entries or part of a large one, about equally full. */
export class SignatureColumns {
  readonly entries: IndexedEntry[] = [];
  readonly spans: ColumnSpan[] = [];
  readonly #columns: Uint8Array[] = [];
  #current = new Uint8Array(0);
  #isSet = 0;

  get count(): number {
    return this.#columns.length;
  }

  /** Texts must be lower-cased as the query language does. */
  add(entry: IndexedEntry, foldedTexts: readonly string[]): void {
    const index = this.entries.length;
    this.entries.push(entry);
    const span = this.spans.at(-1);
    if (span === undefined || this.#isSet >= FULL_COLUMN || span.last - span.first + 1 >= ENTRIES_OF_COLUMN) {
      this.#open(index);
    } else span.last = index;
    for (const text of foldedTexts) this.#addText(text, index);
  }

  /** Calls back with the span of each column in which all rows are set. */
  find(rows: readonly number[], onSpan: (span: ColumnSpan) => void): void {
    for (const [index, column] of this.#columns.entries()) {
      const span = this.spans[index];
      if (span !== undefined && rows.every((row) => ((column[row >> 3] ?? 0) & (1 << (row & 7))) !== 0)) onSpan(span);
    }
  }

  /** By rows: `strideBytes` per row, one bit per column. */
  matrix(): { readonly bits: Uint8Array; readonly strideBytes: number } {
    const strideBytes = Math.ceil(this.#columns.length / 8);
    const bits = new Uint8Array(SIGNATURE_ROWS * strideBytes);
    for (const [index, column] of this.#columns.entries()) {
      const mask = 1 << (index & 7);
      const offset = index >> 3;
      for (let byte = 0; byte < column.length; byte += 1) {
        const octet = column[byte] ?? 0;
        for (let bit = 0; octet >> bit !== 0; bit += 1) {
          if (((octet >> bit) & 1) === 0) continue;
          const at = (byte * 8 + bit) * strideBytes + offset;
          bits[at] = (bits[at] ?? 0) | mask;
        }
      }
    }
    return { bits, strideBytes };
  }

  #open(index: number): void {
    this.#current = new Uint8Array(SIGNATURE_ROWS / 8);
    this.#isSet = 0;
    this.#columns.push(this.#current);
    this.spans.push({ first: index, last: index });
  }

  #addText(text: string, index: number): void {
    for (let at = 2; at < text.length; at += 1) {
      const sum = sumOfThree(text.charCodeAt(at - 2), text.charCodeAt(at - 1), text.charCodeAt(at));
      const isThreeNew = this.#set(rowOfThree(sum));
      const isNew = at >= 3 && this.#set(rowOfFour(sum, text.charCodeAt(at - 3)));
      if ((!isThreeNew && !isNew) || this.#isSet < FULL_COLUMN || at === text.length - 1) continue;
      this.#open(index);
      // A needle may start in the full column: overlap so that one column holds it whole.
      at = Math.max(1, at - MAX_NEEDLE_POSITIONS + 1);
    }
  }

  /** False if it was set. */
  #set(row: number): boolean {
    const octet = this.#current[row >> 3] ?? 0;
    const mask = 1 << (row & 7);
    if ((octet & mask) !== 0) return false;
    this.#current[row >> 3] = octet | mask;
    this.#isSet += 1;
    return true;
  }
}
