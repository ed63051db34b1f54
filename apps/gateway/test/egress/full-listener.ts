import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { spawnProcess } from "@headworks/testkit";

/** A place to which connecting takes forever: its process stands still and its queue is full. */
export interface FullListener extends AsyncDisposable {
  readonly port: number;
}

const PROGRAM = `
  const server = require("node:net").createServer();
  server.listen({ host: process.argv[1], port: Number(process.argv[2]), backlog: 1 }, () => console.log("port " + server.address().port));
`;

/** Listens on an address of loopback's /8 (port 0: chosen by the system) and accepts no connection. Linux only. */
export async function startFullListener(host: string, port = 0): Promise<FullListener> {
  const child = await spawnProcess(process.execPath, ["-e", PROGRAM, host, String(port)]);
  const [, chosen = ""] = await child.waitForOutput(/port (\d+)/);
  process.kill(child.pid, "SIGSTOP");
  const fillers: Socket[] = [];
  // Linux takes one more than the backlog; the next one gets no answer any more.
  for (let count = 0; count < 2; count += 1) {
    const socket = connect(Number(chosen), host);
    fillers.push(socket);
    await once(socket, "connect");
  }
  return {
    port: Number(chosen),
    [Symbol.asyncDispose]: async () => {
      for (const socket of fillers) socket.destroy();
      await child.stop("SIGKILL");
    },
  };
}
