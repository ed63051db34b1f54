import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import type { Listener } from "@headworks/gateway-contract";
import { NOT_IN_SET, ConnectionSet, type SetMember } from "@headworks/sockets";
import type { Logger } from "pino";
import { Arrival, type ArrivalRules } from "./arrival.ts";
import type { ConnectionServices, ListenerTimeouts, SlowClients } from "./connection-services.ts";
import type { SessionTickets } from "./session-tickets.ts";
import { TlsAcceptor, type WatchFile } from "./tls-acceptor.ts";

/** What a listener is made of, beyond its document. */
export interface ListenerParts {
  readonly services: Omit<ConnectionServices, "timeouts" | "slowClients">;
  readonly timeoutsOf: (document: Listener) => ListenerTimeouts;
  readonly log: Logger;
  readonly watch: WatchFile;
  readonly tickets: SessionTickets;
  /** Other processes of this gateway listen on the same ports. */
  readonly sharesPorts: boolean;
}

/** What a listener is like at this moment. */
export interface ListenerState {
  readonly name: string;
  readonly openConnections: number;
  /** Connections that never became TLS, since the certificates were first read. */
  readonly tlsHandshakeFailures: number;
  readonly slowClients: Readonly<SlowClients>;
}

/** Silence before the system asks whether the other side is still there. */
const KEEP_ALIVE_MS = 60_000;

/** A listener that is ready for a document it does not follow yet. */
export interface PreparedListener {
  readonly listener: DataListener;
  /** Follows the document from now on. */
  take(): Promise<void>;
  /** Leaves everything as it was before. */
  giveUp(): Promise<void>;
}

/** A connection among those that are open; its deadlines have a roster of their own. */
interface ListedConnection extends SetMember {
  readonly arrival: Arrival;
}

/** Accepts clients on one address. */
export class DataListener {
  readonly #parts: ListenerParts;
  readonly #server: Server;
  #port = 0;
  readonly #open = new ConnectionSet<ListedConnection>();
  #document: Listener;
  #rules: ArrivalRules | undefined;
  /** Clients that came before `begin`. */
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
      // Tunnels may be silent for days: only the system finds out that their client vanished.
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
    };
    this.#server = createServer(options, (socket: Socket) => {
      if (this.#early === undefined) this.#letIn(socket);
      else this.#early.push(socket);
    });
  }

  /**
   * Listens, and keeps clients waiting until `begin`. Rejects as `listen` does (`EADDRINUSE`), and when the certificates
   * cannot be used.
   */
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
      parts.log.error({ err: error, listener: document.name, code: "listener_failed" }, "A listener has trouble");
    });
    listener.#port = (server.address() as AddressInfo).port;
    listener.#rules = listener.#rulesOf(document, tls);
    return listener;
  }

  get document(): Listener {
    return this.#document;
  }

  /** False after it made room. */
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

  /** Lets clients in, those first that wait already. */
  begin(): void {
    const early = this.#early ?? [];
    this.#early = undefined;
    for (const socket of early) this.#letIn(socket);
  }

  /**
   * Makes ready to go on under another document for the same address. Once that is taken, new connections follow it;
   * those that are open stay as they are, unless they would not be let in any more in their way. Rejects when the
   * certificates cannot be used.
   */
  async prepare(document: Listener): Promise<PreparedListener> {
    const old = this.#rules?.tls;
    const keepsTls = old !== undefined && sameJson(tlsPartsOf(this.#document), tlsPartsOf(document));
    const tls = keepsTls ? old : await this.#tlsOf(document);
    return {
      listener: this,
      take: async () => await this.#adopt(document, tls),
      giveUp: async () => (keepsTls ? undefined : await tls?.close()),
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

  /** Leaves its address to another listener; its connections go on. */
  makeRoom(): void {
    this.#server.close();
  }

  /** Listens again where it made room. */
  async comeBack(): Promise<void> {
    await listenOn(this.#server, this.#document.address, this.#port);
  }

  /** Takes no more connections and lets requests end; resolves when all are gone, at the latest after `graceMs`. */
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
    // The others may have it from when all asked for any port; whoever starts later has to ask in the same way.
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

/** What the handshake is made of. */
function tlsPartsOf({ name, protocol, tls, http2, header_timeout_ms }: Listener): readonly unknown[] {
  return [name, protocol, tls, http2, header_timeout_ms];
}

/** What decides how clients get in, and who they are taken for. */
function admissionOf({ protocol, tls, proxy_protocol }: Listener): readonly unknown[] {
  return [protocol, tls?.client_ca_file, tls?.min_version, tls?.ciphers, proxy_protocol];
}

function sameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
