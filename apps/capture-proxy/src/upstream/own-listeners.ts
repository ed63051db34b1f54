import { isIPv4 } from "node:net";
import { canonicalHost, isUnspecified } from "@headworks/host-patterns";

interface Listener {
  readonly address: string;
  readonly port: number;
}

/**
 * Knows where this service listens, so that a connection that would lead back into it is refused. The decision is
 * taken on the two ends of a connected socket, so names, aliases and odd spellings of addresses cannot mislead it.
 */
export class OwnListeners {
  readonly #listeners: Listener[] = [];

  add(address: string, port: number): void {
    this.#listeners.push({ address: plainAddress(address), port });
  }

  /** Another program may take the port from now on. */
  remove(address: string, port: number): void {
    const plain = plainAddress(address);
    const place = this.#listeners.findIndex((each) => each.port === port && each.address === plain);
    if (place !== -1) this.#listeners.splice(place, 1);
  }

  /** True when the connected peer is one of our listeners. `localAddress` is our end of the same connection. */
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
   * True when a proxy at the far end of a connection would find one of our listeners under this name: it runs on this
   * machine, and the name can only mean this machine. Names that need a look-up are the proxy's business.
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

/** IPv4-mapped IPv6 addresses mean the IPv4 address. */
function plainAddress(address: string): string {
  const lower = address.toLowerCase();
  return lower.startsWith("::ffff:") && isIPv4(lower.slice(7)) ? lower.slice(7) : lower;
}

function isLoopback(address: string): boolean {
  return address === "::1" || (isIPv4(address) && address.startsWith("127."));
}
