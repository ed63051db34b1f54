import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer, type TlsOptions } from "node:tls";
import { closeServer, listenAnywhere, trackSockets, type Closable, type LoopbackHost } from "./listening.ts";
import { RawConnection, type Octets } from "./raw-connection.ts";

/**
 * What the server does with a connection: a function (the connection is ended when it returns), or bytes that are
 * sent once a request head (up to an empty line) has come, before the connection is ended.
 */
export type RawScript = Octets | ((connection: RawConnection, index: number) => Promise<void> | void);

/** A running raw server. */
export interface RawServer extends Closable {
  readonly port: number;
  readonly host: LoopbackHost;
  /** Every connection accepted so far, oldest first. */
  readonly connections: readonly RawConnection[];
  /** Errors thrown by the script. A test that wants them to count looks here; `close` rejects with the first one. */
  readonly errors: readonly Error[];
}

/** Starts a server that speaks nothing by itself. `tls` takes node's options (`cert`, `key`, `ALPNProtocols`). */
export async function startRawServer(
  script: RawScript,
  options: { host?: LoopbackHost; tls?: TlsOptions } = {},
): Promise<RawServer> {
  const connections: RawConnection[] = [];
  const errors: Error[] = [];
  const accept = (socket: Socket): void => {
    const connection = new RawConnection(socket);
    const index = connections.push(connection) - 1;
    runScript(script, connection, index).catch((error: unknown) => {
      errors.push(error instanceof Error ? error : new Error(String(error)));
      connection.destroy();
    });
  };
  const server =
    options.tls === undefined
      ? createServer({ allowHalfOpen: true, noDelay: true }, accept)
      : createTlsServer({ ...options.tls, allowHalfOpen: true }, accept);
  const sockets = trackSockets(server);
  const host = options.host ?? "127.0.0.1";
  const port = await listenAnywhere(server, host);
  let closing = false;
  const close = async (): Promise<void> => {
    if (closing) return;
    closing = true;
    const first = errors[0];
    await closeServer(server, sockets);
    if (first !== undefined) throw first;
  };
  return { port, host, connections, errors, close, [Symbol.asyncDispose]: close };
}

async function runScript(script: RawScript, connection: RawConnection, index: number): Promise<void> {
  if (typeof script === "function") await script(connection, index);
  else {
    await connection.readUntil("\r\n\r\n");
    await connection.write(script);
  }
  connection.end();
}
