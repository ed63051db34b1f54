import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { hostPortText } from "@headworks/host-patterns";
import { reasonPhrase } from "@headworks/http-fields";
import { responseHeadText } from "@headworks/http1";
import { ConnectionSet, endAndLinger, NOT_IN_SET, type SetMember, type Timed } from "@headworks/sockets";
import type { ClientFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import type { OwnListeners } from "#upstream/loop-detector.ts";
import { ConnectTunnel } from "./connect-tunnel.ts";
import { HttpConnection } from "./http-connection.ts";
import { Http2Connection } from "./http2-connection.ts";
import type { ProxyServices } from "./proxy-services.ts";
import { type Socks5Check, Socks5Connection } from "./socks5-connection.ts";
import type { ConnectionHandle, OpenTunnel, TunnelClient } from "./tunnel-exchange.ts";

/** A client just accepted: paused, nothing read. */
interface AcceptedClient {
  readonly services: ProxyServices;
  readonly socket: Socket;
  readonly facts: ClientFacts;
  /** Replaces the handle when another object takes over the connection. */
  readonly becomes: (handle: ConnectionHandle) => void;
}

/** Serves a client accepted by a listener. */
type ServeClient = (client: AcceptedClient) => ConnectionHandle;

const serveHttp: ServeClient = ({ services, socket, facts, becomes }) => {
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
const serveHttpOrSocks5: ServeClient = (client) => {
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
  readonly #detected: (isSocks5: boolean) => void;

  constructor(services: ProxyServices, socket: Socket, detected: (isSocks5: boolean) => void) {
    this.#services = services;
    this.#socket = socket;
    this.#detected = detected;
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
    this.#detected(first[0] === SOCKS5_VERSION);
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
const MAX_SOCKS5_CLIENTS = 4096;

/** Minimum interval between warnings about rejected clients. */
const WARNING_INTERVAL_MS = 10_000;

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
    let warnedMs = Number.NEGATIVE_INFINITY;
    this.#server.maxConnections = maxClients;
    this.#server.on("drop", (dropped) => {
      const nowMs = performance.now();
      if (nowMs - warnedMs < WARNING_INTERVAL_MS) return;
      warnedMs = nowMs;
      this.#services.log.warn(
        { client: dropped?.remoteAddress, maxClients },
        "Rejected clients: the connection limit is reached",
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

/** An HTTP/1.1 connection after its CONNECT. */
function connectionClient(socket: Socket): TunnelClient {
  return {
    socket,
    version: "HTTP/1.1",
    accept: () => void socket.write(responseHeadText(200, "Connection established", []), "latin1"),
    refuse: ({ status, reason = reasonPhrase(status), fields, body }) => {
      socket.write(responseHeadText(status, reason, [...fields, "Connection", "close"]), "latin1");
      endAndLinger(socket, body);
    },
  };
}

/** A port whose exchanges are recorded in one session. */
interface SessionListener {
  readonly url: string;
  readonly clientCount: number;
  readonly idleMs: number;
  close(): Promise<void>;
}

interface Bound {
  readonly listener: ProxyListener;
  readonly address: string;
  readonly port: number;
}

/** Drain time for clients of a run that has ended. */
const SESSION_GRACE_MS = 1000;

/** The listeners of the proxy. All listen methods reject with the system's error. */
export class ProxyListeners {
  readonly #services: () => ProxyServices;
  readonly #own: OwnListeners;
  readonly #open = new Set<ProxyListener>();

  constructor(services: () => ProxyServices, own: OwnListeners) {
    this.#services = services;
    this.#own = own;
  }

  /** Returns the address: `http://127.0.0.1:8888`. */
  async listenHttp(port: number, host: string): Promise<string> {
    const { address, port: bound } = await this.#listen(port, host, serveHttp);
    return `http://${hostPortText(address, bound)}`;
  }

  /** Returns the address: `socks5://127.0.0.1:1080`. */
  async listenSocks5(port: number, host: string, check: Socks5Check): Promise<string> {
    const { address, port: bound } = await this.#listen(port, host, serveSocks5(check), MAX_SOCKS5_CLIENTS);
    return `socks5://${hostPortText(address, bound)}`;
  }

  /** Listens for HTTP and SOCKS5 on a port chosen by the system. */
  async listenForSession(session: number, host: string): Promise<SessionListener> {
    const { listener, address, port } = await this.#listen(0, host, serveHttpOrSocks5, undefined, session);
    return {
      url: `http://${hostPortText(address, port)}`,
      get clientCount() {
        return listener.clientCount;
      },
      get idleMs() {
        return listener.idleMs;
      },
      close: async () => {
        if (!this.#open.delete(listener)) return;
        await listener.close(SESSION_GRACE_MS);
        this.#own.remove(address, port);
      },
    };
  }

  /** Stops accepting, drains exchanges for `graceMs`, then aborts the rest. */
  async close(graceMs: number): Promise<void> {
    await Promise.all(Array.from(this.#open, (listener) => listener.close(graceMs)));
  }

  async #listen(
    wanted: number,
    host: string,
    serve: ServeClient,
    maxClients?: number,
    session?: number,
  ): Promise<Bound> {
    const listener = new ProxyListener(this.#services(), serve, maxClients, session);
    const { address, port } = await listener.listen(wanted, host);
    this.#own.add(address, port);
    this.#open.add(listener);
    return { listener, address, port };
  }
}
