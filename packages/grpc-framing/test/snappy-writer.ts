/** Writes snappy for tests, as the formats' descriptions say it. Not part of the package's interface. */
import { Buffer } from "node:buffer";

/** One block: literals, and copies of what stands before wherever four bytes repeat. */
export function snappyBlock(bytes: Uint8Array): Buffer {
  const parts: number[] = varint(bytes.length);
  const seen = new Map<string, number>();
  let from = 0;
  for (let at = 0; at < bytes.length;) {
    const key = bytes.subarray(at, at + 4).join();
    const before = seen.get(key);
    seen.set(key, at);
    if (before === undefined || at + 4 > bytes.length) {
      at += 1;
      continue;
    }
    parts.push(...literal(bytes.subarray(from, at)));
    let length = 4;
    while (length < 64 && at + length < bytes.length && bytes[before + length] === bytes[at + length]) length += 1;
    parts.push(...copy(length, at - before));
    at += length;
    from = at;
  }
  parts.push(...literal(bytes.subarray(from)));
  return Buffer.from(parts);
}

function varint(value: number): number[] {
  const octets: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return [...octets, left];
    octets.push((left % 128) | 0x80);
  }
}

/** The element of some bytes as they are. */
export function literal(bytes: Uint8Array): number[] {
  if (bytes.length === 0) return [];
  const length = bytes.length - 1;
  if (length < 60) return [length << 2, ...bytes];
  if (length < 256) return [60 << 2, length, ...bytes];
  return [61 << 2, length & 255, length >> 8, ...bytes];
}

/** The element that repeats what stands `offset` before. */
export function copy(length: number, offset: number): number[] {
  if (length >= 4 && length <= 11 && offset < 2048) {
    return [1 | ((length - 4) << 2) | ((offset >> 8) << 5), offset & 255];
  }
  return [2 | ((length - 1) << 2), offset & 255, offset >> 8];
}

const IDENTIFIER = [0xff, 6, 0, 0, ...Buffer.from("sNaPpY")];

/** Chunks of 64 KiB, every other one not compressed, with one that is to be skipped between. */
export function snappyStream(bytes: Uint8Array): Buffer {
  const chunks: Uint8Array[] = [Uint8Array.from(IDENTIFIER), Uint8Array.from([0xfe, 2, 0, 0, 9, 9])];
  for (let at = 0, index = 0; at < bytes.length; at += 65_536, index += 1) {
    const content = bytes.subarray(at, at + 65_536);
    const packed = index % 2 === 0 ? snappyBlock(content) : Buffer.from(content);
    chunks.push(chunk(index % 2, content, packed));
  }
  return Buffer.concat(chunks);
}

/** A chunk with its head and the checksum of what it stands for. */
export function chunk(type: number, content: Uint8Array, packed: Uint8Array): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt8(type);
  head.writeUIntLE(packed.length + 4, 1, 3);
  const sum = crc32c(content);
  head.writeUInt32LE((((sum >>> 15) | (sum << 17)) + 0xa282_ead8) >>> 0, 4);
  return Buffer.concat([head, packed]);
}

/** Bit by bit, from the definition (RFC 3720, 12.1). */
export function crc32c(bytes: Uint8Array): number {
  let sum = 0xffff_ffff;
  for (const octet of bytes) {
    for (let bit = 0; bit < 8; bit += 1) {
      const isSet = ((sum ^ (octet >> bit)) & 1) === 1;
      sum = isSet ? (sum >>> 1) ^ 0x82f6_3b78 : sum >>> 1;
    }
  }
  return ~sum >>> 0;
}
