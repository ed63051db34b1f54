import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Logger } from "pino";
import type { Listener } from "@headworks/gateway-contract";
import { responseHeadText } from "@headworks/http1";
import { beginsAsHttp2 } from "@headworks/http2";
import { ConnectionSet, endAndLinger, NOT_IN_SET, type SetMember, type Timed, turnMs } from "@headworks/sockets";
import type { ListenerFacts, Peer } from "#request/context.ts";
import type { ConnectionServices, ListenerTimeouts, OpenConnection, SlowClients } from "./connection-services.ts";
import { Http1Connection } from "./http1-connection.ts";
import { Http2Connection } from "./http2-connection.ts";
import { ProxyHeaderReader } from "./proxy-protocol.ts";
import { type SessionTickets, TlsAcceptor, type WatchFile } from "./tls-acceptor.ts";

interface ListenerParts {
  readonly services: Omit<ConnectionServices, "timeouts" | "slowClients">;
  readonly timeoutsOf: (document: Listener) => ListenerTimeouts;
  readonly log: Logger;
  readonly watch: WatchFile;
  readonly tickets: SessionTickets;
  /** Other processes of this gateway listen on the same ports. */
  readonly sharesPorts: boolean;
}

export interface ListenerState {
  readonly name: string;
  readonly openConnections: number;
  /** Failed TLS handshakes since the certificates were first read. */
  readonly tlsHandshakeFailures: number;
  readonly slowClients: Readonly<SlowClients>;
}

/** Idle time before TCP keep-alive probes. */
const KEEP_ALIVE_MS = 60_000;

/** A listener prepared for a document that it does not follow yet. */
export interface PreparedListener {
  readonly listener: DataListener;
  /** Applies the document. */
  take(): Promise<void>;
  /** Restores the previous state. */
  discard(): Promise<void>;
}

/** An open connection; its deadlines are kept in a set of their own. */
interface ListedConnection extends SetMember {
  readonly arrival: Arrival;
}

export class DataListener {
  readonly #parts: ListenerParts;
  readonly #server: Server;
  #port = 0;
  readonly #open = new ConnectionSet<ListedConnection>();
  #document: Listener;
  #rules: ArrivalRules | undefined;
  /** Connections accepted before `begin`. */
  #early: Socket[] | undefined = [];
  #pastHandshakeFailures = 0;
  readonly #slowClients: SlowClients = { requests: 0, responses: 0 };

