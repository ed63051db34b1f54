import type { Socket } from "node:net";

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
