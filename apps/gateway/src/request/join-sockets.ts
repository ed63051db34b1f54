// Tested by ../../test/pipeline.test.ts
import type { Socket } from "node:net";

/** One end of a tunnel: paused, without listeners of its own; `bytes` were read from it already. */
export interface TunnelEnd {
  readonly socket: Socket;
  readonly bytes: Buffer | undefined;
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
  if (upstream.bytes !== undefined) client.socket.write(upstream.bytes);
  if (client.bytes !== undefined) upstream.socket.write(client.bytes);
  client.socket.pipe(upstream.socket);
  upstream.socket.pipe(client.socket);
}
