import type { Duplex } from "node:stream";
import { trackExternalMemory } from "@headworks/sockets";

/** One end of a tunnel: paused, without listeners; `bytes` were read from it already. */
export interface TunnelEnd {
  readonly socket: Duplex;
  readonly bytes: Buffer | undefined;
  /** Replaces `data` events for a socket that has none; the receiver owns the pieces. */
  readonly receive?: (receiver: (piece: Buffer) => void) => void;
  /** `bytes` are the last ones; the socket may have emitted `end` already. */
  readonly hasEnded?: boolean;
}

/** Time for the last bytes of one end to be written to the other. */
const LAST_BYTES_MS = 10_000;

/**
 * Forwards bytes in both directions, with back-pressure and half-closes, until both ends have ended or one broke. The
 * last bytes of an end still reach the other. `ended` is called once, with the number of bytes sent to the client.
 */
export function joinSockets(client: TunnelEnd, upstream: TunnelEnd, ended: (bytesToClient: number) => void): void {
  let isEnded = false;
  let sentBytes = 0;
  let lastBytes: NodeJS.Timeout | undefined;
  const end = (): void => {
    if (isEnded) return;
    isEnded = true;
    clearTimeout(lastBytes);
    client.socket.destroy();
    upstream.socket.destroy();
    ended(sentBytes);
  };
  const closed = (other: Duplex): void => {
    if (isEnded || other.destroyed || other.writableFinished) return end();
    other.once("finish", end);
    other.end();
    lastBytes ??= setTimeout(end, LAST_BYTES_MS);
  };
  client.socket.on("error", end);
  upstream.socket.on("error", end);
  client.socket.on("close", () => closed(upstream.socket));
  upstream.socket.on("close", () => closed(client.socket));
  pass(upstream, client.socket, (sizeBytes) => (sentBytes += sizeBytes));
  pass(client, upstream.socket);
}

function pass(from: TunnelEnd, to: Duplex, count?: (sizeBytes: number) => void): void {
  const { socket } = from;
  const send = (piece: Buffer): boolean => {
    count?.(piece.length);
    return to.write(piece);
  };
  const receiver = (piece: Buffer): void => {
    trackExternalMemory(piece.length);
    if (!send(piece)) socket.pause();
  };
  if (from.receive === undefined) socket.on("data", receiver);
  else from.receive(receiver);
  to.on("drain", () => socket.resume());
  socket.on("end", () => to.end());
  if (from.bytes !== undefined) send(from.bytes);
  if (from.hasEnded === true) to.end();
  socket.resume();
}
