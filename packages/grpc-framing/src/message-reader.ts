import { Buffer } from "node:buffer";

/** One length-prefixed message as it was on the wire. */
export interface WireMessage {
  /** The first octet: bit 0 says compressed, bit 7 (gRPC-Web) that these are trailers. */
  readonly flags: number;
  readonly isCompressed: boolean;
  readonly isTrailer: boolean;
  /** What the prefix states, in bytes. */
  readonly sizeBytes: number;
  /** The message without its prefix, still compressed; its beginning when it is longer than what is kept. */
  readonly bytes: Buffer;
}

/** What is left when a body ends. */
export type ReaderEnd =
  | { readonly kind: "clean" }
  /** The body ended inside a prefix (`sizeBytes` undefined) or inside a message. */
  | { readonly kind: "cut"; readonly sizeBytes: number | undefined; readonly bytes: Buffer }
  /** What came is no gRPC; nothing behind it was read. */
  | { readonly kind: "broken"; readonly reason: string };

export interface MessageReaderOptions {
  /** Of a longer message only this many bytes are kept; the rest is counted and skipped. */
  readonly maxKeptBytes: number;
  /** gRPC-Web sends trailers as a message whose flags have bit 7. */
  readonly allowsTrailers: boolean;
}

const PREFIX_BYTES = 5;
const COMPRESSED = 0x01;
const TRAILER = 0x80;
/** A message that comes in pieces starts with this much room and grows by doubling. */
const FIRST_ROOM_BYTES = 1024;

/**
 * Cuts the body of a call into its messages (gRPC over HTTP/2, "Length-Prefixed-Message"). Input may be cut anywhere.
 * Memory holds what has arrived of one message, at most `maxKeptBytes`, whatever length a prefix claims.
 */
export class MessageReader {
  readonly #options: MessageReaderOptions;
  readonly #onMessage: (message: WireMessage) => void;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  #flags = 0;
  #sizeBytes = 0;
  /** Of the message: how much has come, and how much of that is kept. */
  #seenBytes = 0;
  #keptBytes = 0;
  #room: Buffer | undefined;
  #readBytes = 0;
  #broken: string | undefined;

  constructor(options: MessageReaderOptions, onMessage: (message: WireMessage) => void) {
    this.#options = options;
    this.#onMessage = onMessage;
  }

  /** Takes the next bytes; messages that are whole with them are handed out before it returns. */
  push(input: Buffer): void {
    let at = 0;
    while (at < input.length && this.#broken === undefined) {
      at = this.#prefixBytes < PREFIX_BYTES ? this.#readPrefix(input, at) : this.#readMessage(input, at);
    }
    this.#readBytes += input.length;
  }

  /** The body ended. */
  end(): ReaderEnd {
    if (this.#broken !== undefined) return { kind: "broken", reason: this.#broken };
    if (this.#prefixBytes === 0) return { kind: "clean" };
    if (this.#prefixBytes < PREFIX_BYTES) {
      return { kind: "cut", sizeBytes: undefined, bytes: this.#prefix.subarray(0, this.#prefixBytes) };
    }
    return { kind: "cut", sizeBytes: this.#sizeBytes, bytes: this.#kept() };
  }

  #readPrefix(input: Buffer, from: number): number {
    const taken = Math.min(PREFIX_BYTES - this.#prefixBytes, input.length - from);
    input.copy(this.#prefix, this.#prefixBytes, from, from + taken);
    this.#prefixBytes += taken;
    if (this.#prefixBytes < PREFIX_BYTES) return from + taken;
    this.#flags = this.#prefix.readUInt8(0);
    this.#sizeBytes = this.#prefix.readUInt32BE(1);
    const known = this.#options.allowsTrailers ? COMPRESSED | TRAILER : COMPRESSED;
    if ((this.#flags & ~known) !== 0) {
      const offset = this.#readBytes + from + taken - PREFIX_BYTES;
      this.#broken = `0x${this.#flags.toString(16).padStart(2, "0")} at byte ${offset} is no flag of a gRPC message`;
    } else if (this.#sizeBytes === 0) this.#deliver(Buffer.alloc(0));
    return from + taken;
  }

  #readMessage(input: Buffer, from: number): number {
    const taken = Math.min(this.#sizeBytes - this.#seenBytes, input.length - from);
    const isWhole = this.#seenBytes + taken === this.#sizeBytes;
    if (isWhole && this.#seenBytes === 0) {
      const kept = Math.min(taken, this.#options.maxKeptBytes);
      this.#deliver(input.subarray(from, from + kept));
      return from + taken;
    }
    this.#keep(input, from, taken);
    this.#seenBytes += taken;
    if (isWhole) this.#deliver(this.#kept());
    return from + taken;
  }

  /** Copies: a piece of one byte would otherwise hold the whole chunk that it came in. */
  #keep(input: Buffer, from: number, count: number): void {
    const kept = Math.min(count, this.#options.maxKeptBytes - this.#keptBytes);
    if (kept <= 0) return;
    const needed = this.#keptBytes + kept;
    let room = this.#room ?? Buffer.allocUnsafeSlow(Math.max(needed, FIRST_ROOM_BYTES));
    if (room.length < needed) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, room.length * 2));
      room.copy(larger, 0, 0, this.#keptBytes);
      room = larger;
    }
    input.copy(room, this.#keptBytes, from, from + kept);
    this.#room = room;
    this.#keptBytes = needed;
  }

  #kept(): Buffer {
    return this.#room?.subarray(0, this.#keptBytes) ?? Buffer.alloc(0);
  }

  #deliver(bytes: Buffer): void {
    const flags = this.#flags;
    const sizeBytes = this.#sizeBytes;
    this.#prefixBytes = 0;
    this.#seenBytes = 0;
    this.#keptBytes = 0;
    this.#room = undefined;
    this.#onMessage({
      flags,
      isCompressed: (flags & COMPRESSED) !== 0,
      isTrailer: (flags & TRAILER) !== 0,
      sizeBytes,
      bytes,
    });
  }
}

/** Puts the prefix before a message, which is given as it is to be on the wire. */
export function frameMessage(bytes: Uint8Array, flags = 0): Buffer {
  const framed = Buffer.allocUnsafe(PREFIX_BYTES + bytes.length);
  framed.writeUInt8(flags, 0);
  framed.writeUInt32BE(bytes.length, 1);
  framed.set(bytes, PREFIX_BYTES);
  return framed;
}
