import { LINGER_MS, type ByteSocket } from "@headworks/sockets";

/** A peer that broke the rules has so long to read what was wrong. */
const LAST_WORDS_MS = 500;

/**
 * Ends a socket of ours to a client. What that still sends, windows for one, would cause a reset, which takes the end of its
 * answers away from it.
 */
export function endBehindResponses(socket: ByteSocket): void {
  socket.end(() => {
    if (!socket.destroyed) cutIn(LINGER_MS, socket);
  });
  socket.resume();
}

/** Ends a socket whose peer broke the rules. A reset at once would take the GOAWAY away from one that still sends. */
export function endWithLastWords(socket: ByteSocket): void {
  cutIn(LAST_WORDS_MS, socket);
  socket.end();
  socket.resume();
}

function cutIn(ms: number, socket: ByteSocket): void {
  const timer = setTimeout(() => socket.destroy(), ms);
  socket.once("close", () => clearTimeout(timer));
}
