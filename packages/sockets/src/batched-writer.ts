import type { Writable } from "node:stream";
import { CHUNK_END, chunkPrefix } from "@headworks/http1";
import { trackExternalMemory } from "./external-memory.ts";
import { POOLED_BUFFER_BYTES, releaseBuffer, acquireBuffer } from "./buffer-pool.ts";
import { allocSlice } from "./slab.ts";
import { scheduleFlush, type Waiting } from "./scheduled-flush.ts";

/** Pieces up to this size are written as text together with the preceding head: one write instead of two. */
const TEXT_PIECE_BYTES = 8192;
/** The same for TLS, which copies text but reads buffers in place. */
const SECURE_TEXT_PIECE_BYTES = 1024;
/** Larger pieces are copied behind buffered text up to this size; above it the copy costs more than a second write. */
const JOINED_PIECE_BYTES = 131_072;
const MAX_WAITING_CHARACTERS = 65_536;

/**
 * Batches the writes caused by one read, so that a small message leaves in one write. Text is latin1, which can hold
 * any byte. The owner calls {@link flushSoon} at the end of a read and ends its side with {@link end}.
 */
export class BatchedWriter implements Waiting {
  isWaiting = false;
  readonly #socket: Writable;
  readonly #copies: boolean;
  /** TLS reports a write as finished later but reads the memory at once: it encrypts or copies it. */
  readonly #isSecure: boolean;
  readonly #textPieceBytes: number;
  /** A larger piece and the bytes before it. */
  #large: Buffer | undefined;
  /** The pooled buffer that contains it. */
  #pooledBuffer: Buffer | undefined;
  /** Text behind it. */
  #text = "";

  /**
   * `socket` must not read memory after a write has finished; system sockets do not. `copies`: pieces lie in memory
   * that is overwritten after the call.
   */
  constructor(socket: Writable & { readonly encrypted?: boolean }, copies = false) {
    this.#socket = socket;
    this.#copies = copies;
    this.#isSecure = socket.encrypted === true;
    this.#textPieceBytes = this.#isSecure ? SECURE_TEXT_PIECE_BYTES : TEXT_PIECE_BYTES;
  }

  text(text: string): void {
    this.#text += text;
  }

  bytes(piece: Buffer): void {
    if (piece.length <= this.#textPieceBytes) {
      this.#text += piece.toString("latin1");
      if (this.#text.length > MAX_WAITING_CHARACTERS) this.flush();
    } else {
      this.#join(piece, "");
    }
  }

  /** Writes the piece as one chunk of a chunked body. */
  chunk(piece: Buffer): void {
    this.#text += chunkPrefix(piece.length);
    if (piece.length <= this.#textPieceBytes) {
      this.#text += piece.toString("latin1") + CHUNK_END;
      if (this.#text.length > MAX_WAITING_CHARACTERS) this.flush();
    } else {
      this.#join(piece, CHUNK_END);
    }
  }

  /** Flushes at the end of this turn, together with other connections. Returns the same as {@link flush}. */
  flushSoon(): boolean {
    if (this.#text.length > MAX_WAITING_CHARACTERS) return this.flush();
    if (this.#text !== "" || this.#large !== undefined) scheduleFlush(this);
    return !this.#socket.writableNeedDrain;
  }

  /** Flushes and ends the sending side. */
  end(): void {
    this.flush();
    this.#socket.end();
  }

  /** Writes what is buffered. False: backpressure, until the socket drains. */
  flush(): boolean {
    if (this.#large !== undefined) this.#writeLarge(this.#large);
    if (this.#text !== "") {
      const text = this.#text;
      this.#text = "";
      if (!this.#socket.destroyed) this.#writeText(text);
    }
    return !this.#socket.writableNeedDrain;
  }

  /** Buffers the piece between the text before it and `suffix`. */
  #join(piece: Buffer, suffix: string): void {
    const isApart = piece.length > JOINED_PIECE_BYTES;
    if (isApart) this.flush();
    else if (this.#large !== undefined) this.#writeLarge(this.#large);
    const text = this.#text;
    this.#text = "";
    if (isApart || (text === "" && suffix === "" && !this.#copies)) {
      this.#large = this.#copies ? Buffer.from(piece) : piece;
      this.#text = suffix;
      if (this.#copies) trackExternalMemory(piece.length);
    } else {
      const joined = this.#room(text.length + piece.length + suffix.length);
      joined.write(text, 0, "latin1");
      piece.copy(joined, text.length);
      joined.write(suffix, text.length + piece.length, "latin1");
      this.#large = joined;
    }
    scheduleFlush(this);
  }

  #room(sizeBytes: number): Buffer {
    if (sizeBytes <= POOLED_BUFFER_BYTES && this.#socket.writableLength === 0) {
      this.#pooledBuffer = acquireBuffer();
      return this.#pooledBuffer.subarray(0, sizeBytes);
    }
    return allocSlice(sizeBytes);
  }

  #writeText(text: string): void {
    if (!this.#isSecure || text.length > POOLED_BUFFER_BYTES || this.#socket.writableLength > 0) {
      this.#socket.write(text, "latin1");
      return;
    }
    const pooledBuffer = acquireBuffer();
    this.#socket.write(pooledBuffer.subarray(0, pooledBuffer.write(text, "latin1")));
    releaseBuffer(pooledBuffer);
  }

  #writeLarge(large: Buffer): void {
    const pooledBuffer = this.#pooledBuffer;
    this.#large = undefined;
    this.#pooledBuffer = undefined;
    // Behind another write it would be queued by reference.
    const isLookedAtOnce = this.#isSecure && this.#socket.writableLength === 0;
    if (!this.#socket.destroyed) this.#socket.write(large);
    if (pooledBuffer === undefined) return;
    // Memory of a write in progress belongs to the socket.
    if (isLookedAtOnce || this.#socket.writableLength === 0) releaseBuffer(pooledBuffer);
    else trackExternalMemory(POOLED_BUFFER_BYTES);
  }
}
