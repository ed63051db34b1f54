import { networkContains, parseAddress, parseNetwork, type IpAddress } from "@headworks/host-patterns";

/** A set of networks with one lookup per distinct prefix length, independent of the number of networks. */
export class AddressSet {
  readonly #byPrefixBits = new Map<number, Set<bigint>>();

  /** Takes addresses and CIDR networks; invalid ones, which the check has reported, are skipped. */
  constructor(networks: readonly string[]) {
    for (const text of networks) {
      const network = parseNetwork(text);
      if (network === undefined) continue;
      const { prefixBits, value } = network;
      const known = this.#byPrefixBits.get(prefixBits);
      const prefix = value >> BigInt(128 - prefixBits);
      if (known === undefined) this.#byPrefixBits.set(prefixBits, new Set([prefix]));
      else known.add(prefix);
    }
  }

  /** True if a network contains the address; IPv4 and IPv4-mapped IPv6 are equal. */
  has(address: IpAddress): boolean {
    for (const [prefixBits, prefixes] of this.#byPrefixBits) {
      // An IPv6 network wider than the mapped range, such as ::/0, does not cover IPv4.
      if (address.version === 4 && prefixBits < 96) continue;
      if (prefixes.has(address.value >> BigInt(128 - prefixBits))) return true;
    }
    return false;
  }
}

const everywhere = ["0.0.0.0", "::"].map((text) => parseAddress(text)).filter((address) => address !== undefined);
const farEnds = ["255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]
  .map((text) => parseAddress(text))
  .filter((address) => address !== undefined);

/** True for the whole IPv4 or IPv6 range. */
export function isEverything(text: string): boolean {
  const network = parseNetwork(text);
  if (network === undefined) return false;
  return everywhere.some((first, at) => {
    const last = farEnds[at];
    return last !== undefined && networkContains(network, first) && networkContains(network, last);
  });
}
