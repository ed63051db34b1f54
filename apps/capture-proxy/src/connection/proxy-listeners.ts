import { hostPortText } from "@headworks/host-patterns";
import type { OwnListeners } from "#upstream/loop-detector.ts";
import { MAX_SOCKS5_CLIENTS, ProxyListener, serveHttp, serveHttpOrSocks5, serveSocks5 } from "./listener.ts";
import type { ServeClient } from "./listener.ts";
import type { ProxyServices } from "./proxy-services.ts";
import type { Socks5Check } from "./socks5-connection.ts";

/** A port whose exchanges are recorded in one session. */
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
