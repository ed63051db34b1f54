import type { Writable } from "node:stream";
import { CHUNK_END, chunkPrefix } from "@headworks/http1";
import { trackExternalMemory } from "./external-memory.ts";
import { POOLED_BUFFER_BYTES, releaseBuffer, acquireBuffer } from "./buffer-pool.ts";
import { allocSlice } from "./slab.ts";
import { scheduleFlush, type Waiting } from "./scheduled-flush.ts";

/** Pieces up to this size travel as text together with the head before them: one write instead of two. */
const TEXT_PIECE_BYTES = 8192;
/** The same where TLS makes memory of its own for a text, and looks at other memory where it lies. */
const SECURE_TEXT_PIECE_BYTES = 1024;
/** Larger pieces are copied behind waiting text up to this size; above it the copy costs more than a second write. */
const JOINED_PIECE_BYTES = 131_072;
const MAX_WAITING_CHARACTERS = 65_536;

/**
 * Gathers what one read caused to be written, so that a small message leaves in one write. Text is latin1, which
 * holds any byte. The owner calls {@link flushSoon} when the read is worked off, and ends its side by {@link end}.
 */
export class BatchedWriter implements Waiting {
  isWaiting = false;
  readonly #socket: Writable;
  readonly #copies: boolean;
  /** TLS says later that it has taken a write, but looks at the memory at once: it encrypts what is there, or copies it. */
  readonly #isSecure: boolean;
  readonly #textPieceBytes: number;
  /** A larger piece, and what came before it. */
  #large: Buffer | undefined;
  /** The desk on which it lies. */
  #pooledBuffer: Buffer | undefined;
  /** What came behind it. */
  #text = "";

  /**
   * `socket` looks no more at memory once that write is finished, as sockets of the system do. `copies`: pieces lie in
   * memory that is overwritten after the call.
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

  /** The piece as one chunk of a chunked body. */
  chunk(piece: Buffer): void {
    this.#text += chunkPrefix(piece.length);
    if (piece.length <= this.#textPieceBytes) {
      this.#text += piece.toString("latin1") + CHUNK_END;
      if (this.#text.length > MAX_WAITING_CHARACTERS) this.flush();
    } else {
      this.#join(piece, CHUNK_END);
    }
  }

  /** Hands over what waits with the writes of other connections, at the end of this turn. Answers like {@link flush}. */
  flushSoon(): boolean {
    if (this.#text.length > MAX_WAITING_CHARACTERS) return this.flush();
    if (this.#text !== "" || this.#large !== undefined) scheduleFlush(this);
    return !this.#socket.writableNeedDrain;
  }

  /** Hands over what waits, and ends our side. */
  end(): void {
    this.flush();
    this.#socket.end();
  }

  /** Hands over what waits. False: the socket's buffer is full, stop producing until it drained. */
  flush(): boolean {
    if (this.#large !== undefined) this.#writeLarge(this.#large);
    if (this.#text !== "") {
      const text = this.#text;
      this.#text = "";
      if (!this.#socket.destroyed) this.#writeText(text);
    }
    return !this.#socket.writableNeedDrain;
  }

  /** Has the piece wait between the text before it and `suffix`. */
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
    // Behind another write it would wait, where it lies.
    const isLookedAtOnce = this.#isSecure && this.#socket.writableLength === 0;
    if (!this.#socket.destroyed) this.#socket.write(large);
    if (pooledBuffer === undefined) return;
    // Memory of a write that is still under way is that socket's.
    if (isLookedAtOnce || this.#socket.writableLength === 0) releaseBuffer(pooledBuffer);
    else trackExternalMemory(POOLED_BUFFER_BYTES);
  }
}
