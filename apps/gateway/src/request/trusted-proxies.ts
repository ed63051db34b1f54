import {
  formatPlainAddress,
  networkContains,
  parseAddress,
  parseNetwork,
  type IpNetwork,
} from "@headworks/host-patterns";
import { fieldValues, type RawFields } from "@headworks/http1";

/** The proxies whose `X-Forwarded-For` is trusted. */
export class TrustedProxies {
  readonly #networks: readonly IpNetwork[];

  /** Takes addresses and CIDR networks; other texts are skipped, since validation has refused them. */
  constructor(networks: readonly string[]) {
    this.#networks = networks.map((text) => parseNetwork(text)).filter((network) => network !== undefined);
  }

  includes(address: string): boolean {
    if (this.#networks.length === 0) return false;
    const parsed = parseAddress(address);
    return parsed !== undefined && this.#networks.some((network) => networkContains(network, parsed));
  }

  /**
   * The client's address: the peer's, unless the peer is trusted; then the first untrusted address of
   * `X-Forwarded-For` from right to left, in canonical spelling. Empty members are ignored (RFC 9110 section
   * 5.6.1.2); a member without an address ends the walk at the previous one.
   */
  clientAddress(peer: string, fields: Readonly<RawFields>): string {
    if (!this.includes(peer)) return peer;
    const members = fieldValues(fields, "x-forwarded-for").join(",").split(",").toReversed();
    let client = peer;
    for (const member of members) {
      const text = member.trim();
      if (text === "") continue;
      const address = addressOf(text);
      if (address === undefined) return client;
      client = address;
      if (!this.includes(address)) return client;
    }
    return client;
  }
}

/** An IPv4 address with an optional port, or an IPv6 address in brackets with an optional port. */
const WITH_PORT = /^(?:([0-9.]+):[0-9]{1,5}|\[([^\]]*:[^\]]*)\](?::[0-9]{1,5})?)$/;

/** The address of a member, which proxies may write with a port, in brackets (`[2001:db8::9]:51234`) and in quotes. */
function addressOf(member: string): string | undefined {
  const node = /^"(.*)"$/.exec(member)?.[1] ?? member;
  const [, v4, v6] = WITH_PORT.exec(node) ?? [];
  const address = v4 ?? v6 ?? node;
  const parsed = parseAddress(address);
  return parsed === undefined ? undefined : formatPlainAddress(parsed);
}
