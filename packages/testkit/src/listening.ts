import { once } from "node:events";
import type { Server, Socket } from "node:net";

/** Anything a test has to close; usable with `await using`. */
export interface Closable {
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** An address of this machine to listen on. */
export type LoopbackHost = "127.0.0.1" | "::1";

/** Listens on a port of the system's choice and answers it. */
export async function listenAnywhere(server: Server, host: LoopbackHost = "127.0.0.1"): Promise<number> {
  server.listen(0, host);
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the server has no port");
  return address.port;
}

/** The open TCP sockets of a server, so that closing it does not wait for its clients. */
export function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return sockets;
}

/** Stops listening, cuts what is open, and waits until the port is free. */
export async function closeServer(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  for (const socket of sockets) socket.destroy();
  await closed;
}

/** `host` as it stands in a URL. */
export const urlHost = (host: LoopbackHost): string => (host === "::1" ? "[::1]" : host);
