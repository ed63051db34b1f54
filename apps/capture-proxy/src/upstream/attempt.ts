import { lookup, type LookupAddress, type LookupAllOptions, type LookupOptions } from "node:dns";
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions, TLSSocket } from "node:tls";
import { hostPortText } from "@headworks/host-patterns";
import { readPastBrokenWrites } from "@headworks/sockets";
import type { Moments, UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { clientCertificateNote, connectFailure, tlsFailure } from "./connect-failure.ts";
import {
  type ApplicationProtocol,
  type Destination,
  type Dialled,
  type DialResult,
  ONLY_HTTP1,
} from "./destination.ts";
import type { OwnListeners } from "./loop-detector.ts";
import {
  brokenProxy,
  capitalized,
  closedProxy,
  lateProxy,
  type ProxyAddress,
  type ProxyStep,
  proxyText,
} from "./proxy-failure.ts";
import type { Forwarding, Route, TunnelHandshake } from "./proxy-route.ts";
import { clientCertificateResponse, type UpstreamTrust } from "./trust.ts";

/** Cache time of a lookup: long enough for a page that opens many connections, too short to be noticed. */
const KEPT_MS = 2000;
const MAX_NAMES = 1000;

/** Name lookup for `net.connect` that shares concurrent and recent lookups. Failures are not cached. */
export class NameCache {
  readonly #kept = new Map<string, Kept>();
  readonly #pending = new Map<string, Response[]>();
  readonly #resolve: (name: string, options: LookupAllOptions, response: Response) => void;
  readonly #nowMs: () => number;

  constructor(
    resolve: (name: string, options: LookupAllOptions, response: Response) => void = lookup,
    nowMs = performance.now.bind(performance),
  ) {
    this.#resolve = resolve;
    this.#nowMs = nowMs;
  }

  /** The function passed to `net.connect`. */
  readonly lookup: LookupFunction = (name, options, response) => {
    const key = `${name}|${options.family ?? 0}|${options.hints ?? 0}`;
    this.#resolveOnce(key, name, options, (error, addresses) => {
      if (options.all === true) return response(error, addresses);
      const [first] = addresses;
      response(error, first?.address ?? "", first?.family ?? 0);
    });
  };

  #resolveOnce(key: string, name: string, options: LookupOptions, response: Response): void {
    const kept = this.#kept.get(key);
    if (kept && kept.expiresMs > this.#nowMs()) {
      // Asynchronous, since the caller is still adding its listeners.
      process.nextTick(response, null, kept.addresses);
      return;
    }
    const waiting = this.#pending.get(key);
    if (waiting) {
      waiting.push(response);
      return;
    }
    const responses = [response];
    this.#pending.set(key, responses);
    this.#resolve(name, { ...options, all: true }, (error, addresses) => {
      this.#pending.delete(key);
      if (error) this.#kept.delete(key);
      else this.#keep(key, addresses);
      for (const each of responses) each(error, addresses);
    });
  }

  #keep(key: string, addresses: LookupAddress[]): void {
    this.#kept.delete(key);
    this.#kept.set(key, { expiresMs: this.#nowMs() + KEPT_MS, addresses });
    if (this.#kept.size <= MAX_NAMES) return;
    const oldest = this.#kept.keys().next().value;
    if (oldest !== undefined) this.#kept.delete(oldest);
  }
}

interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** TLS settings of a connection. */
interface TlsSide extends HostPort {
  /** The name that the certificate must match. */
  readonly serverName: string;
  readonly offered: readonly ApplicationProtocol[];
  readonly trust: UpstreamTrust;
}

/** Shared by the process, like the system's resolver. */
const names = new NameCache();
const SOCKET_OPTIONS = { noDelay: true, autoSelectFamily: true, lookup: names.lookup } as const;

function openTcp({ host, port }: HostPort): Socket {
  return readPastBrokenWrites(connectTcp({ host, port, ...SOCKET_OPTIONS }));
}

function openTls(side: TlsSide): TLSSocket {
  const { host, port } = side;
  return readPastBrokenWrites(connectTls({ host, port, ...SOCKET_OPTIONS, ...tlsOptions(side) } as ConnectionOptions));
}

/** Starts TLS over an existing connection. */
function startTls(socket: Socket, side: TlsSide): TLSSocket {
  return readPastBrokenWrites(connectTls({ socket, ...tlsOptions(side) }));
}

function tlsOptions({ host, port, serverName, offered, trust }: TlsSide): ConnectionOptions {
  return {
    ALPNProtocols: [...offered],
    ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
    ...trust.options({ host, port, serverName }),
  };
}

