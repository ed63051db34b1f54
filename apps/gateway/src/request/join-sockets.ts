// Tested by ../../test/pipeline.test.ts
import type { Socket } from "node:net";
import { noteRead } from "@headworks/sockets";

/** One end of a tunnel: paused, without listeners of its own; `bytes` were read from it already. */
export interface TunnelEnd {
  readonly socket: Socket;
  readonly bytes: Buffer | undefined;
  /** How bytes of this end are received where the socket has no events for them; what it gives is the receiver's. */
  readonly receive?: (receiver: (piece: Buffer) => void) => void;
}

/** Passes bytes both ways, with back-pressure and half-closes, until both sides ended or one broke. */
export function joinSockets(client: TunnelEnd, upstream: TunnelEnd, ended: (bytesToClient: number) => void): void {
  let isEnded = false;
  const end = (): void => {
    if (isEnded) return;
    isEnded = true;
    const sent = client.socket.bytesWritten;
    client.socket.destroy();
    upstream.socket.destroy();
    ended(sent);
  };
  for (const { socket } of [client, upstream]) {
    socket.on("error", end);
    socket.on("close", end);
  }
  pass(upstream, client.socket);
  pass(client, upstream.socket);
}

function pass(from: TunnelEnd, to: Socket): void {
  const { socket } = from;
  const receiver = (piece: Buffer): void => {
    noteRead(piece.length);
    if (!to.write(piece)) socket.pause();
  };
  if (from.receive === undefined) socket.on("data", receiver);
  else from.receive(receiver);
  to.on("drain", () => socket.resume());
  socket.on("end", () => to.end());
  if (from.bytes !== undefined) to.write(from.bytes);
  socket.resume();
}
