// Tested by ../../test/engine-flow.test.ts
import { connect as connectTcp, isIP } from "node:net";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import type { Moments, UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { connectFailure, tlsFailure } from "./connect-failure.ts";
import { NameCache } from "./name-cache.ts";
import type { OwnListeners } from "./own-listeners.ts";
import type { UpstreamTrust } from "./trust.ts";

/** Where to connect, and how the name is proven. */
export interface Destination {
  /** Name or address without brackets. */
  readonly host: string;
  readonly port: number;
  readonly secure: boolean;
  /** Name for SNI and for the certificate check; undefined: `host`. */
  readonly serverName: string | undefined;
}

/** Whether a connection to one may serve requests for the other. */
export function isSamePlace(a: Destination, b: Destination): boolean {
  return a.host === b.host && a.port === b.port && a.secure === b.secure && a.serverName === b.serverName;
}

export interface Dialled {
  readonly socket: Socket | TLSSocket;
  /** `address:port` of the peer. */
  readonly address: string;
  readonly tls: UpstreamTlsFacts | undefined;
}

/** Receives the outcome of one attempt, exactly once. */
export interface DialResult {
  connected(dialled: Dialled): void;
  failed(failure: Failure): void;
}

/** One for the process, as the system's own resolver is. */
const names = new NameCache();

/** Opens connections to origins: resolves, connects, proves the certificate, refuses to call ourselves. */
export class Dialer {
  readonly #trust: UpstreamTrust;
  readonly #own: OwnListeners;
  readonly #timeoutMs: () => number;

  constructor(trust: UpstreamTrust, own: OwnListeners, timeoutMs: () => number) {
    this.#trust = trust;
    this.#own = own;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * Starts to connect; fills the moments of `moments` as the steps happen. Gives the function that gives up, after
   * which `result` hears nothing more.
   */
  dial(destination: Destination, moments: Moments, result: DialResult): () => void {
    return new Attempt(destination, moments, result, this.#trust, this.#own, this.#timeoutMs()).abandon;
  }
}

class Attempt {
  readonly abandon: () => void;
  readonly #destination: Destination;
  readonly #moments: Moments;
  readonly #result: DialResult;
  readonly #trust: UpstreamTrust;
  readonly #own: OwnListeners;
  readonly #socket: Socket | TLSSocket;
  readonly #timer: NodeJS.Timeout;
  #settled = false;

  constructor(
    destination: Destination,
    moments: Moments,
    result: DialResult,
    trust: UpstreamTrust,
    own: OwnListeners,
    timeoutMs: number,
  ) {
    this.#destination = destination;
    this.#moments = moments;
    this.#result = result;
    this.#trust = trust;
    this.#own = own;
    this.abandon = () => this.#abandon();
    const nowMs = performance.now();
    if (isIP(destination.host) === 0) moments.resolveStarted = nowMs;
    else moments.connectStarted = nowMs;
    this.#socket = destination.secure ? this.#openTls(destination) : this.#openTcp(destination);
    this.#timer = setTimeout(() => this.#timeOut(timeoutMs), timeoutMs);
    this.#socket.on("lookup", this.#onLookup);
    this.#socket.on("connect", this.#onConnect);
    if (destination.secure) this.#socket.on("secureConnect", this.#onReady);
    this.#socket.on("error", this.#onError);
    this.#socket.on("close", this.#onClose);
  }

  #openTcp({ host, port }: Destination): Socket {
    return connectTcp({ host, port, noDelay: true, autoSelectFamily: true, lookup: names.lookup });
  }

  #openTls(destination: Destination): TLSSocket {
    const { host, port } = destination;
    const serverName = this.#serverName();
    return connectTls({
      host,
      port,
      noDelay: true,
      autoSelectFamily: true,
      lookup: names.lookup,
      ALPNProtocols: ["http/1.1"],
      ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
      ...this.#trust.options({ host, port, serverName }),
    } as ConnectionOptions & { autoSelectFamily: boolean });
  }

  #serverName(): string {
    return this.#destination.serverName ?? this.#destination.host;
  }

  readonly #onLookup = (): void => {
    if (this.#moments.connectStarted === 0) this.#moments.connectStarted = performance.now();
  };

  readonly #onConnect = (): void => {
    const socket = this.#socket;
    if (this.#own.includes(socket.remoteAddress ?? "", socket.remotePort ?? 0, socket.localAddress ?? "")) {
      const { host, port } = this.#destination;
      this.#fail({
        stage: "policy",
        side: "internal",
        code: "LOOP",
        message: `${host}:${port} is this proxy itself (${socket.remoteAddress}:${socket.remotePort}); the request would go round for ever`,
      });
      return;
    }
    if (this.#destination.secure) this.#moments.tlsStarted = performance.now();
    else this.#onReady();
  };

  readonly #onReady = (): void => {
    if (this.#settled) return;
    this.#settle();
    const socket = this.#socket;
    this.#moments.upstreamReady = performance.now();
    const address = addressText(socket.remoteAddress ?? "", socket.remotePort ?? 0);
    const { host, port, secure } = this.#destination;
    const tls = secure
      ? this.#trust.facts(socket as TLSSocket, { host, port, serverName: this.#serverName() })
      : undefined;
    this.#result.connected({ socket, address, tls });
  };

  readonly #onError = (error: NodeJS.ErrnoException): void => {
    const { host, port } = this.#destination;
    const isTls = this.#moments.tlsStarted > 0;
    this.#fail(isTls ? tlsFailure(error, this.#serverName()) : connectFailure(error, host, port));
  };

  readonly #onClose = (): void => {
    const { host, port } = this.#destination;
    this.#fail({
      stage: this.#moments.tlsStarted > 0 ? "tls" : "connect",
      side: "upstream",
      code: "UPSTREAM_CLOSED",
      message: `${host}:${port} closed the connection before it was ready`,
    });
  };

  #timeOut(timeoutMs: number): void {
    const { host, port } = this.#destination;
    const { connectStarted, tlsStarted } = this.#moments;
    const stage = tlsStarted > 0 ? "tls" : connectStarted > 0 ? "connect" : "resolve";
    const step = { tls: "complete TLS", connect: "accept the connection", resolve: "be resolved" }[stage];
    this.#fail({
      stage,
      side: "upstream",
      code: "UPSTREAM_TIMEOUT",
      message: `${host}:${port} did not ${step} within ${timeoutMs} ms`,
    });
  }

  #fail(failure: Failure): void {
    if (this.#settled) return;
    this.#settle();
    this.#discard();
    this.#result.failed(failure);
  }

  #abandon(): void {
    if (this.#settled) return;
    this.#settle();
    this.#discard();
  }

  #settle(): void {
    this.#settled = true;
    clearTimeout(this.#timer);
    const socket = this.#socket;
    socket.off("lookup", this.#onLookup);
    socket.off("connect", this.#onConnect);
    socket.off("secureConnect", this.#onReady);
    socket.off("error", this.#onError);
    socket.off("close", this.#onClose);
  }

  #discard(): void {
    // A destroyed socket may still report its last error; nobody is interested any more.
    this.#socket.on("error", ignore);
    this.#socket.destroy();
  }
}

function ignore(): void {}

/** `address:port`, IPv6 in brackets. */
export function addressText(address: string, port: number): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
