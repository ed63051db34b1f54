import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

export interface Signpost extends AsyncDisposable {
  readonly port: number;
  /** Where it leads. */
  target: number;
}

/** A port that leads to where it is told later, so that proxies can name each other before they all listen. */
export async function startSignpost(): Promise<Signpost> {
  const sockets = new Set<Socket>();
  const signpost = {
    port: 0,
    target: 0,
    [Symbol.asyncDispose]: async (): Promise<void> => {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  const server = createServer((socket) => {
    const onward = connect(signpost.target, "127.0.0.1");
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(from);
      from.on("error", () => undefined);
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  signpost.port = (server.address() as AddressInfo).port;
  return signpost;
}
