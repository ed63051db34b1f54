/**
 * Rows of the bit matrix. A piece of a text, three or four UTF-16 units, sets the bit of the row it is hashed to. Nearly
 * every piece of three stands somewhere in a longer text; those of four tell texts apart, those of three keep short
 * needles from being found by chance.
 */
export const SIGNATURE_ROWS = 16_384;
const ROW_BITS = 14;
/** So many bits of a column may be set; then it says too little about more text. */
const FULL_COLUMN = 6500;
/** Entries with little text share a column; each candidate column costs a look at all its entries. */
const ENTRIES_OF_COLUMN = 16;
/** A searched text is represented by the pieces that end at its first places. Places so near always stand in one column. */
const PLACES_OF_NEEDLE = 32;

/** Each unit counts in full, so that letters beyond ASCII are not taken for others. */
function sumOfThree(first: number, second: number, third: number): number {
  return Math.imul(first, 0x9e_37_79_b1) + Math.imul(second, 0x85_eb_ca_77) + Math.imul(third, 0xc2_b2_ae_3d);
}

/** The row of three units. */
function rowOfThree(sum: number): number {
  return (sum | 0) >>> (32 - ROW_BITS);
}

/** The row of the three with the unit before them. */
function rowOfFour(sum: number, before: number): number {
  return ((sum + Math.imul(before, 0x27_d4_eb_2f) + 0x16_56_67_b1) | 0) >>> (32 - ROW_BITS);
}

/**
 * The rows that are set wherever a text occurs, which must be folded as the indexed texts were; undefined for a text
 * too short to say anything.
 */
export function rowsOfNeedle(folded: string): number[] | undefined {
  if (folded.length < 3) return undefined;
  const rows = new Set<number>();
  for (let at = 2; at < Math.min(folded.length, PLACES_OF_NEEDLE + 2); at += 1) {
    const sum = sumOfThree(folded.charCodeAt(at - 2), folded.charCodeAt(at - 1), folded.charCodeAt(at));
    rows.add(rowOfThree(sum));
    if (at >= 3) rows.add(rowOfFour(sum, folded.charCodeAt(at - 3)));
  }
  return [...rows];
}

/** An entry under its number, with a mark that another entry of that number would not have. */
export interface IndexedEntry {
  readonly seq: number;
  readonly mark: number;
}

/** A range of columns' entries as places in the list of entries. */
export interface ColumnSpan {
  readonly first: number;
  last: number;
}

/**
 * Signatures in the making, column by column. A column tells of a few small entries or of a part of a large one, so
 * that all columns are about equally full whatever the sizes of the texts.
 */
export class SignatureColumns {
  readonly entries: IndexedEntry[] = [];
  readonly spans: ColumnSpan[] = [];
  readonly #columns: Uint8Array[] = [];
  #current = new Uint8Array(0);
  #isSet = 0;

  get count(): number {
    return this.#columns.length;
  }

  /** Takes an entry with its texts, lower-cased as the query language does. */
  add(entry: IndexedEntry, foldedTexts: readonly string[]): void {
    const place = this.entries.length;
    this.entries.push(entry);
    const span = this.spans.at(-1);
    if (span === undefined || this.#isSet >= FULL_COLUMN || span.last - span.first + 1 >= ENTRIES_OF_COLUMN) {
      this.#open(place);
    } else span.last = place;
    for (const text of foldedTexts) this.#addText(text, place);
  }

  /** Calls back with each column's span in which all rows are set. */
  find(rows: readonly number[], onSpan: (span: ColumnSpan) => void): void {
    for (const [index, column] of this.#columns.entries()) {
      const span = this.spans[index];
      if (span !== undefined && rows.every((row) => ((column[row >> 3] ?? 0) & (1 << (row & 7))) !== 0)) onSpan(span);
    }
  }

  /** The matrix by rows: `strideBytes` for each row, a bit for each column. */
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

  #open(place: number): void {
    this.#current = new Uint8Array(SIGNATURE_ROWS / 8);
    this.#isSet = 0;
    this.#columns.push(this.#current);
    this.spans.push({ first: place, last: place });
  }

  #addText(text: string, place: number): void {
    for (let at = 2; at < text.length; at += 1) {
      const sum = sumOfThree(text.charCodeAt(at - 2), text.charCodeAt(at - 1), text.charCodeAt(at));
      const isThreeNew = this.#set(rowOfThree(sum));
      const isNew = at >= 3 && this.#set(rowOfFour(sum, text.charCodeAt(at - 3)));
      if ((!isThreeNew && !isNew) || this.#isSet < FULL_COLUMN || at === text.length - 1) continue;
      this.#open(place);
      // A needle may begin in the full column: the new one has to hold it as a whole.
      at = Math.max(1, at - PLACES_OF_NEEDLE + 1);
    }
  }

  /** False: it was set before. */
  #set(row: number): boolean {
    const octet = this.#current[row >> 3] ?? 0;
    const mask = 1 << (row & 7);
    if ((octet & mask) !== 0) return false;
    this.#current[row >> 3] = octet | mask;
    this.#isSet += 1;
    return true;
  }
}
