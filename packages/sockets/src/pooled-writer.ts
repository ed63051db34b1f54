import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { TLSSocket } from "node:tls";
import { trackExternalMemory } from "./external-memory.ts";
import { POOLED_BUFFER_BYTES, releaseBuffer, acquireBuffer } from "./buffer-pool.ts";
import { MAX_SHARED_SLICE_BYTES, allocSlice } from "./slab.ts";
import { scheduleFlush, type Waiting } from "./scheduled-flush.ts";

/**
 * Joins small writes, such as frames, in a pooled buffer that is written at the end of the turn or when full. While a
 * write is in progress, further ones wait.
 */
export class PooledWriter implements Waiting {
  isWaiting = false;
  /** Number of flushes: bytes reserved at the same count are still in the buffer. */
  handOvers = 0;
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
    this.handOvers += 1;
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
    const strip = allocSlice(sizeBytes);
    pooledBuffer.copy(strip, 0, 0, sizeBytes);
    releaseBuffer(pooledBuffer);
    this.#socket.write(strip);
  }
}
