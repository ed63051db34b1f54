import { Buffer } from "node:buffer";

const ALPHABET = /^[A-Za-z0-9+/]*$/u;

/**
 * Streaming decoder for gRPC-Web text (base64). Padding may occur in the middle, since senders may encode in pieces;
 * line ends are skipped. Input may be split anywhere.
 */
export class Base64Reader {
  /** Up to three characters of an incomplete group. */
  #rest = "";
  #broken = false;

  /** True after invalid input; decoding stops there. */
  get isBroken(): boolean {
    return this.#broken;
  }

  push(input: Buffer): Buffer {
    if (this.#broken) return Buffer.alloc(0);
    const text = this.#rest + input.toString("latin1").replaceAll(/[\r\n]/gu, "");
    const whole = text.length - (text.length % 4);
    this.#rest = text.slice(whole);
    const decoded: Buffer[] = [];
    let from = 0;
    while (from < whole) {
      const padding = text.indexOf("=", from);
      const to = padding === -1 || padding >= whole ? whole : padding - (padding % 4) + 4;
      const run = text.slice(from, to);
      if (!isBase64(run)) {
        this.#broken = true;
        break;
      }
      decoded.push(Buffer.from(run, "base64"));
      from = to;
    }
    return decoded.length === 1 ? (decoded[0] ?? Buffer.alloc(0)) : Buffer.concat(decoded);
  }

  /** Decodes the remaining characters without padding. */
  end(): Buffer {
    const rest = this.#rest;
    this.#rest = "";
    if (this.#broken || rest.length < 2 || !ALPHABET.test(rest)) return Buffer.alloc(0);
    return Buffer.from(rest, "base64");
  }
}

/** Complete groups of four with padding at the very end only. */
function isBase64(run: string): boolean {
  const body = run.endsWith("==") ? run.slice(0, -2) : run.endsWith("=") ? run.slice(0, -1) : run;
  return ALPHABET.test(body);
}

/** A length-prefixed message. */
export interface WireMessage {
  /** The first octet: bit 0 means compressed, bit 7 (gRPC-Web) trailers. */
  readonly flags: number;
  readonly isCompressed: boolean;
  readonly isTrailer: boolean;
  /** The length in the prefix. */
  readonly sizeBytes: number;
  /** The message without its prefix, still compressed; truncated above the limit. */
  readonly bytes: Buffer;
}

/** State at the end of a body. */
export type ReaderEnd =
  | { readonly kind: "clean" }
  /** The body ended inside a prefix (`sizeBytes` undefined) or a message. */
  | { readonly kind: "cut"; readonly sizeBytes: number | undefined; readonly bytes: Buffer }
  /** Not gRPC; reading stopped there. */
  | { readonly kind: "broken"; readonly reason: string };

export interface MessageReaderOptions {
  /** Messages are truncated at this size; the rest is counted and skipped. */
  readonly maxKeptBytes: number;
  /** Allows trailers in the body (bit 7 of the flags), as in gRPC-Web. */
  readonly allowsTrailers: boolean;
}

const PREFIX_BYTES = 5;
const COMPRESSED = 0x01;
const TRAILER = 0x80;

/** Initial buffer size of a split message; doubles as needed. */
const FIRST_ROOM_BYTES = 1024;

/**
 * Splits the body of a call into messages (gRPC over HTTP/2, "Length-Prefixed-Message"). Input may be split anywhere.
 * Memory is bounded by the received bytes of one message and `maxKeptBytes`, whatever length a prefix declares.
 */
export class MessageReader {
  readonly #options: MessageReaderOptions;
  readonly #onMessage: (message: WireMessage) => void;
  readonly #prefix = Buffer.alloc(PREFIX_BYTES);
  #prefixBytes = 0;
  #flags = 0;
  #sizeBytes = 0;
  /** Received and kept bytes of the message. */
  #seenBytes = 0;
  #keptBytes = 0;
  #room: Buffer | undefined;
  #readBytes = 0;
  #broken: string | undefined;

  constructor(options: MessageReaderOptions, onMessage: (message: WireMessage) => void) {
    this.#options = options;
    this.#onMessage = onMessage;
  }

  /** Processes bytes; calls back synchronously for each completed message. */
  push(input: Buffer): void {
    let at = 0;
    while (at < input.length && this.#broken === undefined) {
      at = this.#prefixBytes < PREFIX_BYTES ? this.#readPrefix(input, at) : this.#readMessage(input, at);
    }
    this.#readBytes += input.length;
  }

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

  /** Copied: a slice would retain the whole input chunk. */
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

/** Prefixes a message, which must already be encoded. */
export function frameMessage(bytes: Uint8Array, flags = 0): Buffer {
  const framed = Buffer.allocUnsafe(PREFIX_BYTES + bytes.length);
  framed.writeUInt8(flags, 0);
  framed.writeUInt32BE(bytes.length, 1);
  framed.set(bytes, PREFIX_BYTES);
  return framed;
}
