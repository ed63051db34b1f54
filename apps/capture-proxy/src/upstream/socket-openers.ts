import { lookup, type LookupAddress, type LookupAllOptions, type LookupOptions } from "node:dns";
import { connect as connectTcp, isIP, type LookupFunction, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions, type TLSSocket } from "node:tls";
import { readPastBrokenWrites } from "@headworks/sockets";
import type { ApplicationProtocol } from "./destination.ts";
import type { UpstreamTrust } from "./trust.ts";

/** Cache time of a lookup: long enough for a page that opens many connections, too short to be noticed. */
const KEPT_MS = 2000;

const MAX_NAMES = 1000;

/** Name lookup for `net.connect` that shares concurrent and recent lookups. Failures are not cached. */
export class NameCache {
  readonly #kept = new Map<string, Kept>();
  readonly #asking = new Map<string, Response[]>();
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
    this.#ask(key, name, options, (error, addresses) => {
      if (options.all === true) return response(error, addresses);
      const [first] = addresses;
      response(error, first?.address ?? "", first?.family ?? 0);
    });
  };

  #ask(key: string, name: string, options: LookupOptions, response: Response): void {
    const kept = this.#kept.get(key);
    if (kept && kept.expiresMs > this.#nowMs()) {
      // Asynchronous, since the caller is still adding its listeners.
      process.nextTick(response, null, kept.addresses);
      return;
    }
    const waiting = this.#asking.get(key);
    if (waiting) {
      waiting.push(response);
      return;
    }
    const responses = [response];
    this.#asking.set(key, responses);
    this.#resolve(name, { ...options, all: true }, (error, addresses) => {
      this.#asking.delete(key);
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

interface Place {
  readonly host: string;
  readonly port: number;
}

/** TLS settings of a connection. */
export interface TlsSide extends Place {
  /** The name that the certificate must match. */
  readonly serverName: string;
  readonly offered: readonly ApplicationProtocol[];
  readonly trust: UpstreamTrust;
}

/** Shared by the process, like the system's resolver. */
const names = new NameCache();

const WAY = { noDelay: true, autoSelectFamily: true, lookup: names.lookup } as const;

export function openTcp({ host, port }: Place): Socket {
  return readPastBrokenWrites(connectTcp({ host, port, ...WAY }));
}

export function openTls(side: TlsSide): TLSSocket {
  const { host, port } = side;
  return readPastBrokenWrites(connectTls({ host, port, ...WAY, ...tlsOptions(side) } as ConnectionOptions));
}

/** Starts TLS over an existing connection. */
export function startTls(socket: Socket, side: TlsSide): TLSSocket {
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
