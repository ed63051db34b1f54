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

/** A client just accepted: paused, nothing read. */
interface AcceptedClient {
  readonly services: ProxyServices;
  readonly socket: Socket;
  readonly facts: ClientFacts;
  /** Replaces the handle when another object takes over the connection. */
  readonly becomes: (handle: ConnectionHandle) => void;
}

/** Serves a client accepted by a listener. */
export type ServeClient = (client: AcceptedClient) => ConnectionHandle;

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

/** `check` verifies the clients' credentials. */
export function serveSocks5(check: Socks5Check): ServeClient {
  return ({ services, socket, facts }) => new Socks5Connection(services, socket, facts, check);
}

const SOCKS5_VERSION = 0x05;

/** Detects HTTP or SOCKS5 by the first byte. A silent client gets the limits of HTTP. */
export const serveHttpOrSocks5: ServeClient = (client) => {
  const { services, socket, facts, becomes } = client;
  return new SilentClient(services, socket, (isSocks5) =>
    becomes(isSocks5 ? new Socks5Connection(services, socket, facts, undefined) : serveHttp(client)),
  );
};

/** A client whose first byte is awaited; the byte stays in the socket. */
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

/** A SOCKS5 client costs two connections for the life of its tunnel; browsers open some hundreds. */
export const MAX_SOCKS5_CLIENTS = 4096;

/** Minimum interval between warnings about rejected clients. */
const TOLD_EVERY_MS = 10_000;

/** A client and the current handler of its connection. */
interface Client extends SetMember {
  readonly socket: Socket;
  /** Undefined only until it is served. */
  handle: ConnectionHandle | undefined;
}

/** Accepts clients on one address and tracks them until they disconnect. */
export class ProxyListener {
  readonly #services: ProxyServices;
  readonly #serve: ServeClient;
  readonly #server: Server;
  readonly #clients = new ConnectionSet<Client>();
  readonly #session: number | undefined;
  #lastUseMs = performance.now();
  /** Shared by all listeners: entries identify connections by it. */
  static #lastNumber = 0;

  /**
   * @param maxClients  further clients are rejected
   * @param session  number of the session that exchanges are recorded in; by default the active one
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
    // Half-open: a client that has sent its last request may still read the response.
    this.#server = createServer({ allowHalfOpen: true, noDelay: true, pauseOnConnect: true }, (socket) =>
      this.#accept(socket),
    );
    if (Number.isFinite(maxClients)) this.#limit(maxClients);
  }

  get clientCount(): number {
    return this.#clients.size;
  }

  /** Milliseconds since a client connected or disconnected. */
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

  /** Stops accepting, drains exchanges for `graceMs`, then aborts the rest. */
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
