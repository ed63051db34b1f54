import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { hostPortText } from "@headworks/host-patterns";
import { NOT_IN_SET, ConnectionSet, type SetMember, type Timed } from "@headworks/sockets";
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

const SOCKS5_VERSION = 0x05;

/**
 * Clients that speak either to a port that has no other name: the first byte tells. A client that says nothing is one of HTTP, whose
 * limits hold.
 */
export const serveHttpOrSocks5: ServeClient = (client) => {
  const { services, socket, facts, becomes } = client;
  return new SilentClient(services, socket, (isSocks5) =>
    becomes(isSocks5 ? new Socks5Connection(services, socket, facts, undefined) : serveHttp(client)),
  );
};

/** A client whose first byte is awaited; it stays on the socket. */
class SilentClient implements Timed, ConnectionHandle {
  setIndex = NOT_IN_SET;
  readonly deadlineMs: number;
  readonly #services: ProxyServices;
  readonly #socket: Socket;
  readonly #spoke: (isSocks5: boolean) => void;

  constructor(services: ProxyServices, socket: Socket, spoke: (isSocks5: boolean) => void) {
    this.#services = services;
    this.#socket = socket;
    this.#spoke = spoke;
    this.deadlineMs = performance.now() + services.policy().headTimeoutMs;
    services.deadlines.add(this);
    socket.on("data", this.#onData);
    socket.on("end", this.#onEnd);
    socket.on("error", this.#onEnd);
    socket.on("close", this.#forget);
    socket.resume();
  }

  drain(): void {
    this.#socket.destroy();
  }

  abort(): void {
    this.#socket.destroy();
  }

  onDeadline(): void {
    this.#socket.destroy();
  }

  readonly #onData = (first: Buffer): void => {
    this.#forget();
    this.#socket.pause();
    this.#socket.unshift(first);
    this.#spoke(first[0] === SOCKS5_VERSION);
  };

  readonly #onEnd = (): void => void this.#socket.destroy();

  readonly #forget = (): void => {
    this.#services.deadlines.delete(this);
    this.#socket.off("data", this.#onData);
    this.#socket.off("end", this.#onEnd);
    this.#socket.off("error", this.#onEnd);
    this.#socket.off("close", this.#forget);
  };
}

/** A client of SOCKS5 costs two connections for as long as its tunnel lasts; browsers open some hundreds. */
export const MAX_SOCKS5_CLIENTS = 4096;

/** A flood is told once in so many milliseconds. */
const TOLD_EVERY_MS = 10_000;

/** A client that is there, and what its connection is at present. */
interface Client extends SetMember {
  readonly socket: Socket;
  /** Undefined only until it is served. */
  handle: ConnectionHandle | undefined;
}

/** Accepts clients of one address and keeps track of them until they are gone. */
export class ProxyListener {
  readonly #services: ProxyServices;
  readonly #serve: ServeClient;
  readonly #server: Server;
  readonly #clients = new ConnectionSet<Client>();
  readonly #session: number | undefined;
  #lastUseMs = performance.now();
  /** One count for all listeners: entries tell connections apart by it. */
  static #lastNumber = 0;

  /**
   * @param maxClients  who comes when so many are there is turned away
   * @param session  number of the session that exchanges of its clients belong to; without it: the active one
   */
  constructor(
    services: ProxyServices,
    serve: ServeClient = serveHttp,
    maxClients = Number.POSITIVE_INFINITY,
    session?: number,
  ) {
    this.#services = services;
    this.#serve = serve;
    this.#session = session;
    // Half-open: a client that has sent its last request may still read the answer.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#accept(socket),
    );
    if (Number.isFinite(maxClients)) this.#limit(maxClients);
  }

  get clientCount(): number {
    return this.#clients.size;
  }

  /** Milliseconds since a client came or went. */
  get idleMs(): number {
    return performance.now() - this.#lastUseMs;
  }

  #limit(maxClients: number): void {
    let toldMs = Number.NEGATIVE_INFINITY;
    this.#server.maxConnections = maxClients;
    this.#server.on("drop", (dropped) => {
      const nowMs = performance.now();
      if (nowMs - toldMs < TOLD_EVERY_MS) return;
      toldMs = nowMs;
      this.#services.log.warn(
        { client: dropped?.remoteAddress, maxClients },
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
      session: this.#session,
      sni: undefined,
      tls: undefined,
    };
    this.#lastUseMs = performance.now();
    const client: Client = { setIndex: NOT_IN_SET, socket, handle: undefined };
    this.#clients.add(client);
    socket.once("close", () => {
      services.gauges.activeConnections -= 1;
      this.#clients.delete(client);
      this.#lastUseMs = performance.now();
    });
    const becomes = (handle: ConnectionHandle): void => void (client.handle = handle);
    becomes(this.#serve({ services, socket, facts, becomes }));
  }
}
