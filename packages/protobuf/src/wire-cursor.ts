import type { Buffer } from "node:buffer";

/** How a field's value is on the wire; 4, the end of a group, belongs to the group. */
export const WIRE = { varint: 0, fixed64: 1, bytes: 2, group: 3, groupEnd: 4, fixed32: 5 } as const;

const MAX_NUMBER = 536_870_911;
const MAX_VARINT_BYTES = 10;
/** Groups within groups, as deep as protocol buffers' own readers go. */
const MAX_GROUP_DEPTH = 100;

/**
 * Goes over the fields of a message. `next()` answers false at the end and at the first thing that is no field
 * (`isMalformed`); it never throws and never reads outside `from` to `to`.
 */
export class WireCursor {
  readonly bytes: Buffer;
  /** Where the next field begins. */
  at: number;
  readonly end: number;
  isMalformed = false;
  number = 0;
  wireType = 0;
  /** Of a varint: all 64 bits, unsigned. */
  varint = 0n;
  /** Of everything else: where the value lies in `bytes`; for groups what is between the tags. */
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

  /** Reads one varint that stands alone, as in packed fields; false when there is none. */
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

/** The number that a zigzag-encoded one stands for (sint32, sint64). */
export function fromZigzag(value: bigint): bigint {
  return (value >> 1n) ^ -(value & 1n);
}
