import { ownText } from "@headworks/http1";
import { DynamicTable, ENTRY_OVERHEAD_BYTES, STATIC_SIZE, STATIC_TABLE, TABLE_BYTES } from "./tables.ts";
import { huffmanSizeBytes, writeHuffman } from "./huffman.ts";

/** Added to the table: the next section is likely to repeat it. */
const ADDED = 0;

/** Not added, since it would only evict other entries. */
const NOT_ADDED = 1;

/** Never indexed, here or by any intermediary (RFC 7541, 7.1.3). */
const NEVER_ADDED = 2;

/** A cookie, added only if it is too long to be guessed. */
const COOKIE = 3;

/**
 * Fields whose value differs in nearly every message. `date` is not among them: all responses of the same second share
 * it.
 */
const VARYING = [
  ":path",
  "age",
  "content-length",
  "content-range",
  "etag",
  "if-modified-since",
  "if-none-match",
  "last-modified",
  "location",
  "set-cookie",
  "traceparent",
  "x-request-id",
];

/** An attacker who can add fields could guess these values from the size of the compressed block. */
const SECRET = ["authorization", "proxy-authorization"];

/** The names of the static table, and names whose values are not added to the dynamic table. */
const KNOWN_NAMES: ReadonlyMap<string, Readonly<KnownName>> = knownNames();

/** Representation types (RFC 7541, 6). */
const INDEXED = 0x80;
const WITH_INDEXING = 0x40;
const WITHOUT_INDEXING = 0x00;
const NEVER_INDEXED = 0x10;
const TABLE_SIZE = 0x20;
const HUFFMAN = 0x80;

/** Shorter cookies can be guessed. */
const LONG_COOKIE = 20;

/** An entry that takes a larger share of the table would evict all useful ones. */
const MAX_TABLE_SHARE = 0.75;
const FIRST_SCRATCH_BYTES = 8192;
const MAX_SCRATCH_BYTES = 65_536;
/** A 32-bit integer with its prefix. */
const MAX_INTEGER_BYTES = 6;
/** Index, name length and value length. */
const MAX_FIELD_INTEGERS = 3;

/** Shared by all encoders; a block is valid until the next call. */
let scratch: Buffer = Buffer.allocUnsafeSlow(FIRST_SCRATCH_BYTES);

/** The dynamic table's entries with the same name. */
interface TableName {
  /** Number of the newest entry, which is evicted last. */
  newest: number;
  /** Entry numbers by value. */
  readonly values: Map<string, number>;
}

/** Encodes the field blocks of one direction of a connection (RFC 7541) and maintains its dynamic table. */
export class HpackEncoder {
  #tableBytes = TABLE_BYTES;
  /** Minimum size since the last block, if a change must be announced. */
  #minBytes: number | undefined;
  readonly #table = new DynamicTable();
  readonly #names = new Map<string, TableName>();

  /**
   * Applies the peer's SETTINGS_HEADER_TABLE_SIZE, of which at most 4096 bytes are used. The next block announces the
   * change and the minimum size in between (RFC 7541, 4.2).
   */
  limitTable(bytes: number): void {
    const tableBytes = Math.min(bytes, TABLE_BYTES);
    if (tableBytes === this.#tableBytes) return;
    this.#tableBytes = tableBytes;
    this.#minBytes = Math.min(this.#minBytes ?? tableBytes, tableBytes);
    this.#evict(tableBytes);
  }

  /**
   * Encodes a section `[name0, value0, …]`. The caller ensures that names are in lower case and values are latin1 without
   * CR, LF and NUL. The block lies in shared memory and is valid until the next call of any encoder.
   */
  encode(section: readonly string[]): Buffer {
    let block = scratch;
    let at = this.#minBytes === undefined ? 0 : this.#announceSize(block, this.#minBytes);
    for (let index = 0; index < section.length; index += 2) {
      const name = section[index] ?? "";
      const value = section[index + 1] ?? "";
      const needed = at + name.length + value.length + MAX_FIELD_INTEGERS * MAX_INTEGER_BYTES;
      if (needed > block.length) block = enlarged(block, at, needed);
      at = this.#writeField(block, at, name, value);
    }
    return block.subarray(0, at);
  }

  #announceSize(block: Buffer, minBytes: number): number {
    this.#minBytes = undefined;
    let at = 0;
    if (minBytes < this.#tableBytes) at = writeInteger(block, at, TABLE_SIZE, 0x1f, minBytes);
    return writeInteger(block, at, TABLE_SIZE, 0x1f, this.#tableBytes);
  }

  #writeField(block: Buffer, at: number, name: string, value: string): number {
    const known = KNOWN_NAMES.get(name);
    const whole = known?.values?.get(value);
    if (whole !== undefined) return writeInteger(block, at, INDEXED, 0x7f, whole);
    const indexing = known === undefined ? ADDED : known.indexing;
    const staticIndex = known === undefined ? 0 : known.index;
    // Values that are never added need no lookup.
    if (indexing === NOT_ADDED) return writeLiteral(block, at, WITHOUT_INDEXING, staticIndex, name, value);
    if (indexing === NEVER_ADDED || (indexing === COOKIE && value.length < LONG_COOKIE)) {
      return writeLiteral(block, at, NEVER_INDEXED, staticIndex, name, value);
    }
    const kept = this.#names.get(name);
    const number = kept?.values.get(value);
    if (number !== undefined) return writeInteger(block, at, INDEXED, 0x7f, this.#indexOf(number));
    const nameIndex = staticIndex === 0 && kept !== undefined ? this.#indexOf(kept.newest) : staticIndex;
    const sizeBytes = name.length + value.length + ENTRY_OVERHEAD_BYTES;
    if (sizeBytes > this.#tableBytes * MAX_TABLE_SHARE) {
      return writeLiteral(block, at, WITHOUT_INDEXING, nameIndex, name, value);
    }
    this.#add(ownText(name), ownText(value), sizeBytes);
    return writeLiteral(block, at, WITH_INDEXING, nameIndex, name, value);
  }

  #indexOf(number: number): number {
    return STATIC_SIZE + this.#table.next - number;
  }

  #add(name: string, value: string, sizeBytes: number): void {
    this.#evict(this.#tableBytes - sizeBytes);
    const number = this.#table.next;
    this.#table.add(name, value);
    const kept = this.#names.get(name);
    if (kept === undefined) {
      this.#names.set(name, { newest: number, values: new Map([[value, number]]) });
    } else {
      kept.newest = number;
      kept.values.set(value, number);
    }
  }

