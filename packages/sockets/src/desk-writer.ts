// Tested by desk-writer.test.ts
import { Socket } from "node:net";
import type { Writable } from "node:stream";
import { TLSSocket } from "node:tls";
import { noteGarbage } from "./buffer-garbage.ts";
import { DESK_BYTES, returnDesk, takeDesk } from "./desks.ts";
import { MAX_STRIP_BYTES, takeStrip } from "./strips.ts";
import { atTurnEnd, type Waiting } from "./turn-end.ts";

/**
 * Puts small things, frames for one, together on a desk, which leaves in one write when the turn ends or it is full. What is
 * under way waits for as long as the socket takes.
 */
export class DeskWriter implements Waiting {
  isWaiting = false;
  /** Counts what was handed over: what was reserved at the same count is still on the desk. */
  handOvers = 0;
  readonly #socket: Writable;
  /** Sockets of the system take a write at once unless the other side is slow. */
  readonly #isPrompt: boolean;
  /** TLS says later that it has taken a write, but looks at the memory at once: it encrypts what is there, or copies it. */
  readonly #isSecure: boolean;
  #desk: Buffer | undefined;
  #usedBytes = 0;

  constructor(socket: Writable) {
    this.#socket = socket;
    this.#isSecure = socket instanceof TLSSocket;
    this.#isPrompt = socket instanceof Socket;
  }

  /** Where the bytes that were reserved last are to be written, at once. */
  get desk(): Buffer {
    this.#desk ??= takeDesk();
    return this.#desk;
  }

  /** The socket holds so much that it takes no more for now; its "drain" tells when it does. */
  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  /** Makes room for `sizeBytes`, {@link DESK_BYTES} at most, on the {@link desk}; gives their offset there. */
  reserve(sizeBytes: number): number {
    // Many that wait are flushed in the call itself, which must not take along what is still to be written.
    while (!this.isWaiting) atTurnEnd(this);
    if (this.#usedBytes + sizeBytes > DESK_BYTES) this.flush();
    const at = this.#usedBytes;
    this.#usedBytes += sizeBytes;
    return at;
  }

  /** Hands over what is on the desk. */
  flush(): void {
    const desk = this.#desk;
    const sizeBytes = this.#usedBytes;
    if (desk === undefined || sizeBytes === 0) return;
    this.#desk = undefined;
    this.#usedBytes = 0;
    this.handOvers += 1;
    if (this.#socket.destroyed || this.#socket.writableEnded) returnDesk(desk);
    else if (this.#isPrompt && this.#socket.writableLength === 0) this.#writePromptly(desk, sizeBytes);
    else if (sizeBytes <= MAX_STRIP_BYTES) this.#writeCopy(desk, sizeBytes);
    else this.#socket.write(desk.subarray(0, sizeBytes), () => returnDesk(desk));
  }

  #writePromptly(desk: Buffer, sizeBytes: number): void {
    this.#socket.write(desk.subarray(0, sizeBytes));
    // Memory of a write that is still under way is that socket's.
    if (this.#isSecure || this.#socket.writableLength === 0) returnDesk(desk);
    else noteGarbage(DESK_BYTES);
  }

  #writeCopy(desk: Buffer, sizeBytes: number): void {
    const strip = takeStrip(sizeBytes);
    desk.copy(strip, 0, 0, sizeBytes);
    returnDesk(desk);
    this.#socket.write(strip);
  }
}
