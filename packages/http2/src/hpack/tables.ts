/** What both sides know without a word, `[name, value]`; the first has the index 1 (RFC 7541, appendix A). */
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

/** The dynamic table begins behind it. */
export const STATIC_SIZE = STATIC_TABLE.length;

/** What an entry counts beside its name and value (RFC 7541, 4.1). */
export const ENTRY_OVERHEAD_BYTES = 32;

/** The size of a dynamic table when nobody said otherwise (RFC 9113, 6.5.2). */
export const TABLE_BYTES = 4096;

const MIN_SLOTS = 16;

/**
 * The dynamic table (RFC 7541, 2.3.2) as a ring. An entry is known by its number, which counts all that were ever added
 * and stays the same until it is dropped: an index of the RFC moves with each insertion.
 */
export class DynamicTable {
  /** The number of the oldest entry that is still there. */
  oldest = 0;
  /** The number of the next entry; the newest is the one before it. */
  next = 0;
  /** What the entries count together (RFC 7541, 4.1). */
  usedBytes = 0;
  /** Grows with the entries, since a connection of few requests has few of them. */
  #names: string[] = emptyTexts(MIN_SLOTS);
  #values: string[] = emptyTexts(MIN_SLOTS);
  #mask = MIN_SLOTS - 1;

  /** The name of an entry that is there. */
  nameOf(number: number): string {
    return this.#names[number & this.#mask] ?? "";
  }

  /** The value of an entry that is there. */
  valueOf(number: number): string {
    return this.#values[number & this.#mask] ?? "";
  }

  /** Adds an entry. The caller has dropped as many as had to go for it. */
  add(name: string, value: string): void {
    if (this.next - this.oldest > this.#mask) this.#grow();
    const slot = this.next & this.#mask;
    this.#names[slot] = name;
    this.#values[slot] = value;
    this.next++;
    this.usedBytes += name.length + value.length + ENTRY_OVERHEAD_BYTES;
  }

  /** Drops the oldest entry; there is one. */
  dropOldest(): void {
    const slot = this.oldest & this.#mask;
    this.usedBytes -= this.nameOf(slot).length + this.valueOf(slot).length + ENTRY_OVERHEAD_BYTES;
    // A text that stayed in its slot would live as long as the connection.
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
