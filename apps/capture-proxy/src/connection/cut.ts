// Tested by ../../test/engine-found.test.ts
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/**
 * Ends a connection so that its peer sees a break and not an end: by a TCP reset, or inside TLS by leaving without
 * the closing alert (RFC 8446, 6.1). What was written and not sent yet is lost.
 */
export function cutConnection(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket instanceof TLSSocket) socket.destroy();
  else socket.resetAndDestroy();
}
