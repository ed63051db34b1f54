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
    const index = this.#listeners.findIndex((each) => each.port === port && each.address === plain);
    if (index !== -1) this.#listeners.splice(index, 1);
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
const PROBE_INTERVAL_MS = 10_000;
/** After a loop was found, requests fail for this time before one may try again. */
const LOOP_MEMORY_MS = 10_000;
/** Timeout of a probe. */
const RESPONSE_TIMEOUT_MS = 5000;

/** A connection sent to the upstream proxy came back to this process. */
export const LOOP: Failure = {
  stage: "policy",
  side: "internal",
  code: "LOOP",
  message:
    "Connections to the SOCKS5 upstream proxy come back to this proxy through other proxies; they would loop forever",
};

export interface CountedDial {
  /** Use it instead of the given result. */
  readonly result: DialResult;
  /** Call it when the result is no longer awaited. */
  readonly left: () => void;
}

/** Connects through the proxy; returns the function that cancels. */
export type DialThroughProxy = (destination: Destination, result: DialResult) => () => void;

/**
 * Detects a SOCKS5 proxy that leads back to this process. SOCKS5 has no equivalent of `Via`, so the detector probes:
 * once many connections to one destination are in progress, it requests one more to a unique name. In a loop that
 * request comes back; any other proxy reports that the name does not exist.
 */
export class LoopDetector {
  readonly #name: string;
  readonly #dial: DialThroughProxy;
  readonly #nowMs: () => number;
  /** Connections in progress or open, by destination. */
  readonly #connections = new Map<string, number>();
  #nextProbeMs = Number.NEGATIVE_INFINITY;
  #isProbing = false;
  #loopUntilMs = Number.NEGATIVE_INFINITY;

  /**
   * @param pseudonym  this process's name for proxies on the route
   * @param nowMs  monotonic clock
   */
  constructor(viaPseudonym: string, dial: DialThroughProxy, nowMs: () => number = () => performance.now()) {
    // Never a real host (RFC 6761, 6.4).
    this.#name = `${viaPseudonym}.invalid`;
    this.#dial = dial;
    this.#nowMs = nowMs;
  }

  /**
   * Whether this host is that of a probe coming back. Only then is a loop recorded, and only while a probe is pending:
   * otherwise the name alone would be enough to block all traffic.
   */
  recognizeProbe(host: string): boolean {
    if (host !== this.#name) return false;
    if (this.#isProbing) this.#loopUntilMs = this.#nowMs() + LOOP_MEMORY_MS;
    return true;
  }

  /** A loop was found recently. */
  get isLooping(): boolean {
    return this.#nowMs() < this.#loopUntilMs;
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
          result.failed(isResponse && this.isLooping ? LOOP : failure);
        },
      },
    };
  }

  #enter({ host, port }: Destination): () => void {
    const key = `${host}:${port}`;
    const count = (this.#connections.get(key) ?? 0) + 1;
    this.#connections.set(key, count);
    if (count >= SUSPICIOUS_CONNECTIONS) this.#probe(port);
    let isIn = true;
    return () => {
      if (!isIn) return;
      isIn = false;
      const others = (this.#connections.get(key) ?? 1) - 1;
      if (others === 0) this.#connections.delete(key);
      else this.#connections.set(key, others);
    };
  }

  #probe(port: number): void {
    const nowMs = this.#nowMs();
    if (nowMs < this.#nextProbeMs) return;
    this.#nextProbeMs = nowMs + PROBE_INTERVAL_MS;
    this.#isProbing = true;
    let end = (): void => undefined;
    const done = (): void => {
      clearTimeout(late);
      this.#isProbing = false;
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
    end = this.#dial({ host, port, secure: false, serverName: undefined, tunnel: true }, { connected, failed: done });
  }
}
