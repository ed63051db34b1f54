import type { Buffer } from "node:buffer";

/** Wire types; 4, the end of a group, is handled with the group. */
export const WIRE = { varint: 0, fixed64: 1, bytes: 2, group: 3, groupEnd: 4, fixed32: 5 } as const;
const MAX_NUMBER = 536_870_911;
const MAX_VARINT_BYTES = 10;
/** Maximum nesting of groups, as in the reference implementations. */
const MAX_GROUP_DEPTH = 100;

/**
 * Iterates over the fields of a message. `next()` returns false at the end and at the first malformed field
 * (`isMalformed`); never throws and never reads outside `from` to `to`.
 */
export class WireCursor {
  readonly bytes: Buffer;
  /** Offset of the next field. */
  at: number;
  readonly end: number;
  isMalformed = false;
  number = 0;
  wireType = 0;
  /** The value of a varint: 64 bits, unsigned. */
  varint = 0n;
  /** The range of any other value in `bytes`; for groups, between the tags. */
  valueFrom = 0;
  valueTo = 0;

  constructor(bytes: Buffer, from = 0, to = bytes.length) {
    this.bytes = bytes;
    this.at = from;
    this.end = to;
  }

  next(): boolean {
    if (this.at >= this.end || this.isMalformed) return false;
    const start = this.at;
    if (this.#readTag() && this.#readValue(0)) return true;
    this.at = start;
    this.isMalformed = true;
    return false;
  }

  /** Reads a single varint, as in packed fields; false if there is none. */
  nextVarint(): boolean {
    if (this.at >= this.end) return false;
    if (this.#readVarint()) return true;
    this.isMalformed = true;
    return false;
  }

  /** The value's bytes, not copied. */
  value(): Buffer {
    return this.bytes.subarray(this.valueFrom, this.valueTo);
  }

  #readTag(): boolean {
    if (!this.#readVarint() || this.varint > 0xffff_ffffn) return false;
    const tag = Number(this.varint);
    this.number = Math.floor(tag / 8);
    this.wireType = tag % 8;
    return this.number >= 1 && this.number <= MAX_NUMBER;
  }

  #readValue(depth: number): boolean {
    switch (this.wireType) {
      case WIRE.varint:
        return this.#readVarint();
      case WIRE.fixed64:
        return this.#take(8);
      case WIRE.bytes:
        return this.#readVarint() && this.varint <= BigInt(this.end - this.at) && this.#take(Number(this.varint));
      case WIRE.group:
        return this.#readGroup(depth);
      case WIRE.fixed32:
        return this.#take(4);
      default:
        return false;
    }
  }

  #take(count: number): boolean {
    if (this.end - this.at < count) return false;
    this.valueFrom = this.at;
    this.at += count;
    this.valueTo = this.at;
    return true;
  }

  #readGroup(depth: number): boolean {
    if (depth >= MAX_GROUP_DEPTH) return false;
    const { number, at: from } = this;
    for (;;) {
      const to = this.at;
      if (!this.#readTag()) return false;
      if (this.wireType === WIRE.groupEnd) {
        if (this.number !== number) return false;
        this.wireType = WIRE.group;
        this.valueFrom = from;
        this.valueTo = to;
        return true;
      }
      if (!this.#readValue(depth + 1)) return false;
    }
  }

  #readVarint(): boolean {
    const first = this.bytes[this.at] ?? 0;
    if (first < 0x80 && this.at < this.end) {
      this.varint = BigInt(first);
      this.at += 1;
      return true;
    }
    let value = 0n;
    const last = Math.min(this.end, this.at + MAX_VARINT_BYTES);
    for (let at = this.at, shift = 0n; at < last; at += 1, shift += 7n) {
      const octet = this.bytes[at] ?? 0;
      value |= BigInt(octet & 0x7f) << shift;
      if (octet >= 0x80) continue;
      this.varint = BigInt.asUintN(64, value);
      this.at = at + 1;
      return true;
    }
    return false;
  }
}

/** Decodes a zigzag-encoded number (sint32, sint64). */
export function fromZigzag(value: bigint): bigint {
  return (value >> 1n) ^ -(value & 1n);
}
