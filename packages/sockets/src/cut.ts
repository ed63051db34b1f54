import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** What a connection is carried by: a socket of TCP or TLS, or a pair in memory that behaves like one. */
export type ByteSocket = Duplex & {
  /** Ends the writing side and destroys the rest once everything written has left. */
  destroySoon(): void;
  /** The peer sees a break at once. */
  resetAndDestroy(): unknown;
};

/** How long a peer may keep its side open after ours has ended. */
export const LINGER_MS = 2000;
/** The same for a peer that goes on sending a request whose response is complete, or takes its end slowly. */
const MAX_LINGER_MS = 30_000;

/**
 * The time in which a client may read the last response of a connection, behind which what it sends is discarded: an end at
 * once would reset the connection, and take the response away from it (RFC 9112, 9.6).
 */
export class Linger {
  #untilMs: number | undefined;

  get isOn(): boolean {
    return this.#untilMs !== undefined;
  }

  begin(): void {
    this.#untilMs = performance.now() + MAX_LINGER_MS;
  }

  /** The service stops: a client that still sends is not waited for any longer than one that does not. */
  shorten(): void {
    if (this.#untilMs !== undefined) this.#untilMs = Math.min(this.#untilMs, performance.now() + LINGER_MS);
  }

  /** The client sent something: gives it time for more. */
  renew(timed: { deadlineMs: number }): void {
    timed.deadlineMs = Math.min(performance.now() + LINGER_MS, this.#untilMs ?? 0);
  }

  /** A deadline passed. True: the response still leaves, and there is another deadline. */
  goesOn(timed: { deadlineMs: number }, socket: Duplex): boolean {
    if (socket.writableFinished || performance.now() >= (this.#untilMs ?? 0)) return false;
    this.renew(timed);
    return true;
  }
}

/**
 * Ends a connection so that its peer sees a break and not an end: by a TCP reset, or inside TLS by leaving without
 * the closing alert (RFC 8446, 6.1). What was written and not sent yet is lost.
 */
export function cutConnection(socket: ByteSocket): void {
  if (socket.destroyed) return;
  // While its end is still being sent a reset is refused, and the descriptor would stay open.
  const isEnding = socket.writableEnded && !socket.writableFinished;
  if (isEnding || socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/**
 * Sends the last bytes and ends our side. What the peer still sends is discarded, since a reset would take the answer
 * away from it; a peer that does not end its own side in time is cut off.
 */
export function endAndLinger(socket: Socket, last: Uint8Array): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
  socket.end(last);
  socket.resume();
}
