import { DynamicTable, ENTRY_OVERHEAD_BYTES, STATIC_SIZE, STATIC_TABLE, TABLE_BYTES } from "./tables.ts";
import { HpackError, readHuffman } from "./huffman.ts";

/** Limits of one field section. */
export interface SectionLimits {
  readonly maxFields: number;
  /** Sum of names, values and 32 bytes per field (RFC 9113, 6.5.2). */
  readonly listBytes: number;
}

/** A request has up to five: method, scheme, authority, path, protocol. */
const MAX_PSEUDO_FIELDS = 5;

/**
 * Section limits that correspond to HTTP/1.1 limits of `fieldCount` fields and `headBytes` bytes. `counted` additional
 * fields are read, so that an error message can state their number.
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

/** After several changes between two blocks, the minimum and the final size (RFC 7541, 4.2). */
const MAX_TABLE_SIZES = 2;

/** Four bytes after the prefix of an integer give 28 bits: enough for any block, without overflow. */
const MAX_SHIFT = 21;

/** By index; index 0 is unused. */
const STATIC_NAMES: readonly string[] = ["", ...STATIC_TABLE.map(([name]) => name)];
const STATIC_VALUES: readonly string[] = ["", ...STATIC_TABLE.map(([, value]) => value)];

/** Decodes the field blocks of one direction of a connection (RFC 7541) and maintains its dynamic table. */
export class HpackDecoder {
  readonly #maxTableBytes: number;
  #tableBytes: number;
  readonly #table = new DynamicTable();
  /** Offset in the current block, and the last field read. */
  #at = 0;
  #name = "";
  #value = "";

  /** `tableBytes`: our SETTINGS_HEADER_TABLE_SIZE, the limit for the peer's encoder. */
  constructor(tableBytes: number = TABLE_BYTES) {
    this.#maxTableBytes = tableBytes;
    // The encoder announces a table larger than the default (RFC 9113, 4.3.1).
    this.#tableBytes = Math.min(tableBytes, TABLE_BYTES);
  }

  /**
   * Appends the fields of a block to `into`, as `[name0, value0, …]`. False: they exceeded the limits; the excess was
   * decoded to keep the table in sync, and dropped.
   * @throws HpackError for an invalid block; later blocks cannot be decoded either
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
      else if (first >= TABLE_SIZE) throw new HpackError("A table size update is not at the start of its block");
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
      if (bytes > this.#maxTableBytes) throw new HpackError("A table size exceeds the allowed maximum");
      this.#tableBytes = bytes;
      this.#evict(bytes);
    }
  }

  /** A literal with incremental indexing (RFC 7541, 6.2.1). */
  #readIndexedLiteral(block: Buffer): void {
    this.#readLiteral(block, this.#integer(block, 0x3f));
    const sizeBytes = this.#name.length + this.#value.length + ENTRY_OVERHEAD_BYTES;
    // An entry larger than the table empties it, which is not an error (RFC 7541, 4.4).
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

  /** A prefixed integer; `mask` covers the prefix and is its maximum value (RFC 7541, 5.1). */
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

  /** A string literal (RFC 7541, 5.2). */
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
