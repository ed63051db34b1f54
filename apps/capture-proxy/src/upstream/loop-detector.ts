import { isIPv4 } from "node:net";
import { canonicalHost, isUnspecified } from "@headworks/host-patterns";
import type { Failure } from "#exchange/failure.ts";
import type { Destination, Dialled, DialResult } from "./destination.ts";

interface Listener {
  readonly address: string;
  readonly port: number;
}

/**
 * Knows the addresses this service listens on and refuses connections that would loop. It compares the ends of a
 * connected socket, so aliases and unusual address spellings cannot deceive it.
 */
export class OwnListeners {
  readonly #listeners: Listener[] = [];

  add(address: string, port: number): void {
    this.#listeners.push({ address: plainAddress(address), port });
  }

  /** The port was released. */
  remove(address: string, port: number): void {
    const plain = plainAddress(address);
    const place = this.#listeners.findIndex((each) => each.port === port && each.address === plain);
    if (place !== -1) this.#listeners.splice(place, 1);
  }

  /** Whether the connected peer is one of our listeners. `localAddress` is our end of the connection. */
  includes(remoteAddress: string, remotePort: number, localAddress: string): boolean {
    const remote = plainAddress(remoteAddress);
    return this.#listeners.some((listener) => {
      if (listener.port !== remotePort) return false;
      if (listener.address === remote) return true;
      const isAnyAddress = listener.address === "0.0.0.0" || listener.address === "::";
      return isAnyAddress && (isLoopback(remote) || remote === plainAddress(localAddress));
    });
  }

  /**
   * Whether a proxy at the peer address would reach one of our listeners under this name: it runs on this machine, and
   * the name denotes this machine. Names that need a lookup are left to the proxy.
   */
  isNamedFrom(
    target: { readonly host: string; readonly port: number },
    proxy: { readonly remoteAddress: string; readonly localAddress: string },
  ): boolean {
    const remote = plainAddress(proxy.remoteAddress);
    if (!isLoopback(remote) && remote !== plainAddress(proxy.localAddress)) return false;
    const name = canonicalHost(target.host);
    const isThisMachine = name === "localhost" || name.endsWith(".localhost") || isUnspecified(name);
    return isThisMachine
      ? this.#listeners.some(({ port }) => port === target.port)
      : this.includes(name, target.port, remote);
  }
}

/** Maps IPv4-mapped IPv6 addresses to IPv4. */
function plainAddress(address: string): string {
  const lower = address.toLowerCase();
  return lower.startsWith("::ffff:") && isIPv4(lower.slice(7)) ? lower.slice(7) : lower;
}

function isLoopback(address: string): boolean {
  return address === "::1" || (isIPv4(address) && address.startsWith("127."));
}

/** This many concurrent connections to one destination through the proxy trigger a probe; none is refused for it. */
const SUSPICIOUS_CONNECTIONS = 64;
/** Minimum interval between probes. */
const REST_MS = 10_000;
/** After a loop was found, requests fail for this time before one may try again. */
const BELIEVED_MS = 10_000;
/** Timeout of a probe. */
const RESPONSE_TIMEOUT_MS = 5000;

/** A connection sent to the upstream proxy came back to this process. */
export const LOOP: Failure = {
  stage: "policy",
  side: "internal",
  code: "LOOP",
  message:
    "What goes to the upstream proxy by SOCKS5 comes back here by way of other proxies; it would go round for ever",
};

/** A connection counted by the detector. */
export interface CountedDial {
  /** Use it in place of the given result. */
  readonly result: DialResult;
  /** Call it when the result is no longer awaited. */
  readonly left: () => void;
}

/** Connects through the proxy; returns the function that cancels. */
export type AskProxy = (destination: Destination, result: DialResult) => () => void;

/**
 * Detects a SOCKS5 proxy that leads back to this process. SOCKS5 has no equivalent of `Via`, so the detector probes:
 * once many connections to one destination are in progress, it requests one more to a unique name. In a loop that
 * request comes back; any other proxy reports that the name does not exist.
 */
export class LoopDetector {
  readonly #name: string;
  readonly #ask: AskProxy;
  readonly #nowMs: () => number;
  /** Connections in progress or open, by destination. */
  readonly #connections = new Map<string, number>();
  #quietUntilMs = Number.NEGATIVE_INFINITY;
  #isAsking = false;
  #believedUntilMs = Number.NEGATIVE_INFINITY;

  /**
   * @param pseudonym  this process's name for proxies on the route
   * @param nowMs  monotonic clock
   */
  constructor(viaPseudonym: string, ask: AskProxy, nowMs: () => number = () => performance.now()) {
    // Never a real host (RFC 6761, 6.4).
    this.#name = `${viaPseudonym}.invalid`;
    this.#ask = ask;
    this.#nowMs = nowMs;
  }

  /**
   * Whether this host is that of a probe coming back. Only then is a loop recorded, and only while a probe is pending:
   * otherwise anyone who learns the name could block all traffic.
   */
  hasComeRound(host: string): boolean {
    if (host !== this.#name) return false;
    if (this.#isAsking) this.#believedUntilMs = this.#nowMs() + BELIEVED_MS;
    return true;
  }

  /** A loop was found recently. */
  get isCircular(): boolean {
    return this.#nowMs() < this.#believedUntilMs;
  }

  /** Counts a connection about to be opened through the proxy. */
  counted(destination: Destination, result: DialResult): CountedDial {
    const left = this.#enter(destination);
    return {
      left,
      result: {
        connected: (dialled) => {
          dialled.socket.once("close", left);
          result.connected(dialled);
        },
        failed: (failure) => {
          left();
          const isResponse = failure.stage === "proxy-handshake";
          result.failed(isResponse && this.isCircular ? LOOP : failure);
        },
      },
    };
  }

  #enter({ host, port }: Destination): () => void {
    const place = `${host}:${port}`;
    const count = (this.#connections.get(place) ?? 0) + 1;
    this.#connections.set(place, count);
    if (count >= SUSPICIOUS_CONNECTIONS) this.#question(port);
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      const others = (this.#connections.get(place) ?? 1) - 1;
      if (others === 0) this.#connections.delete(place);
      else this.#connections.set(place, others);
    };
  }

  #question(port: number): void {
    const nowMs = this.#nowMs();
    if (nowMs < this.#quietUntilMs) return;
    this.#quietUntilMs = nowMs + REST_MS;
    this.#isAsking = true;
    let end = (): void => undefined;
    const done = (): void => {
      clearTimeout(late);
      this.#isAsking = false;
    };
    const late = setTimeout(() => {
      end();
      done();
    }, RESPONSE_TIMEOUT_MS);
    late.unref();
    const host = this.#name;
    const connected = ({ socket }: Dialled): void => {
      end = () => void socket.destroy();
      socket.on("error", done);
      socket.on("close", done);
      socket.resume();
      // Some proxies report success before they connect, and wait for data.
      socket.write(`HEAD / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    };
    end = this.#ask({ host, port, secure: false, serverName: undefined, tunnel: true }, { connected, failed: done });
  }
}
