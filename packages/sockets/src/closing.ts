import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";

/** A TCP or TLS socket, or an in-memory pair that behaves like one. */
export type ByteSocket = Duplex & {
  /** Ends the writing side and destroys the socket once everything written was sent. */
  destroySoon(): void;
  resetAndDestroy(): unknown;
};

/** How long a peer may keep its side open after ours has ended. */
export const LINGER_MS = 2000;

/** The same for a peer that is still sending its request or reads the response slowly. */
const MAX_LINGER_MS = 30_000;

/**
 * The lingering close (RFC 9112, 9.6): after the last response, input is discarded for some time, since an immediate
 * close would reset the connection and discard the response.
 */
export class Linger {
  #untilMs: number | undefined;

  get isOn(): boolean {
    return this.#untilMs !== undefined;
  }

  begin(): void {
    this.#untilMs = performance.now() + MAX_LINGER_MS;
  }

  /** Shutdown: a client that is still sending gets no extra time. */
  shorten(): void {
    if (this.#untilMs !== undefined) this.#untilMs = Math.min(this.#untilMs, performance.now() + LINGER_MS);
  }

  /** Input arrived: extends the deadline. */
  renew(timed: { deadlineMs: number }): void {
    timed.deadlineMs = Math.min(performance.now() + LINGER_MS, this.#untilMs ?? 0);
  }

  /** Called at a deadline. True: the response is still being sent, and a new deadline is set. */
  extend(timed: { deadlineMs: number }, socket: Duplex): boolean {
    if (socket.writableFinished || performance.now() >= (this.#untilMs ?? 0)) return false;
    this.renew(timed);
    return true;
  }
}

/** Closes so that the peer sees an error: a TCP reset, or TLS without close_notify (RFC 8446, 6.1). */
export function cutConnection(socket: ByteSocket): void {
  if (socket.destroyed) return;
  // A reset is refused while the end is being sent, and the descriptor would stay open.
  const isEnding = socket.writableEnded && !socket.writableFinished;
  if (isEnding || socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}

/** Sends the last bytes and ends; discards input. A peer that does not close in time is cut off. */
export function endAndLinger(socket: Socket, last: Uint8Array): void {
  const timer = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once("close", () => clearTimeout(timer));
  socket.end(last);
  socket.resume();
}

/** Error codes of writes after the peer closed or reset the connection. */
const PEER_CLOSED = new Set(["EPIPE", "ECONNRESET", "ECONNABORTED"]);

type Write = Socket["_write"];
type Push = Socket["push"];
type WriteCallback = (error?: Error | null) => void;

/**
 * Keeps a socket readable when a write fails because the peer closed the connection: data sent before that, such as a
 * response to an unread request, is still in the system's receive buffer (RFC 9112, 9.6), but Node would destroy the
 * socket. Later writes are dropped, one per turn of the event loop; once everything received was read, the reading
 * side reports the error or end. A reset reported by a write is reported by the reading side as well, since the system
 * reports it only once.
 */
export function readPastBrokenWrites<S extends Socket>(socket: S): S {
  let isBroken = false;
  let callback: WriteCallback | undefined;
  const settled: WriteCallback = (error) => {
    const { code = "" } = (error ?? {}) as NodeJS.ErrnoException;
    if (error === null || error === undefined || !PEER_CLOSED.has(code)) return callback?.(error);
    isBroken = true;
    if (code === "ECONNRESET") failAtEnd(socket, error);
    callback?.();
  };
  const systemWrite = socket._write.bind(socket);
  const systemWritev = socket._writev?.bind(socket);
  // One function per stream, so that a write allocates no closure.
  const write: Write = (chunk, encoding, done) => {
    callback = done;
    if (isBroken) setImmediate(done);
    else systemWrite(chunk, encoding, settled);
  };
  const writev: NonNullable<Socket["_writev"]> = (chunks, done) => {
    callback = done;
    if (isBroken) setImmediate(done);
    else systemWritev?.(chunks, settled);
  };
  socket._write = write;
  if (systemWritev !== undefined) socket._writev = writev;
  return socket;
}

/** An apparent end is the reset that was already reported. */
function failAtEnd(socket: Socket, error: Error): void {
  const systemPush = socket.push.bind(socket);
  const push: Push = (chunk, encoding) => {
    if (chunk !== null) return systemPush(chunk, encoding);
    socket.destroy(error);
    return false;
  };
  socket.push = push;
}
