// Tested by ../../test/pipeline.test.ts
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { ListenerFacts, Peer } from "#request/client-stream.ts";
import type { ConnectionServices } from "./connection-services.ts";
import { Http1Connection } from "./http1-connection.ts";

/** A connection as the listener keeps it, to end it. */
export interface OpenConnection {
  /** The present request is the last one; an idle connection closes at once. */
  drain(): void;
  destroy(): void;
}

/** Accepts clients on one address. */
export class DataListener {
  readonly #server: Server;
  readonly #connections: Set<OpenConnection>;

  private constructor(server: Server, connections: Set<OpenConnection>) {
    this.#server = server;
    this.#connections = connections;
  }

  /** Listens; rejects as `listen` does (`EADDRINUSE`). */
  static async open(
    at: { readonly address: string; readonly port: number; readonly name: string },
    services: Omit<ConnectionServices, "closed">,
  ): Promise<DataListener> {
    const connections = new Set<OpenConnection>();
    const withBook: ConnectionServices = { ...services, closed: (connection) => void connections.delete(connection) };
    const facts: { -readonly [K in keyof ListenerFacts]: ListenerFacts[K] } = {
      name: at.name,
      isSecure: false,
      port: at.port,
    };
    const server = createServer({ noDelay: true, allowHalfOpen: true, pauseOnConnect: true }, (socket: Socket) => {
      const peer: Peer = { address: plainAddress(socket.remoteAddress ?? ""), port: socket.remotePort ?? 0 };
      const connection = new Http1Connection(withBook, facts, peer, socket);
      connections.add(connection);
      connection.begin(undefined);
    });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ host: at.address, port: at.port, backlog: 4096 }, resolve);
    });
    facts.port = (server.address() as AddressInfo).port;
    return new DataListener(server, connections);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Takes no more connections and lets requests end; resolves when all are gone, at the latest after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const connection of this.#connections) connection.drain();
    const timer = setTimeout(() => {
      for (const connection of this.#connections) connection.destroy();
    }, graceMs);
    await closed;
    clearTimeout(timer);
  }
}

/** IPv4-mapped IPv6 addresses are shown as the IPv4 address they mean. */
function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}
