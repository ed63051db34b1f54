import { Buffer } from "node:buffer";
import {
  createGunzip,
  createInflate,
  createInflateRaw,
  type Gunzip,
  gunzipSync,
  type Inflate,
  type InflateRaw,
  inflateRawSync,
  inflateSync,
} from "node:zlib";

/** Complete, limit reached, or invalid input. */
export type SnappyEnd = "whole" | "limit" | "damaged";

/** The first chunk of the framing format. */
const STREAM_IDENTIFIER = Buffer.from("\u00ff\u0006\u0000\u0000sNaPpY", "latin1");
const CHUNK_COMPRESSED = 0x00;
const CHUNK_UNCOMPRESSED = 0x01;
const CHUNK_IDENTIFIER = 0xff;
const FIRST_SKIPPABLE_CHUNK = 0x80;
const CHUNK_HEAD_BYTES = 4;
const CHECKSUM_BYTES = 4;

/** Maximum output of a chunk. */
const CHUNK_BYTES = 65_536;

/** Maximum expansion: a copy of 64 bytes takes at least three. */
const MAX_GROWTH = 22;

/**
 * Decompresses a snappy message, a block (`format_description.txt` of google/snappy) or a stream of chunks
 * (`framing_format.txt`), detected by its first bytes. Works in steps; memory is bounded by the limit and by the
 * possible output of the input, whatever length it declares.
 */
export class SnappyDecoder {
  readonly #input: Buffer;
  readonly #limitBytes: number;
  readonly #isFramed: boolean;
  readonly #pieces: Buffer[] = [];
  #pieceBytes = 0;
  #at = 0;
  #block: BlockDecoder | undefined;
  /** End and checksum of the current chunk. */
  #chunkEnd = 0;
  #checksum = 0;
  #end: SnappyEnd | undefined;

  constructor(input: Buffer, limitBytes: number) {
    this.#input = input;
    this.#limitBytes = limitBytes;
    this.#isFramed = input.subarray(0, STREAM_IDENTIFIER.length).equals(STREAM_IDENTIFIER);
  }

  /** Processes about `workBytes` of input or output; returns the result when finished. */
  step(workBytes: number): SnappyEnd | undefined {
    const until = this.#work + workBytes;
    while (this.#end === undefined && this.#work < until) {
      const left = until - this.#at - this.#pieceBytes;
      this.#end = this.#isFramed ? this.#stepFramed(left) : this.#stepBlock(left);
    }
    return this.#end;
  }

