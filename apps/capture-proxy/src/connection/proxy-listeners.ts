import { hostPortText } from "@headworks/host-patterns";
import type { OwnListeners } from "#upstream/own-listeners.ts";
import { MAX_SOCKS5_CLIENTS, ProxyListener, serveHttp, serveHttpOrSocks5, serveSocks5 } from "./listener.ts";
import type { ServeClient } from "./listener.ts";
import type { ProxyServices } from "./proxy-services.ts";
import type { Socks5Check } from "./socks5-connection.ts";

/** A port whose clients' exchanges belong to one session. */
export interface SessionListener {
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

/** Clients of a run that has ended need no more than a moment. */
const SESSION_GRACE_MS = 1000;

/** Where clients of the proxy connect. All methods that listen reject with the system's error. */
export class ProxyListeners {
  readonly #services: () => ProxyServices;
  readonly #own: OwnListeners;
  readonly #open = new Set<ProxyListener>();

  constructor(services: () => ProxyServices, own: OwnListeners) {
    this.#services = services;
    this.#own = own;
  }

  /** Gives the address: `http://127.0.0.1:8888`. */
  async listenHttp(port: number, host: string): Promise<string> {
    const { address, port: bound } = await this.#listen(port, host, serveHttp);
    return `http://${hostPortText(address, bound)}`;
  }

  /** Gives the address: `socks5://127.0.0.1:1080`. */
  async listenSocks5(port: number, host: string, check: Socks5Check): Promise<string> {
    const { address, port: bound } = await this.#listen(port, host, serveSocks5(check), MAX_SOCKS5_CLIENTS);
    return `socks5://${hostPortText(address, bound)}`;
  }

  /** A port of the system's choice, for HTTP and SOCKS5. */
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

  /** Takes no more clients, lets exchanges in flight end for `graceMs`, then ends the rest. */
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