type Response = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void;

interface Kept {
  readonly expiresMs: number;
  readonly addresses: LookupAddress[];
}

export interface AttemptRequest {
  readonly destination: Destination;
  /** Filled in as the steps happen. */
  readonly moments: Moments;
  readonly result: DialResult;
  /** ALPN protocols for a secure origin, in order of preference. */
  readonly offered: readonly ApplicationProtocol[];
  readonly trust: UpstreamTrust;
  readonly own: OwnListeners;
  readonly timeoutMs: number;
}

/** One connection attempt: it succeeds, fails or is abandoned, exactly once and before its timeout. */
abstract class Attempt {
  readonly abandon = (): void => {
    if (this.#settle()) this.discard();
  };
  protected readonly request: AttemptRequest;
  readonly #timer: NodeJS.Timeout;
  #settled = false;

  constructor(request: AttemptRequest) {
    this.request = request;
    this.#timer = setTimeout(() => this.fail(this.late(request.timeoutMs)), request.timeoutMs);
  }

  protected get serverName(): string {
    return this.request.destination.serverName ?? this.request.destination.host;
  }

  /** For messages. */
  protected get hostPort(): string {
    return hostPortText(this.request.destination.host, this.request.destination.port);
  }

  protected abstract late(timeoutMs: number): Failure;
  /** Removes the attempt's listeners from its sockets. */
  protected abstract detach(): void;
  /** Destroys its sockets. */
  protected abstract discard(): void;

  protected succeed(dialled: () => Dialled): void {
    if (this.#settle()) this.request.result.connected(dialled());
  }

  protected fail(failure: Failure): void {
    if (!this.#settle()) return;
    this.discard();
    this.request.result.failed(failure);
  }

  /** False if the attempt was already settled. */
  #settle(): boolean {
    if (this.#settled) return false;
    this.#settled = true;
    clearTimeout(this.#timer);
    this.detach();
    return true;
  }
}

/** Destroys a socket and ignores its last error. */
function destroyQuietly(socket: Socket | TLSSocket): void {
  socket.on("error", ignoreError);
  socket.destroy();
}

function ignoreError(): void {}

/** Connects directly to the origin. */
export class DirectAttempt extends Attempt {
  readonly #socket: Socket | TLSSocket;

  constructor(request: AttemptRequest) {
    super(request);
    const { destination, moments, offered, trust } = request;
    const { host, port, secure } = destination;
    const nowMs = performance.now();
    if (isIP(host) === 0) moments.resolveStarted = nowMs;
    else moments.connectStarted = nowMs;
    const serverName = this.serverName;
    this.#socket = secure ? openTls({ host, port, serverName, offered, trust }) : openTcp(destination);
    this.#socket.on("lookup", this.#onLookup);
    this.#socket.on("connect", this.#onConnect);
    if (secure) this.#socket.on("secureConnect", this.#onReady);
    this.#socket.on("error", this.#onError);
    this.#socket.on("close", this.#onClose);
  }

  readonly #onLookup = (): void => {
    const { moments } = this.request;
    if (moments.connectStarted === 0) moments.connectStarted = performance.now();
  };

  readonly #onConnect = (): void => {
    const { own, destination, moments } = this.request;
    const { remoteAddress = "", remotePort = 0, localAddress = "" } = this.#socket;
    if (own.includes(remoteAddress, remotePort, localAddress)) {
      const address = hostPortText(remoteAddress, remotePort);
      this.fail({
        stage: "policy",
        side: "internal",
        code: "LOOP",
        message: `${this.hostPort} is this proxy itself (${address}); the request would loop forever`,
      });
      return;
    }
    if (destination.secure) moments.tlsStarted = performance.now();
    else this.#onReady();
  };

  readonly #onReady = (): void => this.succeed(() => this.#dialled());

  #dialled(): Dialled {
    const socket = this.#socket;
    const { destination, moments, trust } = this.request;
    const { host, port, secure } = destination;
    moments.upstreamReady = performance.now();
    return {
      socket,
      protocol: secure && (socket as TLSSocket).alpnProtocol === "h2" ? "h2" : "http/1.1",
      isDirect: true,
      address: hostPortText(socket.remoteAddress ?? "", socket.remotePort ?? 0),
      tls: secure ? trust.facts(socket as TLSSocket, { host, port, serverName: this.serverName }) : undefined,
      forwarding: undefined,
    };
  }

  readonly #onError = (error: NodeJS.ErrnoException): void => {
    const { host, port } = this.request.destination;
    const isTls = this.request.moments.tlsStarted > 0;
    if (!isTls) return this.fail(connectFailure(error, host, port));
    return this.fail(tlsFailure(error, this.serverName, this.#clientCertificate()));
  };

  #clientCertificate(): UpstreamTlsFacts["clientCertificate"] {
    return this.request.destination.secure ? clientCertificateResponse(this.#socket as TLSSocket) : undefined;
  }

  readonly #onClose = (): void => {
    const note = clientCertificateNote(this.#clientCertificate());
    this.fail({
      stage: this.request.moments.tlsStarted > 0 ? "tls" : "connect",
      side: "upstream",
      code: "UPSTREAM_CLOSED",
      message: `${this.hostPort} closed the connection before it was ready${note}`,
    });
  };

  protected late(timeoutMs: number): Failure {
    const { connectStarted, tlsStarted } = this.request.moments;
    const stage = tlsStarted > 0 ? "tls" : connectStarted > 0 ? "connect" : "resolve";
    const step = { tls: "complete TLS", connect: "accept the connection", resolve: "be resolved" }[stage];
    return {
      stage,
      side: "upstream",
      code: "UPSTREAM_TIMEOUT",
      message: `${this.hostPort} did not ${step} within ${timeoutMs} ms`,
    };
  }

  protected detach(): void {
    const socket = this.#socket;
    socket.off("lookup", this.#onLookup);
    socket.off("connect", this.#onConnect);
    socket.off("secureConnect", this.#onReady);
    socket.off("error", this.#onError);
    socket.off("close", this.#onClose);
  }

  protected discard(): void {
    destroyQuietly(this.#socket);
  }
}

type ProxyRoute = Extract<Route, { kind: "forward" | "tunnel" }>;

/**
 * Connects to the upstream proxy and, unless it forwards requests, opens a tunnel and TLS with the origin inside it.
 */
export class ProxyAttempt extends Attempt {
  readonly #proxy: ProxyAddress;
  readonly #forwarding: Forwarding | undefined;
  readonly #handshake: TunnelHandshake | undefined;
  /** The connection to the proxy. */
  readonly #hop: Socket | TLSSocket;
  /** TLS with the origin, inside the tunnel. */
  #secure: TLSSocket | undefined;
  #step: ProxyStep = "connect";

  constructor(request: AttemptRequest, route: ProxyRoute) {
    super(request);
    this.#proxy = route.kind === "forward" ? route.forwarding.proxy : route.proxy;
    this.#forwarding = route.kind === "forward" ? route.forwarding : undefined;
    this.#handshake = route.kind === "tunnel" ? route.handshake : undefined;
    const { host, port, protocol } = this.#proxy;
    const nowMs = performance.now();
    if (isIP(host) === 0) {
      request.moments.resolveStarted = nowMs;
      this.#step = "resolve";
    } else {
      request.moments.connectStarted = nowMs;
    }
    const { trust } = request;
    const isTls = protocol === "https";
    this.#hop = isTls ? openTls({ host, port, serverName: host, offered: ONLY_HTTP1, trust }) : openTcp({ host, port });
    this.#hop.on("lookup", this.#onLookup);
    this.#hop.on("connect", this.#onConnect);
    if (isTls) this.#hop.on("secureConnect", this.#onProxyReady);
    this.#hop.on("error", this.#onHopError);
    this.#hop.on("close", this.#onHopClose);
  }

  readonly #onLookup = (): void => {
    if (this.#step === "resolve") this.request.moments.connectStarted = performance.now();
    this.#step = "connect";
  };

  readonly #onConnect = (): void => {
    const loop = this.#loop();
    if (loop !== undefined) return this.fail(loop);
    if (this.#proxy.protocol !== "https") return this.#onProxyReady();
    this.#step = "tls";
    this.request.moments.tlsStarted = performance.now();
  };

  #loop(): Failure | undefined {
    const { own, destination } = this.request;
    const { remoteAddress = "", remotePort = 0, localAddress = "" } = this.#hop;
    const looped = (message: string): Failure => ({ stage: "policy", side: "internal", code: "LOOP", message });
    if (own.includes(remoteAddress, remotePort, localAddress)) {
      const name = capitalized(proxyText(this.#proxy));
      return looped(`${name} is this proxy itself (${remoteAddress}:${remotePort}); the request would loop forever`);
    }
    if (!own.isNamedFrom(destination, { remoteAddress, localAddress })) return undefined;
    return looped(`${this.hostPort} is this proxy itself, also through ${proxyText(this.#proxy)} on the same machine`);
  }

  readonly #onProxyReady = (): void => {
    if (this.#handshake === undefined) return this.#ready(this.#hop);
    this.#step = "handshake";
    this.request.moments.tunnelStarted = performance.now();
    this.#hop.on("data", this.#onResponse);
    this.#hop.write(this.#handshake.start());
  };

  readonly #onResponse = (chunk: Buffer): void => {
    const step = this.#handshake?.read(chunk);
    if (step === undefined) return;
    if (step.kind === "failed") return this.fail(step.failure);
    if (step.kind === "open") return this.#tunnelOpen(step.rest);
    if (step.send !== undefined && step.send.length > 0) this.#hop.write(step.send);
  };

  #tunnelOpen(rest: Buffer): void {
    const hop = this.#hop;
    hop.off("data", this.#onResponse);
    const { secure, host, port } = this.request.destination;
    if (!secure) {
      // The new owner adds its listeners before these bytes are emitted again.
      if (rest.length > 0) hop.unshift(rest);
      return this.#ready(hop);
    }
    this.#leaveHop();
    hop.on("error", ignoreError);
    hop.pause();
    if (rest.length > 0) hop.unshift(rest);
    const { moments, offered, trust } = this.request;
    moments.tlsStarted = performance.now();
    const tls = startTls(hop, { host, port, serverName: this.serverName, offered, trust });
    this.#secure = tls;
    tls.on("secureConnect", this.#onSecure);
    tls.on("error", this.#onTlsError);
    tls.on("close", this.#onTlsClose);
  }

  readonly #onSecure = (): void => {
    if (this.#secure !== undefined) this.#ready(this.#secure);
  };

  #ready(socket: Socket | TLSSocket): void {
    this.succeed(() => this.#dialled(socket));
  }

  #dialled(socket: Socket | TLSSocket): Dialled {
    const { destination, moments, trust } = this.request;
    const { host, port } = destination;
    moments.upstreamReady = performance.now();
    const secure = this.#secure;
    return {
      socket,
      protocol: secure?.alpnProtocol === "h2" ? "h2" : "http/1.1",
      address: hostPortText(this.#hop.remoteAddress ?? "", this.#hop.remotePort ?? 0),
      tls: secure && trust.facts(secure, { host, port, serverName: this.serverName }),
      isDirect: false,
      forwarding: this.#forwarding,
    };
  }

  readonly #onHopError = (error: NodeJS.ErrnoException): void => {
    const response = this.#hop instanceof TLSSocket ? clientCertificateResponse(this.#hop) : undefined;
    this.fail(brokenProxy(this.#proxy, this.#step, error, response));
  };
  readonly #onHopClose = (): void => this.fail(closedProxy(this.#proxy, this.#step));

  readonly #onTlsError = (error: NodeJS.ErrnoException): void => {
    const response = this.#secure && clientCertificateResponse(this.#secure);
    this.fail(tlsFailure(error, this.serverName, response));
  };

  readonly #onTlsClose = (): void => {
    const message = `${this.hostPort} closed the connection before it was ready (through ${proxyText(this.#proxy)})`;
    this.fail({ stage: "tls", side: "upstream", code: "UPSTREAM_CLOSED", message });
  };

  protected late(timeoutMs: number): Failure {
    if (this.#secure === undefined) return lateProxy(this.#proxy, this.#step, timeoutMs);
    const message = `${this.hostPort} did not complete TLS within ${timeoutMs} ms (through ${proxyText(this.#proxy)})`;
    return { stage: "tls", side: "upstream", code: "UPSTREAM_TIMEOUT", message };
  }

  protected detach(): void {
    this.#leaveHop();
    const secure = this.#secure;
    secure?.off("secureConnect", this.#onSecure);
    secure?.off("error", this.#onTlsError);
    secure?.off("close", this.#onTlsClose);
  }

  #leaveHop(): void {
    const hop = this.#hop;
    hop.off("lookup", this.#onLookup);
    hop.off("connect", this.#onConnect);
    hop.off("secureConnect", this.#onProxyReady);
    hop.off("data", this.#onResponse);
    hop.off("error", this.#onHopError);
    hop.off("close", this.#onHopClose);
  }

  protected discard(): void {
    if (this.#secure !== undefined) destroyQuietly(this.#secure);
    destroyQuietly(this.#hop);
  }
}