  /** The output, unless the input was invalid. */
  get bytes(): Buffer {
    const [first] = this.#pieces;
    return first !== undefined && this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces);
  }

  /** Counts chunks without output, too. */
  get #work(): number {
    return this.#at + this.#pieceBytes + (this.#block?.length ?? 0);
  }

  #stepBlock(until: number): SnappyEnd | undefined {
    this.#block ??= blockOf(this.#input, this.#limitBytes);
    if (this.#block === undefined) return "damaged";
    const end = this.#block.step(until);
    if (end === "whole" || end === "limit") this.#keepBlock();
    return end;
  }

  #stepFramed(until: number): SnappyEnd | undefined {
    if (this.#block === undefined) return this.#readChunk();
    const end = this.#block.step(until);
    if (end === undefined || end === "damaged") return end;
    const content = this.#block.bytes;
    this.#keepBlock();
    if (end === "limit") return "limit";
    return this.#endChunk(content);
  }

  /** Reads the header of a chunk, or a complete uncompressed chunk. */
  #readChunk(): SnappyEnd | undefined {
    const input = this.#input;
    if (this.#at === input.length) return "whole";
    if (input.length - this.#at < CHUNK_HEAD_BYTES) return "damaged";
    const type = input.readUInt8(this.#at);
    const from = this.#at + CHUNK_HEAD_BYTES;
    this.#chunkEnd = from + input.readUIntLE(this.#at + 1, 3);
    if (this.#chunkEnd > input.length) return "damaged";
    if (type === CHUNK_IDENTIFIER) {
      if (!input.subarray(this.#at, this.#chunkEnd).equals(STREAM_IDENTIFIER)) return "damaged";
    } else if (type === CHUNK_COMPRESSED || type === CHUNK_UNCOMPRESSED) {
      return this.#readContent(type, from);
    } else if (type < FIRST_SKIPPABLE_CHUNK) {
      return "damaged";
    }
    this.#at = this.#chunkEnd;
    return undefined;
  }

  #readContent(type: number, from: number): SnappyEnd | undefined {
    if (this.#chunkEnd - from < CHECKSUM_BYTES) return "damaged";
    this.#checksum = this.#input.readUInt32LE(from);
    const content = this.#input.subarray(from + CHECKSUM_BYTES, this.#chunkEnd);
    const left = this.#limitBytes - this.#pieceBytes;
    if (type === CHUNK_COMPRESSED) {
      this.#block = blockOf(content, left);
      return this.#block === undefined || this.#block.claimedBytes > CHUNK_BYTES ? "damaged" : undefined;
    }
    if (content.length > CHUNK_BYTES) return "damaged";
    this.#keep(content.subarray(0, left));
    return content.length > left ? "limit" : this.#endChunk(content);
  }

  #endChunk(content: Buffer): SnappyEnd | undefined {
    this.#at = this.#chunkEnd;
    return maskedChecksum(content) === this.#checksum ? undefined : "damaged";
  }

  #keepBlock(): void {
    if (this.#block !== undefined) this.#keep(this.#block.bytes);
    this.#block = undefined;
  }

  #keep(piece: Buffer): void {
    if (piece.length > 0) this.#pieces.push(piece);
    this.#pieceBytes += piece.length;
  }
}

/** A block decoder; undefined if the header is invalid or declares more than the input can produce. */
function blockOf(input: Buffer, limitBytes: number): BlockDecoder | undefined {
  let claimedBytes = 0;
  for (let at = 0; at < Math.min(5, input.length); at += 1) {
    const octet = input.readUInt8(at);
    claimedBytes += (octet & 0x7f) * 2 ** (7 * at);
    if (octet >= 0x80) continue;
    if (claimedBytes > 0xffff_ffff || claimedBytes > input.length * MAX_GROWTH) return undefined;
    return new BlockDecoder(input, at + 1, claimedBytes, limitBytes);
  }
  return undefined;
}

/** Decodes literals and back references of one block. */
class BlockDecoder {
  readonly claimedBytes: number;
  readonly #input: Buffer;
  readonly #room: Buffer;
  #at: number;
  #length = 0;

  constructor(input: Buffer, from: number, claimedBytes: number, limitBytes: number) {
    this.#input = input;
    this.#at = from;
    this.claimedBytes = claimedBytes;
    this.#room = Buffer.allocUnsafe(Math.max(0, Math.min(claimedBytes, limitBytes)));
  }

  get length(): number {
    return this.#length;
  }

  get bytes(): Buffer {
    return this.#room.subarray(0, this.#length);
  }

  /** Decodes until `until` bytes are available. */
  step(until: number): SnappyEnd | undefined {
    while (this.#at < this.#input.length) {
      const end = this.#element();
      if (end !== undefined) return end;
      if (this.#length >= until) return undefined;
    }
    return this.#length === this.claimedBytes ? "whole" : this.#room.length < this.claimedBytes ? "limit" : "damaged";
  }

  #element(): SnappyEnd | undefined {
    const tag = this.#input.readUInt8(this.#at);
    this.#at += 1;
    const upper = tag >>> 2;
    switch (tag & 3) {
      case 0:
        return this.#literal(upper);
      case 1:
        return this.#copy((upper & 7) + 4, 1, (tag >>> 5) << 8);
      case 2:
        return this.#copy(upper + 1, 2, 0);
      default:
        return this.#copy(upper + 1, 4, 0);
    }
  }

  #literal(upper: number): SnappyEnd | undefined {
    let length = upper + 1;
    if (upper >= 60) {
      const sizeBytes = upper - 59;
      if (this.#at + sizeBytes > this.#input.length) return "damaged";
      length = this.#input.readUIntLE(this.#at, sizeBytes) + 1;
      this.#at += sizeBytes;
    }
    if (this.#at + length > this.#input.length || this.#length + length > this.claimedBytes) return "damaged";
    const fitting = Math.min(length, this.#room.length - this.#length);
    this.#input.copy(this.#room, this.#length, this.#at, this.#at + fitting);
    this.#at += length;
    this.#length += fitting;
    return fitting < length ? "limit" : undefined;
  }

  #copy(length: number, offsetBytes: number, offsetBase: number): SnappyEnd | undefined {
    if (this.#at + offsetBytes > this.#input.length) return "damaged";
    const offset = offsetBase + this.#input.readUIntLE(this.#at, offsetBytes);
    this.#at += offsetBytes;
    if (offset === 0 || offset > this.#length || this.#length + length > this.claimedBytes) return "damaged";
    const fitting = Math.min(length, this.#room.length - this.#length);
    const room = this.#room;
    const from = this.#length - offset;
    // The source may overlap the destination: a repeating pattern.
    if (offset >= fitting) room.copyWithin(this.#length, from, from + fitting);
    else for (let index = 0; index < fitting; index += 1) room[this.#length + index] = room[from + index] ?? 0;
    this.#length += fitting;
    return fitting < length ? "limit" : undefined;
  }
}

let table: Uint32Array | undefined;

/** Masked CRC-32C (RFC 3720, appendix B.4) of the framing format. */
function maskedChecksum(bytes: Uint8Array): number {
  const sums = (table ??= checksumTable());
  let sum = 0xffff_ffff;
  for (const octet of bytes) sum = (sums[(sum ^ octet) & 0xff] ?? 0) ^ (sum >>> 8);
  sum = ~sum;
  return (((sum >>> 15) | (sum << 17)) + 0xa282_ead8) >>> 0;
}

const REVERSED_POLYNOMIAL = 0x82f6_3b78;

function checksumTable(): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, octet) => {
    let sum = octet;
    for (let bit = 0; bit < 8; bit += 1) sum = (sum & 1) === 0 ? sum >>> 1 : (sum >>> 1) ^ REVERSED_POLYNOMIAL;
    return sum;
  });
}

/** Supported values of `grpc-encoding`. */
export const ENCODINGS = ["identity", "gzip", "deflate", "snappy"] as const;

export type Encoding = (typeof ENCODINGS)[number];

/** The reason for incomplete output. */
export type DecompressionStop = "damaged" | "limit" | "unsupported";

export interface Decompressed {
  /** The output, truncated if `stop` is `limit`; the compressed bytes if decompression failed. */
  readonly bytes: Buffer;
  readonly stop: DecompressionStop | undefined;
}

/** True for an encoding that {@link decompress} supports. */
export function isEncoding(encoding: string): encoding is Encoding {
  return (ENCODINGS as readonly string[]).includes(encoding);
}

/** Decompresses a message. Undefined beyond `limitBytes`, which also bounds the time. */
export function decompressSync(bytes: Buffer, encoding: string, limitBytes: number): Decompressed | undefined {
  if (!isEncoding(encoding)) return { bytes, stop: "unsupported" };
  if (encoding === "identity" || bytes.length === 0) {
    return bytes.length > limitBytes ? undefined : { bytes, stop: undefined };
  }
  if (encoding === "snappy") return undoSnappySync(bytes, limitBytes);
  const options = { maxOutputLength: Math.max(limitBytes, 1) };
  try {
    return { bytes: undo(bytes, encoding, options), stop: undefined };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE" ? undefined : { bytes, stop: "damaged" };
  }
}

function undo(bytes: Buffer, encoding: "gzip" | "deflate", options: { readonly maxOutputLength: number }): Buffer {
  if (encoding === "gzip") return gunzipSync(bytes, options);
  return hasZlibHeader(bytes) ? inflateSync(bytes, options) : inflateRawSync(bytes, options);
}

function undoSnappySync(bytes: Buffer, limitBytes: number): Decompressed | undefined {
  const decoder = new SnappyDecoder(bytes, limitBytes);
  const end = decoder.step(Number.MAX_SAFE_INTEGER);
  if (end === "limit") return undefined;
  return end === "whole" ? { bytes: decoder.bytes, stop: undefined } : { bytes, stop: "damaged" };
}

/**
 * Like {@link decompressSync}, on zlib's threads (snappy: in time slices), and returns the beginning of output that
 * exceeds `limitBytes`, which also bounds memory. Never rejects.
 */
export async function decompress(bytes: Buffer, encoding: string, limitBytes: number): Promise<Decompressed> {
  if (!isEncoding(encoding)) return { bytes, stop: "unsupported" };
  if (encoding === "identity" || bytes.length === 0) return cut(bytes, limitBytes);
  if (encoding === "snappy") return await undoSnappy(bytes, limitBytes);
  const stream = open(bytes, encoding);
  const { promise, resolve } = Promise.withResolvers<Decompressed>();
  const pieces: Buffer[] = [];
  let keptBytes = 0;
  let stop: DecompressionStop | undefined;
  stream.on("data", (piece: Buffer) => {
    const kept = piece.subarray(0, limitBytes - keptBytes);
    keptBytes += kept.length;
    if (kept.length > 0) pieces.push(kept);
    if (kept.length === piece.length) return;
    stop ??= "limit";
    stream.destroy();
  });
  stream.on("error", () => {
    stop ??= "damaged";
  });
  stream.on("close", () => resolve({ bytes: stop === "damaged" ? bytes : Buffer.concat(pieces), stop }));
  stream.end(bytes);
  return promise;
}

/** Output per time slice of about half a millisecond. */
const SNAPPY_TURN_BYTES = 262_144;

async function undoSnappy(bytes: Buffer, limitBytes: number): Promise<Decompressed> {
  const decoder = new SnappyDecoder(bytes, limitBytes);
  let end = decoder.step(SNAPPY_TURN_BYTES);
  while (end === undefined) {
    const turn = Promise.withResolvers<undefined>();
    setImmediate(() => turn.resolve(undefined));
    await turn.promise;
    end = decoder.step(SNAPPY_TURN_BYTES);
  }
  if (end === "damaged") return { bytes, stop: "damaged" };
  return { bytes: decoder.bytes, stop: end === "limit" ? "limit" : undefined };
}

function open(bytes: Buffer, encoding: "gzip" | "deflate"): Gunzip | Inflate | InflateRaw {
  if (encoding === "gzip") return createGunzip();
  return hasZlibHeader(bytes) ? createInflate() : createInflateRaw();
}

/** Some peers send raw deflate without the header of RFC 1950 section 2.2. */
function hasZlibHeader(bytes: Buffer): boolean {
  return ((bytes[0] ?? 0) & 0x0f) === 8;
}

function cut(bytes: Buffer, limitBytes: number): Decompressed {
  return bytes.length > limitBytes
    ? { bytes: bytes.subarray(0, limitBytes), stop: "limit" }
    : { bytes, stop: undefined };
}
