/** The static table as `[name, value]`; the first entry has index 1 (RFC 7541, appendix A). */
export const STATIC_TABLE: readonly (readonly [name: string, value: string])[] = [
  [":authority", ""],
  [":method", "GET"],
  [":method", "POST"],
  [":path", "/"],
  [":path", "/index.html"],
  [":scheme", "http"],
  [":scheme", "https"],
  [":status", "200"],
  [":status", "204"],
  [":status", "206"],
  [":status", "304"],
  [":status", "400"],
  [":status", "404"],
  [":status", "500"],
  ["accept-charset", ""],
  ["accept-encoding", "gzip, deflate"],
  ["accept-language", ""],
  ["accept-ranges", ""],
  ["accept", ""],
  ["access-control-allow-origin", ""],
  ["age", ""],
  ["allow", ""],
  ["authorization", ""],
  ["cache-control", ""],
  ["content-disposition", ""],
  ["content-encoding", ""],
  ["content-language", ""],
  ["content-length", ""],
  ["content-location", ""],
  ["content-range", ""],
  ["content-type", ""],
  ["cookie", ""],
  ["date", ""],
  ["etag", ""],
  ["expect", ""],
  ["expires", ""],
  ["from", ""],
  ["host", ""],
  ["if-match", ""],
  ["if-modified-since", ""],
  ["if-none-match", ""],
  ["if-range", ""],
  ["if-unmodified-since", ""],
  ["last-modified", ""],
  ["link", ""],
  ["location", ""],
  ["max-forwards", ""],
  ["proxy-authenticate", ""],
  ["proxy-authorization", ""],
  ["range", ""],
  ["referer", ""],
  ["refresh", ""],
  ["retry-after", ""],
  ["server", ""],
  ["set-cookie", ""],
  ["strict-transport-security", ""],
  ["transfer-encoding", ""],
  ["user-agent", ""],
  ["vary", ""],
  ["via", ""],
  ["www-authenticate", ""],
];

/** Indexes of the dynamic table start after it. */
export const STATIC_SIZE = STATIC_TABLE.length;

/** Size of an entry in addition to its name and value (RFC 7541, 4.1). */
export const ENTRY_OVERHEAD_BYTES = 32;

/** Default size of a dynamic table (RFC 9113, 6.5.2). */
export const TABLE_BYTES = 4096;
const MIN_SLOTS = 16;

/**
 * The dynamic table (RFC 7541, 2.3.2) as a ring. Entries are numbered consecutively; unlike an index of the RFC, a
 * number does not change with later insertions.
 */
export class DynamicTable {
  /** Number of the oldest remaining entry. */
  oldest = 0;
  /** Number of the next entry to be added. */
  next = 0;
  /** Total size of the entries (RFC 7541, 4.1). */
  usedBytes = 0;
  /** Grows on demand, since most connections have few entries. */
  #names: string[] = emptyTexts(MIN_SLOTS);
  #values: string[] = emptyTexts(MIN_SLOTS);
  #mask = MIN_SLOTS - 1;

  nameOf(number: number): string {
    return this.#names[number & this.#mask] ?? "";
  }

  valueOf(number: number): string {
    return this.#values[number & this.#mask] ?? "";
  }

  /** Adds an entry. The caller has evicted entries to make room. */
  add(name: string, value: string): void {
    if (this.next - this.oldest > this.#mask) this.#grow();
    const slot = this.next & this.#mask;
    this.#names[slot] = name;
    this.#values[slot] = value;
    this.next++;
    this.usedBytes += name.length + value.length + ENTRY_OVERHEAD_BYTES;
  }

  /** Evicts the oldest entry, which must exist. */
  dropOldest(): void {
    const slot = this.oldest & this.#mask;
    this.usedBytes -= this.nameOf(slot).length + this.valueOf(slot).length + ENTRY_OVERHEAD_BYTES;
    // Otherwise the slot would retain the strings as long as the connection lives.
    this.#names[slot] = "";
    this.#values[slot] = "";
    this.oldest++;
  }

  #grow(): void {
    const slots = 2 * (this.#mask + 1);
    const names = emptyTexts(slots);
    const values = emptyTexts(slots);
    for (let number = this.oldest; number < this.next; number++) {
      names[number & (slots - 1)] = this.nameOf(number);
      values[number & (slots - 1)] = this.valueOf(number);
    }
    this.#names = names;
    this.#values = values;
    this.#mask = slots - 1;
  }
}

function emptyTexts(count: number): string[] {
  return Array.from({ length: count }, () => "");
}