  private constructor(document: Listener, parts: ListenerParts) {
    this.#document = document;
    this.#parts = parts;
    const options = {
      noDelay: true,
      allowHalfOpen: true,
      pauseOnConnect: true,
      // Tunnels may be silent for days: only TCP keep-alive detects a vanished client.
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
    };
    this.#server = createServer(options, (socket: Socket) => {
      if (this.#early === undefined) this.#letIn(socket);
      else this.#early.push(socket);
    });
  }

  /** Listens, and holds connections until `begin`. Rejects as `listen` does, and for unusable certificates. */
  static async open(document: Listener, parts: ListenerParts): Promise<DataListener> {
    const listener = new DataListener(document, parts);
    const tls = await listener.#tlsOf(document);
    const server = listener.#server;
    try {
      await listen(server, document, parts.sharesPorts);
    } catch (error) {
      await tls?.close();
      throw error;
    }
    server.on("error", (error) => {
      parts.log.error({ err: error, listener: document.name, code: "listener_failed" }, "A listener failed");
    });
    listener.#port = (server.address() as AddressInfo).port;
    listener.#rules = listener.#rulesOf(document, tls);
    return listener;
  }

  get document(): Listener {
    return this.#document;
  }

  /** False after `makeRoom`. */
  get isListening(): boolean {
    return this.#server.listening;
  }

  get port(): number {
    return this.#port;
  }

  get state(): ListenerState {
    const { name } = this.#document;
    const tlsHandshakeFailures = this.#pastHandshakeFailures + (this.#rules?.tls?.handshakeFailures ?? 0);
    return { name, openConnections: this.#open.size, tlsHandshakeFailures, slowClients: this.#slowClients };
  }

  /** Starts to serve connections, first those that are held. */
  begin(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const socket of early) this.#letIn(socket);
  }

  /**
   * Prepares another document for the same address. Once taken, it applies to new connections; open connections stay
   * unless the new document would not admit them the same way. Rejects if the certificates cannot be used.
   */
  async prepare(document: Listener): Promise<PreparedListener> {
    const old = this.#rules?.tls;
    const keepsTls = old !== undefined && sameJson(tlsPartsOf(this.#document), tlsPartsOf(document));
    const tls = keepsTls ? old : await this.#tlsOf(document);
    return {
      listener: this,
      take: async () => await this.#adopt(document, tls),
      discard: async () => (keepsTls ? undefined : await tls?.close()),
    };
  }

  async #adopt(document: Listener, tls: TlsAcceptor | undefined): Promise<void> {
    const before = this.#document;
    const old = this.#rules?.tls;
    if (old === tls) void old?.reload();
    if (sameJson(before, document)) return;
    this.#document = document;
    this.#rules = this.#rulesOf(document, tls);
    if (!sameJson(admissionOf(before), admissionOf(document))) this.#open.forEach(({ arrival }) => arrival.drain());
    if (old === undefined || old === tls) return;
    this.#pastHandshakeFailures += old.handshakeFailures;
    await old.close();
  }

  /** Frees its address for another listener; its connections stay open. */
  makeRoom(): void {
    this.#server.close();
  }

  /** Listens again after `makeRoom`. */
  async comeBack(): Promise<void> {
    await listenOn(this.#server, this.#document.address, this.#port);
  }

  /** Stops accepting and drains requests; resolves when all connections are closed, at the latest after `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#early ?? []) socket.destroy();
    this.#open.forEach(({ arrival }) => arrival.drain());
    const timer = setTimeout(() => {
      this.#open.forEach(({ arrival }) => arrival.destroy());
    }, graceMs);
    await closed;
    clearTimeout(timer);
    await this.#rules?.tls?.close();
  }

  #letIn(socket: Socket): void {
    if (this.#rules === undefined) return void socket.destroy();
    const arrival = new Arrival(socket, this.#rules, () => this.#open.delete(member));
    const member: ListedConnection = { setIndex: NOT_IN_SET, arrival };
    this.#open.add(member);
  }

  #rulesOf(document: Listener, tls: TlsAcceptor | undefined): ArrivalRules {
    return {
      facts: { name: document.name, isSecure: tls !== undefined, port: this.port },
      services: {
        ...this.#parts.services,
        timeouts: this.#parts.timeoutsOf(document),
        slowClients: this.#slowClients,
      },
      readsProxyHeader: document.proxy_protocol ?? false,
      tls,
      speaksHttp2: document.http2 ?? true,
    };
  }

  async #tlsOf(document: Listener): Promise<TlsAcceptor | undefined> {
    const { tls, name, protocol } = document;
    if (protocol !== "https" || tls === undefined) return undefined;
    const { log, watch, tickets, timeoutsOf } = this.#parts;
    const handshakeMs = timeoutsOf(document).headMs;
    return await TlsAcceptor.create({
      listener: name,
      tls,
      offersHttp2: document.http2 ?? true,
      handshakeMs,
      log,
      watch,
      tickets,
    });
  }
}

async function listen(server: Server, { address, port }: Listener, sharesPorts: boolean): Promise<void> {
  try {
    await listenOn(server, address, port);
  } catch (error) {
    if (!sharesPorts || port === 0) throw error;
    // The other processes may share a port that the system chose: a process that starts later must request port 0,
    // too.
    await listenOn(server, address, 0);
    if ((server.address() as AddressInfo).port === port) return;
    server.close();
    throw error;
  }
}

async function listenOn(server: Server, host: string, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port, backlog: 4096 }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/** Settings of the handshake. */
function tlsPartsOf({ name, protocol, tls, http2, header_timeout_ms }: Listener): readonly unknown[] {
  return [name, protocol, tls, http2, header_timeout_ms];
}

/** Settings that decide how clients are admitted and identified. */
function admissionOf({ protocol, tls, proxy_protocol }: Listener): readonly unknown[] {
  return [protocol, tls?.client_ca_file, tls?.min_version, tls?.ciphers, proxy_protocol];
}

function sameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** How connections of a listener start; fixed once a connection is accepted. */
interface ArrivalRules {
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
class Arrival implements OpenConnection, Timed {
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
