import { networkContains, parseAddress, parseNetwork, type IpNetwork } from "@headworks/host-patterns";
import { fieldValues, type RawFields } from "@headworks/http1";

/** Knows whose `X-Forwarded-For` is believed. */
export class TrustedProxies {
  readonly #networks: readonly IpNetwork[];

  /** Takes addresses and CIDR networks; what is neither is left out, since the document's check refused it before. */
  constructor(networks: readonly string[]) {
    this.#networks = networks.map((text) => parseNetwork(text)).filter((network) => network !== undefined);
  }

  includes(address: string): boolean {
    if (this.#networks.length === 0) return false;
    const parsed = parseAddress(address);
    return parsed !== undefined && this.#networks.some((network) => networkContains(network, parsed));
  }

  /**
   * The client's address: the peer's, unless the peer is trusted; then the first address of `X-Forwarded-For`, from
   * right to left, that is not trusted. A member that is no address ends the walk at the last one that was.
   */
  clientAddress(peer: string, fields: Readonly<RawFields>): string {
    if (!this.includes(peer)) return peer;
    const members = fieldValues(fields, "x-forwarded-for").join(",").split(",").toReversed();
    let client = peer;
    for (const member of members) {
      const address = member.trim();
      if (parseAddress(address) === undefined) return client;
      client = address;
      if (!this.includes(address)) return client;
    }
    return client;
  }
}
