// Tested by ../../test/engine-flow.test.ts
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import type { Failure } from "#exchange/failure.ts";
import { addressText } from "#upstream/dial.ts";
import { ConnectTunnel } from "./connect-tunnel.ts";
import type { ConnectionHandle } from "./connect-tunnel.ts";
import { HttpConnection } from "./http-connection.ts";
import type { ProxyServices } from "./proxy-services.ts";

/** Accepts clients of the HTTP proxy and keeps track of them until they are gone. */
export class ProxyListener {
  readonly #services: ProxyServices;
  readonly #server: Server;
  readonly #connections = new Map<Socket, ConnectionHandle>();
  #lastNumber = 0;

  constructor(services: ProxyServices) {
    this.#services = services;
    // Half-open: a client that has sent its last request may still read the answer.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#accept(socket),
    );
  }

  /** Rejects with the system's error (`EADDRINUSE`, `EACCES`, …). */
  listen(port: number, host: string): Promise<AddressInfo> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ port, host, backlog: 1024 }, () => {
        this.#server.off("error", reject);
        this.#server.on("error", (error) => this.#services.log.error({ err: error }, "The proxy listener failed"));
        resolve(this.#server.address() as AddressInfo);
      });
    });
  }

  /** Takes no more connections, lets exchanges in flight end for `graceMs`, then ends the rest. */
  async close(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
    });
    for (const connection of this.#connections.values()) connection.drain();
    const timer = setTimeout(() => this.#abortAll(), graceMs);
    await closed;
    clearTimeout(timer);
  }

  #abortAll(): void {
    const failure: Failure = {
      stage: "policy",
      side: "internal",
      code: "SHUTDOWN",
      message: "The proxy was stopped before the exchange was complete",
    };
    for (const [socket, connection] of this.#connections) {
      connection.abort(failure);
      socket.destroy();
    }
  }

  #accept(socket: Socket): void {
    const services = this.#services;
    const address = socket.remoteAddress ?? "";
    if (!services.policy().allowsClient(address)) {
      services.log.warn({ client: address }, "Refused a client that is not in allowed_ips");
      socket.destroy();
      return;
    }
    services.gauges.activeConnections += 1;
    const facts = {
      address: addressText(address, socket.remotePort ?? 0),
      connection: (this.#lastNumber += 1),
      sni: undefined,
      tls: undefined,
    };
    socket.once("close", () => {
      services.gauges.activeConnections -= 1;
      this.#connections.delete(socket);
    });
    const connection = new HttpConnection(services, socket, facts, undefined, (head, first) => {
      const tunnel = ConnectTunnel.open(services, facts, socket, head, first);
      if (tunnel) this.#connections.set(socket, tunnel);
    });
    this.#connections.set(socket, connection);
    connection.begin(undefined);
  }
}
