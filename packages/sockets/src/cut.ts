// Tested by ../../../apps/capture-proxy/test/engine-found.test.ts
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/** How long a peer may keep its side open after ours has ended. */
export const LINGER_MS = 2000;

/**
 * Ends a connection so that its peer sees a break and not an end: by a TCP reset, or inside TLS by leaving without
 * the closing alert (RFC 8446, 6.1). What was written and not sent yet is lost.
 */
export function cutConnection(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket instanceof TLSSocket) socket.destroy();
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
