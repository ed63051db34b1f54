import type { Socket } from "node:net";

/** How a write fails once the peer has closed or reset the connection. */
const PEER_CLOSED = new Set(["EPIPE", "ECONNRESET", "ECONNABORTED"]);

type Write = Socket["_write"];
type Push = Socket["push"];
type WriteCallback = (error?: Error | null) => void;

/**
 * Keeps a socket readable when a write to it fails because its peer closed the connection: what the peer sent before that,
 * such as a response to a request that it did not read, still lies in the receive buffer of the system (RFC 9112, 9.6).
 * Node would destroy the socket with the failed write. Later writes are dropped, a write for each turn of the
 * event loop; the end of the socket is told by its reading side, with an error or an end, once everything that arrived was
 * read. A reset that a write was told of is an error of the reading side as well, which the system tells only once.
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
  // Always the same function of the stream, so that a write costs no closure.
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

/** What looks like an end behind the last bytes is the reset that was told already. */
function failAtEnd(socket: Socket, error: Error): void {
  const systemPush = socket.push.bind(socket);
  const push: Push = (chunk, encoding) => {
    if (chunk !== null) return systemPush(chunk, encoding);
    socket.destroy(error);
    return false;
  };
  socket.push = push;
}