  #evict(downToBytes: number): void {
    const table = this.#table;
    while (table.usedBytes > downToBytes) {
      const name = table.nameOf(table.oldest);
      const kept = this.#names.get(name);
      kept?.values.delete(table.valueOf(table.oldest));
      if (kept?.values.size === 0) this.#names.delete(name);
      table.dropOldest();
    }
  }
}

/** Writes a literal of this representation (RFC 7541, 6.2), with its name if the name has no index. */
function writeLiteral(into: Buffer, at: number, kind: number, nameIndex: number, name: string, value: string): number {
  const end = writeInteger(into, at, kind, kind === WITH_INDEXING ? 0x3f : 0x0f, nameIndex);
  return writeText(into, nameIndex === 0 ? writeText(into, end, name) : end, value);
}

/** Writes a string literal, Huffman-coded if that is shorter (RFC 7541, 5.2). */
function writeText(into: Buffer, at: number, text: string): number {
  const huffmanBytes = huffmanSizeBytes(text);
  if (huffmanBytes < text.length) return writeHuffman(text, into, writeInteger(into, at, HUFFMAN, 0x7f, huffmanBytes));
  const start = writeInteger(into, at, 0, 0x7f, text.length);
  return start + into.write(text, start, "latin1");
}

/** Writes a prefixed integer; `bits` are those before the prefix (RFC 7541, 5.1). */
function writeInteger(into: Buffer, at: number, bits: number, mask: number, value: number): number {
  if (value < mask) {
    into[at] = bits | value;
    return at + 1;
  }
  into[at] = bits | mask;
  let end = at + 1;
  let rest = value - mask;
  for (; rest >= 0x80; rest >>>= 7) into[end++] = (rest & 0x7f) | 0x80;
  into[end++] = rest;
  return end;
}

/** A larger buffer with the same content, kept for later blocks unless it is too large. */
function enlarged(block: Buffer, usedBytes: number, neededBytes: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.max(2 * block.length, neededBytes));
  block.copy(larger, 0, 0, usedBytes);
  if (larger.length <= MAX_SCRATCH_BYTES) scratch = larger;
  return larger;
}

/** How a field that is in no table is written. */
type Indexing = typeof ADDED | typeof NOT_ADDED | typeof NEVER_ADDED | typeof COOKIE;

/** Static facts about a field name. */
interface KnownName {
  /** Index of the first static entry with this name, or 0. */
  index: number;
  /** Static indexes by value; undefined if there are none. */
  values: Map<string, number> | undefined;
  indexing: Indexing;
}

function knownNames(): Map<string, KnownName> {
  const names = new Map<string, KnownName>();
  const add = (name: string, indexing: Indexing): KnownName => {
    const known: KnownName = { index: 0, values: undefined, indexing };
    names.set(name, known);
    return known;
  };
  for (const name of VARYING) add(name, NOT_ADDED);
  for (const name of SECRET) add(name, NEVER_ADDED);
  add("cookie", COOKIE);
  for (const [at, [name, value]] of STATIC_TABLE.entries()) {
    const known = names.get(name) ?? add(name, ADDED);
    if (known.index === 0) known.index = at + 1;
    if (value === "") continue;
    known.values ??= new Map();
    known.values.set(value, at + 1);
  }
  return names;
}
