import { isIP } from "node:net";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { hostPortText } from "@headworks/host-patterns";
import type { UpstreamTlsFacts } from "#exchange/exchange.ts";
import type { Failure } from "#exchange/failure.ts";
import { Attempt, destroyQuietly } from "./attempt.ts";
import type { AttemptRequest } from "./attempt.ts";
import { clientCertificateNote, connectFailure, tlsFailure } from "./connect-failure.ts";
import type { Dialled } from "./destination.ts";
import { openTcp, openTls } from "./socket-openers.ts";
import { clientCertificateResponse } from "./trust.ts";

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
    const serverName = this.#serverName();
    this.#socket = secure ? openTls({ host, port, serverName, offered, trust }) : openTcp(destination);
    this.#socket.on("lookup", this.#onLookup);
    this.#socket.on("connect", this.#onConnect);
    if (secure) this.#socket.on("secureConnect", this.#onReady);
    this.#socket.on("error", this.#onError);
    this.#socket.on("close", this.#onClose);
  }

  #serverName(): string {
    return this.request.destination.serverName ?? this.request.destination.host;
  }

  /** For messages. */
  #place(): string {
    return hostPortText(this.request.destination.host, this.request.destination.port);
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
        message: `${this.#place()} is this proxy itself (${address}); the request would go round for ever`,
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
      tls: secure ? trust.facts(socket as TLSSocket, { host, port, serverName: this.#serverName() }) : undefined,
      forwarding: undefined,
    };
  }

  readonly #onError = (error: NodeJS.ErrnoException): void => {
    const { host, port } = this.request.destination;
    const isTls = this.request.moments.tlsStarted > 0;
    if (!isTls) return this.fail(connectFailure(error, host, port));
    return this.fail(tlsFailure(error, this.#serverName(), this.#clientCertificate()));
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
      message: `${this.#place()} closed the connection before it was ready${note}`,
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
      message: `${this.#place()} did not ${step} within ${timeoutMs} ms`,
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
