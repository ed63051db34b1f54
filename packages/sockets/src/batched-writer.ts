import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { TLSSocket } from "node:tls";
import { acquireBuffer, POOLED_BUFFER_BYTES, releaseBuffer } from "./buffer-pool.ts";
import { allocSlice, MAX_SHARED_SLICE_BYTES, trackExternalMemory } from "./memory.ts";
import type { SharedBytes } from "./shared-reads.ts";

/** A writer with output to flush at the end of this turn of the event loop. */
export interface Flushable {
  /** Written only by {@link scheduleFlush}. */
  isWaiting: boolean;
  flush(): void;
}

/** Flush batch size: a reader finds the next write in time, and none waits for a long turn. */
const MAX_WAITING = 16;
const waiting: Flushable[] = [];
let isScheduled = false;

/**
 * Flushes `writer` after the current batch of events, or once {@link MAX_WAITING} writers are queued. Consecutive
 * writes cost a fifth less than writes interleaved with requests: a peer is woken once, and kernel code stays in the
 * caches.
 */
export function scheduleFlush(writer: Flushable): void {
  if (writer.isWaiting) return;
  writer.isWaiting = true;
  waiting.push(writer);
  if (waiting.length >= MAX_WAITING) {
    flushWaiting();
  } else if (!isScheduled) {
    isScheduled = true;
    setImmediate(onTurnEnd);
  }
}

function onTurnEnd(): void {
  isScheduled = false;
  flushWaiting();
}

function flushWaiting(): void {
  for (const writer of waiting.splice(0)) {
    writer.isWaiting = false;
    writer.flush();
  }
}

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
export class BatchedWriter<Piece extends SharedBytes = Buffer> implements Flushable {
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

  /** A writer that copies its pieces, since their memory is overwritten after the call. */
  static copying(socket: Writable): BatchedWriter<SharedBytes> {
    return new BatchedWriter<SharedBytes>(socket, true);
  }

  /**
   * `socket` must not read memory after a write has finished; system sockets do not. Pieces are kept by reference
   * unless `copies`.
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

  /** Writes the piece, between the size line and the line end of a chunk if it is one. */
  bytes(piece: Piece, prefix = "", suffix = ""): void {
    this.#text += prefix;
    if (piece.length <= this.#textPieceBytes) {
      this.#text += piece.toString("latin1") + suffix;
      if (this.#text.length > MAX_WAITING_CHARACTERS) this.flush();
    } else {
      this.#join(piece, suffix);
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
  #join(piece: Piece, suffix: string): void {
    const isApart = piece.length > JOINED_PIECE_BYTES;
    if (isApart) this.flush();
    else if (this.#large !== undefined) this.#writeLarge(this.#large);
    const text = this.#text;
    this.#text = "";
    if (isApart || (text === "" && suffix === "" && !this.#copies)) {
      this.#large = this.#copies ? Buffer.from(piece) : (piece as SharedBytes as Buffer);
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
    const isReadAtOnce = this.#isSecure && this.#socket.writableLength === 0;
    if (!this.#socket.destroyed) this.#socket.write(large);
    if (pooledBuffer === undefined) return;
    // Memory of a write in progress belongs to the socket.
    if (isReadAtOnce || this.#socket.writableLength === 0) releaseBuffer(pooledBuffer);
    else trackExternalMemory(POOLED_BUFFER_BYTES);
  }
}

/** Joins small writes in a pooled buffer, written at the end of the turn or when full. */
export class PooledWriter implements Flushable {
  isWaiting = false;
  /** Number of flushes: bytes reserved at the same count are still in the buffer. */
  flushCount = 0;
  readonly #socket: Writable;
  /** System sockets take a write at once unless the peer is slow. */
  readonly #isPrompt: boolean;
  /** TLS reports a write as finished later but reads the memory at once: it encrypts or copies it. */
  readonly #isSecure: boolean;
  #pooledBuffer: Buffer | undefined;
  #usedBytes = 0;

  constructor(socket: Writable) {
    this.#socket = socket;
    this.#isSecure = socket instanceof TLSSocket;
    this.#isPrompt = socket instanceof Socket;
  }

  /** Where the reserved bytes must be written, before the next call. */
  get pooledBuffer(): Buffer {
    this.#pooledBuffer ??= acquireBuffer();
    return this.#pooledBuffer;
  }

  /** Backpressure, until the socket's "drain". */
  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** Reserves `sizeBytes`, at most {@link POOLED_BUFFER_BYTES}, in {@link pooledBuffer}; returns their offset. */
  reserve(sizeBytes: number): number {
    // With many writers queued, `scheduleFlush` flushes synchronously, which must not include the bytes being reserved.
    while (!this.isWaiting) scheduleFlush(this);
    if (this.#usedBytes + sizeBytes > POOLED_BUFFER_BYTES) this.flush();
    const at = this.#usedBytes;
    this.#usedBytes += sizeBytes;
    return at;
  }

  flush(): void {
    const pooledBuffer = this.#pooledBuffer;
    const sizeBytes = this.#usedBytes;
    if (pooledBuffer === undefined || sizeBytes === 0) return;
    this.#pooledBuffer = undefined;
    this.#usedBytes = 0;
    this.flushCount += 1;
    if (this.#socket.destroyed || this.#socket.writableEnded) releaseBuffer(pooledBuffer);
    else if (this.#isPrompt && this.#socket.writableLength === 0) this.#writePromptly(pooledBuffer, sizeBytes);
    else if (sizeBytes <= MAX_SHARED_SLICE_BYTES) this.#writeCopy(pooledBuffer, sizeBytes);
    else this.#socket.write(pooledBuffer.subarray(0, sizeBytes), () => releaseBuffer(pooledBuffer));
  }

  #writePromptly(pooledBuffer: Buffer, sizeBytes: number): void {
    this.#socket.write(pooledBuffer.subarray(0, sizeBytes));
    // Memory of a write in progress belongs to the socket.
    if (this.#isSecure || this.#socket.writableLength === 0) releaseBuffer(pooledBuffer);
    else trackExternalMemory(POOLED_BUFFER_BYTES);
  }

  #writeCopy(pooledBuffer: Buffer, sizeBytes: number): void {
    const copy = allocSlice(sizeBytes);
    pooledBuffer.copy(copy, 0, 0, sizeBytes);
    releaseBuffer(pooledBuffer);
    this.#socket.write(copy);
  }
}

const UNKNOWN = -1;
let currentMs = UNKNOWN;

const clockReset: Flushable = {
  isWaiting: false,
  flush: () => {
    currentMs = UNKNOWN;
  },
};

/**
 * Monotonic milliseconds like `performance.now()`, read once per turn of the event loop: for deadlines and ages, of
 * which a request has a dozen. It cannot measure time within a turn. A turn ends with the loop's immediates; a timer
 * due before them still sees the time of the turn it interrupts.
 */
export function turnMs(): number {
  if (currentMs !== UNKNOWN) return currentMs;
  const nowMs = performance.now();
  // `scheduleFlush` may flush synchronously, and then nothing would clear the cached value later.
  scheduleFlush(clockReset);
  if (clockReset.isWaiting) currentMs = nowMs;
  return nowMs;
}
