import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { TLSSocket } from "node:tls";
import { trackExternalMemory } from "./external-memory.ts";
import { POOLED_BUFFER_BYTES, releaseBuffer, acquireBuffer } from "./buffer-pool.ts";
import { MAX_SHARED_SLICE_BYTES, allocSlice } from "./slab.ts";
import { scheduleFlush, type Waiting } from "./scheduled-flush.ts";

/**
 * Puts small things, frames for one, together on a desk, which leaves in one write when the turn ends or it is full. What is
 * under way waits for as long as the socket takes.
 */
export class PooledWriter implements Waiting {
  isWaiting = false;
  /** Counts what was handed over: what was reserved at the same count is still on the desk. */
  handOvers = 0;
  readonly #socket: Writable;
  /** Sockets of the system take a write at once unless the other side is slow. */
  readonly #isPrompt: boolean;
  /** TLS says later that it has taken a write, but looks at the memory at once: it encrypts what is there, or copies it. */
  readonly #isSecure: boolean;
  #pooledBuffer: Buffer | undefined;
  #usedBytes = 0;

  constructor(socket: Writable) {
    this.#socket = socket;
    this.#isSecure = socket instanceof TLSSocket;
    this.#isPrompt = socket instanceof Socket;
  }

  /** Where the bytes that were reserved last are to be written, at once. */
  get pooledBuffer(): Buffer {
    this.#pooledBuffer ??= acquireBuffer();
    return this.#pooledBuffer;
  }

  /** The socket holds so much that it takes no more for now; its "drain" tells when it does. */
  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** Makes room for `sizeBytes`, {@link POOLED_BUFFER_BYTES} at most, on the {@link desk}; gives their offset there. */
  reserve(sizeBytes: number): number {
    // Many that wait are flushed in the call itself, which must not take along what is still to be written.
    while (!this.isWaiting) scheduleFlush(this);
    if (this.#usedBytes + sizeBytes > POOLED_BUFFER_BYTES) this.flush();
    const at = this.#usedBytes;
    this.#usedBytes += sizeBytes;
    return at;
  }

  /** Hands over what is on the desk. */
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
    // Memory of a write that is still under way is that socket's.
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
