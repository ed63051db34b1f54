import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { responseHeadText } from "@headworks/http1";
import { beginsAsHttp2 } from "@headworks/http2";
import { NOT_IN_SET, endAndLinger, turnMs, type Timed } from "@headworks/sockets";
import type { ListenerFacts, Peer } from "#request/client-stream.ts";
import type { ConnectionServices, OpenConnection } from "./connection-services.ts";
import { Http1Connection } from "./http1-connection.ts";
import { Http2Connection } from "./http2-connection.ts";
import { ProxyHeaderReader } from "./proxy-protocol.ts";
import type { TlsAcceptor } from "./tls-acceptor.ts";

/** How connections of a listener start; fixed once a connection is accepted. */
export interface ArrivalRules {
  readonly facts: ListenerFacts;
  readonly services: ConnectionServices;
  readonly readsProxyHeader: boolean;
  readonly tls: TlsAcceptor | undefined;
  readonly speaksHttp2: boolean;
}

/**
 * An accepted socket up to its first request: reads the PROXY header, starts TLS, determines the protocol, and hands
 * the socket over. All of this together must finish within the header timeout.
 */
export class Arrival implements OpenConnection, Timed {
  setIndex = NOT_IN_SET;
  deadlineMs: number;
  readonly #rules: ArrivalRules;
  readonly #closed: () => void;
  #socket: Socket;
  #peer: Peer;
  #connection: OpenConnection | undefined;
  #proxyHeader: ProxyHeaderReader | undefined;
  #first: Buffer | undefined;

  constructor(socket: Socket, rules: ArrivalRules, closed: () => void) {
    this.#socket = socket;
    this.#rules = rules;
    this.#closed = closed;
    this.#peer = { address: plainAddress(socket.remoteAddress ?? ""), port: socket.remotePort ?? 0 };
    const { deadlines, timeouts } = rules.services;
    this.deadlineMs = turnMs() + timeouts.headMs;
    deadlines.add(this);
    socket.on("error", ignoreError);
    socket.on("close", this.#onClose);
    if (rules.readsProxyHeader) this.#readProxyHeader();
    else this.#secure(undefined);
  }

  drain(): void {
    if (this.#connection === undefined) this.#socket.destroy();
    else this.#connection.drain();
  }

  destroy(): void {
    this.#connection?.destroy();
    this.#socket.destroy();
  }

  onDeadline(): void {
    this.#socket.destroy();
  }

  #readProxyHeader(): void {
    this.#proxyHeader = new ProxyHeaderReader();
    this.#socket.on("data", this.#onProxyBytes);
    this.#socket.on("end", this.#onEnd);
    this.#socket.resume();
  }

  readonly #onProxyBytes = (chunk: Buffer): void => {
    const outcome = this.#proxyHeader?.read(chunk);
    if (outcome === undefined || outcome.state === "more") return;
    this.#proxyHeader = undefined;
    this.#socket.off("data", this.#onProxyBytes);
    this.#socket.off("end", this.#onEnd);
    if (outcome.state === "malformed") return this.#refuse(outcome.why);
    if (outcome.source !== undefined) this.#peer = outcome.source;
    this.#socket.pause();
    this.#secure(outcome.rest);
  };

  /** Inside TLS the client could not read a response. */
  #refuse(why: string): void {
    const { services, facts, tls } = this.#rules;
    services.deadlines.delete(this);
    if (tls !== undefined) return void this.#socket.destroy();
    const response = services.refusal("bad_request", why, facts, this.#peer);
    const body = Buffer.from(response.body);
    const fields = [...response.fields, "Content-Length", String(body.length), "Connection", "close"];
    const head = responseHeadText(response.status, response.reason, fields);
    endAndLinger(this.#socket, Buffer.concat([Buffer.from(head, "latin1"), body]));
  }

  /** `rest` was read behind the PROXY header. */
  #secure(rest: Buffer | undefined): void {
    const { tls, speaksHttp2 } = this.#rules;
    if (tls === undefined && !speaksHttp2) return this.#speakHttp1(rest);
    if (rest !== undefined) this.#socket.unshift(rest);
    if (tls !== undefined) return tls.accept(this.#socket, this.#onSecure);
    this.#socket.on("data", this.#onFirstBytes);
    this.#socket.on("end", this.#onEnd);
    this.#socket.resume();
  }

  readonly #onSecure = (socket: TLSSocket): void => {
    this.#socket = socket;
    socket.on("error", ignoreError);
    const certificate = socket.getPeerX509Certificate();
    const { servername } = socket;
    this.#peer = {
      ...this.#peer,
      ...(certificate === undefined ? {} : { certificate }),
      ...(typeof servername === "string" && servername !== "" ? { serverName: servername.toLowerCase() } : {}),
    };
    if (socket.alpnProtocol === "h2") this.#speakHttp2();
    else this.#speakHttp1(undefined);
  };

  readonly #onFirstBytes = (chunk: Buffer): void => {
    const first = this.#first === undefined ? chunk : Buffer.concat([this.#first, chunk]);
    const begins = beginsAsHttp2(first);
    if (begins === "maybe") {
      this.#first = first;
      return;
    }
    this.#first = undefined;
    this.#socket.off("data", this.#onFirstBytes);
    this.#socket.off("end", this.#onEnd);
    if (begins === "no") return this.#speakHttp1(first);
    this.#socket.pause();
    this.#socket.unshift(first);
    this.#speakHttp2();
  };

  #speakHttp1(first: Buffer | undefined): void {
    const { services, facts } = this.#rules;
    services.deadlines.delete(this);
    const connection = new Http1Connection(services, facts, this.#peer, this.#socket);
    this.#connection = connection;
    connection.begin(first);
  }

  #speakHttp2(): void {
    if (this.#socket.destroyed) return;
    const { services, facts } = this.#rules;
    services.deadlines.delete(this);
    this.#connection = new Http2Connection(services, facts, this.#peer, this.#socket);
  }

  /** The client left before its first request. */
  readonly #onEnd = (): void => void this.#socket.destroy();

  readonly #onClose = (): void => {
    this.#rules.services.deadlines.delete(this);
    this.#closed();
  };
}

/** IPv4-mapped IPv6 addresses are reduced to the IPv4 address. */
function plainAddress(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice(7) : address;
}

function ignoreError(): void {
  // "close" follows and cleans up.
}
