import { isIPv4 } from "node:net";
import { canonicalHost, isUnspecified } from "@headworks/host-patterns";

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
