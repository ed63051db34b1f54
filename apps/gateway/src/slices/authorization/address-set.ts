import { networkContains, parseAddress, parseNetwork, type IpAddress } from "@headworks/host-patterns";

/** Networks to look addresses up in: as many look-ups as there are lengths of prefixes, however many networks. */
export class AddressSet {
  readonly #byPrefixBits = new Map<number, Set<bigint>>();

  /** Takes addresses and CIDR networks; what is neither is left out, since the document's check refused it before. */
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

  /** Whether a network holds the address; IPv4 and its IPv4-mapped IPv6 form are one address. */
  has(address: IpAddress): boolean {
    for (const [prefixBits, prefixes] of this.#byPrefixBits) {
      // An IPv6 network that is wider than the mapped range, such as ::/0, says nothing of IPv4.
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

/** Whether a network is all of IPv4 or all of IPv6. */
export function isEverything(text: string): boolean {
  const network = parseNetwork(text);
  if (network === undefined) return false;
  return everywhere.some((first, at) => {
    const last = farEnds[at];
    return last !== undefined && networkContains(network, first) && networkContains(network, last);
  });
}
