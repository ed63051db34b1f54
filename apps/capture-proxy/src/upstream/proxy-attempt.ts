import { isIP } from "node:net";
import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { hostPortText } from "@headworks/host-patterns";
import type { Failure } from "#exchange/failure.ts";
import { Attempt, destroyQuietly, ignoreError } from "./attempt.ts";
import type { AttemptRequest } from "./attempt.ts";
import { tlsFailure } from "./connect-failure.ts";
import { ONLY_HTTP1 } from "./destination.ts";
import type { Dialled } from "./destination.ts";
import { proxyText } from "./proxy-address.ts";
import type { ProxyAddress } from "./proxy-address.ts";
import { brokenProxy, capitalized, closedProxy, lateProxy } from "./proxy-failure.ts";
import type { ProxyStep } from "./proxy-failure.ts";
import type { Forwarding, Route } from "./proxy-route.ts";
import { openTcp, openTls, startTls } from "./socket-openers.ts";
import { clientCertificateResponse } from "./trust.ts";
import type { TunnelHandshake } from "./tunnel-handshake.ts";

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
      const who = capitalized(proxyText(this.#proxy));
      return looped(
        `${who} is this proxy itself (${remoteAddress}:${remotePort}); the request would go round for ever`,
      );
    }
    if (!own.isNamedFrom(destination, { remoteAddress, localAddress })) return undefined;
    const place = hostPortText(destination.host, destination.port);
    return looped(`${place} is this proxy itself, also by way of ${proxyText(this.#proxy)} on the same machine`);
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
    const tls = startTls(hop, { host, port, serverName: this.#serverName(), offered, trust });
    this.#secure = tls;
    tls.on("secureConnect", this.#onSecure);
    tls.on("error", this.#onTlsError);
    tls.on("close", this.#onTlsClose);
  }

  #serverName(): string {
    return this.request.destination.serverName ?? this.request.destination.host;
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
      tls: secure && trust.facts(secure, { host, port, serverName: this.#serverName() }),
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
    this.fail(tlsFailure(error, this.#serverName(), response));
  };

  readonly #onTlsClose = (): void => {
    const { host, port } = this.request.destination;
    const message = `${hostPortText(host, port)} closed the connection before it was ready (by way of ${proxyText(this.#proxy)})`;
    this.fail({ stage: "tls", side: "upstream", code: "UPSTREAM_CLOSED", message });
  };

  protected late(timeoutMs: number): Failure {
    if (this.#secure === undefined) return lateProxy(this.#proxy, this.#step, timeoutMs);
    const { host, port } = this.request.destination;
    const message = `${hostPortText(host, port)} did not complete TLS within ${timeoutMs} ms (by way of ${proxyText(this.#proxy)})`;
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
