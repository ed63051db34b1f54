import { chmod, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { spawnProcess, temporaryDirectory, waitUntil } from "@headworks/testkit";

/** A third-party proxy, as a process on a port of its own. */
export interface ProxyProcess {
  readonly port: number;
  /** Output to its log and its standard streams. */
  output(): string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer();
  const { promise, resolve } = Promise.withResolvers<number>();
  server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
  const port = await promise;
  const closed = Promise.withResolvers<undefined>();
  server.close(() => closed.resolve(undefined));
  await closed.promise;
  return port;
}

/** The command, given a free port and a directory for configuration files. */
export type ProxyCommand = (
  port: number,
  directory: string,
) => { readonly command: string; readonly args: readonly string[]; readonly files?: Readonly<Record<string, string>> };

/** Starts a proxy and resolves when it accepts connections. */
export async function startProxyProcess(describe: ProxyCommand): Promise<ProxyProcess> {
  const directory = await temporaryDirectory();
  // Some of them drop root's permissions and still need to read and write there.
  await chmod(directory.path, 0o777);
  const port = await freePort();
  const { command, args, files = {} } = describe(port, directory.path);
  for (const [name, text] of Object.entries(files)) await writeFile(directory.file(name), text, { mode: 0o644 });
  const child = await spawnProcess(command, args, { cwd: directory.path });
  let exit: string | undefined;
  void child.exited.then(({ code, stderr, stdout }) => (exit = `ended with ${code}: ${stdout}${stderr}`));
  const stop = async (): Promise<void> => {
    // squid waits two seconds before it stops.
    await child.stop("SIGKILL");
    await directory.remove();
  };
  try {
    await waitUntil(
      async () => {
        if (exit !== undefined) throw new Error(`${command} ${exit}`);
        return await accepts(port);
      },
      { what: `${command} listening`, timeoutMs: 20_000 },
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { port, output: () => child.stdout() + child.stderr(), [Symbol.asyncDispose]: stop };
}

async function accepts(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(port, "127.0.0.1");
  socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  return await promise.finally(() => socket.destroy());
}

/** A port that forwards to changing proxies, because Weir reads its upstream proxy only at the start. */
export interface Turns {
  readonly port: number;
  /** From now on connections go to the proxy at this port, byte for byte. */
  leadTo(port: number): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startTurns(): Promise<Turns> {
  let target = 0;
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
    const far = connect({ port: target, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => to.resetAndDestroy()).on("close", () => sockets.delete(from));
      from.pipe(to);
    }
  });
  const listening = Promise.withResolvers<undefined>();
  server.listen(0, "127.0.0.1", () => listening.resolve(undefined));
  await listening.promise;
  return {
    port: (server.address() as AddressInfo).port,
    leadTo: (port) => void (target = port),
    async [Symbol.asyncDispose]() {
      const closed = Promise.withResolvers<undefined>();
      server.close(() => closed.resolve(undefined));
      for (const socket of sockets) socket.destroy();
      await closed.promise;
    },
  };
}
