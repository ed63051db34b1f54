// Tested by ../../test/engine-flow.test.ts and ../../test/socks5-listener.test.ts
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { hostPortText } from "@headworks/host-patterns";
import { NOWHERE, Roster, type Rostered } from "@headworks/sockets";
import type { ClientFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { ConnectTunnel } from "./connect-tunnel.ts";
import { Http2Connection } from "./http2-connection.ts";
import { HttpConnection } from "./http-connection.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { Socks5Connection } from "./socks5-connection.ts";
import type { Socks5Check } from "./socks5-connection.ts";
import { connectionClient } from "./tunnel-client.ts";
import type { ConnectionHandle, OpenTunnel } from "./tunnel-client.ts";

/** A client that was accepted: paused, and nothing read yet. */
interface AcceptedClient {
  readonly services: ProxyServices;
  readonly socket: Socket;
  readonly facts: ClientFacts;
  /** Something else has the connection from now on. */
  readonly becomes: (handle: ConnectionHandle) => void;
}

/** What a listener does with its clients. */
export type ServeClient = (client: AcceptedClient) => ConnectionHandle;

/** Clients of the HTTP proxy. */
export const serveHttp: ServeClient = ({ services, socket, facts, becomes }) => {
  const openTunnel: OpenTunnel = (client, head, first) => ConnectTunnel.open(services, facts, client, head, first);
  const connection = new HttpConnection(services, socket, facts, undefined, {
    onConnect: (head, first) => {
      const tunnel = openTunnel(connectionClient(socket), head, first);
      if (tunnel) becomes(tunnel);
    },
    onHttp2: (first) => {
      socket.unshift(first);
      becomes(new Http2Connection(services, socket, facts, { openTunnel }));
    },
  });
  connection.begin(undefined);
  return connection;
};

/** Clients that speak SOCKS5; `check` judges their credentials. */
export function serveSocks5(check: Socks5Check): ServeClient {
  return ({ services, socket, facts }) => new Socks5Connection(services, socket, facts, check);
}

/** A client of SOCKS5 costs two connections for as long as its tunnel lasts; browsers open some hundreds. */
export const MOST_SOCKS5_CLIENTS = 4096;

/** A flood is told once in so many milliseconds. */
const TOLD_EVERY_MS = 10_000;

/** A client that is there, and what its connection is at present. */
interface Client extends Rostered {
  readonly socket: Socket;
  /** Undefined only until it is served. */
  handle: ConnectionHandle | undefined;
}

/** Accepts clients of one address and keeps track of them until they are gone. */
export class ProxyListener {
  readonly #services: ProxyServices;
  readonly #serve: ServeClient;
  readonly #server: Server;
  readonly #clients = new Roster<Client>();
  /** One count for all listeners: entries tell connections apart by it. */
  static #lastNumber = 0;

  /** @param mostClients  who comes when so many are there is turned away */
  constructor(services: ProxyServices, serve: ServeClient = serveHttp, mostClients = Number.POSITIVE_INFINITY) {
    this.#services = services;
    this.#serve = serve;
    // Half-open: a client that has sent its last request may still read the answer.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#accept(socket),
    );
    if (Number.isFinite(mostClients)) this.#limit(mostClients);
  }

  #limit(mostClients: number): void {
    let toldMs = Number.NEGATIVE_INFINITY;
    this.#server.maxConnections = mostClients;
    this.#server.on("drop", (dropped) => {
      const nowMs = performance.now();
      if (nowMs - toldMs < TOLD_EVERY_MS) return;
      toldMs = nowMs;
      this.#services.log.warn(
        { client: dropped?.remoteAddress, mostClients },
        "Turned clients away: too many are there",
      );
    });
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
    this.#clients.forEach(({ handle }) => handle?.drain());
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
    this.#clients.forEach(({ socket, handle }) => {
      handle?.abort(failure);
      socket.destroy();
    });
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
      address: hostPortText(address, socket.remotePort ?? 0),
      connection: (ProxyListener.#lastNumber += 1),
      sni: undefined,
      tls: undefined,
    };
    const client: Client = { rosterPlace: NOWHERE, socket, handle: undefined };
    this.#clients.add(client);
    socket.once("close", () => {
      services.gauges.activeConnections -= 1;
      this.#clients.delete(client);
    });
    const becomes = (handle: ConnectionHandle): void => void (client.handle = handle);
    becomes(this.#serve({ services, socket, facts, becomes }));
  }
}
