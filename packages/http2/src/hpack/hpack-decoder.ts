import { DynamicTable, ENTRY_OVERHEAD_BYTES, STATIC_SIZE, STATIC_TABLE, TABLE_BYTES } from "./tables.ts";
import { HpackError, readHuffman } from "./huffman.ts";

/** What of one field section is taken. */
export interface SectionLimits {
  readonly maxFields: number;
  /** Names and values, and 32 for each field (RFC 9113, 6.5.2). */
  readonly listBytes: number;
}

/** Of requests and answers at most: method, scheme, authority, path, protocol. */
const MAX_PSEUDO_FIELDS = 5;

/**
 * The limits of a section for a message that may have `fieldCount` fields and `headBytes` bytes in HTTP/1.1; `counted` fields
 * more are read, so that a refusal can say how many they were.
 */
export function sectionLimits(
  { headBytes, fieldCount }: { readonly headBytes: number; readonly fieldCount: number },
  counted = 0,
): SectionLimits {
  const maxFields = fieldCount + counted + MAX_PSEUDO_FIELDS;
  return { maxFields, listBytes: headBytes + ENTRY_OVERHEAD_BYTES * maxFields };
}

const INDEXED = 0x80;
const WITH_INDEXING = 0x40;
const TABLE_SIZE = 0x20;
const HUFFMAN = 0x80;

/** The smallest and the last size, if there were several between two blocks (RFC 7541, 4.2). */
const MAX_TABLE_SIZES = 2;

/** Four bytes behind the prefix of a number are 28 bits: more than any block needs, and far from an overflow. */
const MAX_SHIFT = 21;

/** By index; there is no entry 0. */
const STATIC_NAMES: readonly string[] = ["", ...STATIC_TABLE.map(([name]) => name)];
const STATIC_VALUES: readonly string[] = ["", ...STATIC_TABLE.map(([, value]) => value)];

/** Decodes the field blocks of one direction of a connection (RFC 7541), and keeps the table they refer to. */
export class HpackDecoder {
  readonly #maxTableBytes: number;
  #tableBytes: number;
  readonly #table = new DynamicTable();
  /** Where the reading of the block is, and the field it read last. */
  #at = 0;
  #name = "";
  #value = "";

  /** `tableBytes` is what our SETTINGS_HEADER_TABLE_SIZE allows the peer's encoder. */
  constructor(tableBytes: number = TABLE_BYTES) {
    this.#maxTableBytes = tableBytes;
    // A larger table than the usual one is the encoder's choice, which it announces (RFC 9113, 4.3.1).
    this.#tableBytes = Math.min(tableBytes, TABLE_BYTES);
  }

  /**
   * Appends the fields of a block to `into`, as `[name0, value0, …]`. False: they were more than the limits allow; what
   * was beyond them was read for the table's sake, and dropped.
   * @throws HpackError for a block that cannot be decoded; later ones cannot be either
   */
  decode(block: Buffer, into: string[], limits: SectionLimits): boolean {
    this.#at = 0;
    this.#readTableSizes(block);
    let leftBytes = limits.listBytes;
    let leftFields = limits.maxFields;
    while (this.#at < block.length) {
      const first = block[this.#at] ?? 0;
      if (first >= INDEXED) this.#lookUp(this.#integer(block, 0x7f));
      else if (first >= WITH_INDEXING) this.#readIndexedLiteral(block);
      else if (first >= TABLE_SIZE) throw new HpackError("A table size is not at the begin of its block");
      else this.#readLiteral(block, this.#integer(block, 0x0f));
      leftBytes -= this.#name.length + this.#value.length + ENTRY_OVERHEAD_BYTES;
      leftFields--;
      if (leftBytes >= 0 && leftFields >= 0) into.push(this.#name, this.#value);
    }
    return leftBytes >= 0 && leftFields >= 0;
  }

  /** Table size updates (RFC 7541, 6.3). */
  #readTableSizes(block: Buffer): void {
    for (let count = 0; count < MAX_TABLE_SIZES; count++) {
      const first = block[this.#at] ?? 0;
      if (first < TABLE_SIZE || first >= WITH_INDEXING) return;
      const bytes = this.#integer(block, 0x1f);
      if (bytes > this.#maxTableBytes) throw new HpackError("A table size is above what was allowed");
      this.#tableBytes = bytes;
      this.#evict(bytes);
    }
  }

  /** A literal that enters the table (RFC 7541, 6.2.1). */
  #readIndexedLiteral(block: Buffer): void {
    this.#readLiteral(block, this.#integer(block, 0x3f));
    const sizeBytes = this.#name.length + this.#value.length + ENTRY_OVERHEAD_BYTES;
    // One that is larger than the table leaves it empty, and is no error (RFC 7541, 4.4).
    this.#evict(this.#tableBytes - sizeBytes);
    if (sizeBytes <= this.#tableBytes) this.#table.add(this.#name, this.#value);
  }

  #readLiteral(block: Buffer, nameIndex: number): void {
    if (nameIndex === 0) this.#name = this.#text(block);
    else this.#lookUp(nameIndex);
    this.#value = this.#text(block);
  }

  #lookUp(index: number): void {
    if (index <= STATIC_SIZE) {
      if (index === 0) throw new HpackError("A field has the index 0");
      this.#name = STATIC_NAMES[index] ?? "";
      this.#value = STATIC_VALUES[index] ?? "";
      return;
    }
    const table = this.#table;
    const number = table.next - (index - STATIC_SIZE);
    if (number < table.oldest) throw new HpackError("A field has an index beyond the tables");
    this.#name = table.nameOf(number);
    this.#value = table.valueOf(number);
  }

  #evict(downToBytes: number): void {
    const table = this.#table;
    while (table.usedBytes > downToBytes && table.oldest < table.next) table.dropOldest();
  }

  /** A number behind a prefix, whose mask is also its largest value (RFC 7541, 5.1). */
  #integer(block: Buffer, mask: number): number {
    let value = (block[this.#at++] ?? 0) & mask;
    if (value < mask) return value;
    for (let shift = 0; shift <= MAX_SHIFT; shift += 7) {
      if (this.#at >= block.length) throw new HpackError("A block ends within a number");
      const byte = block[this.#at++] ?? 0;
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new HpackError("A number is too large");
  }

  /** A name or a value (RFC 7541, 5.2). */
  #text(block: Buffer): string {
    if (this.#at >= block.length) throw new HpackError("A block ends within a field");
    const first = block[this.#at] ?? 0;
    const sizeBytes = this.#integer(block, 0x7f);
    const start = this.#at;
    const end = start + sizeBytes;
    if (end > block.length) throw new HpackError("A block ends within a text");
    this.#at = end;
    return first >= HUFFMAN ? readHuffman(block, start, end) : block.toString("latin1", start, end);
  }
}
