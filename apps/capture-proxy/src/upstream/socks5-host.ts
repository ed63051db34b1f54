import { formatAddress, parseAddress } from "@headworks/host-patterns";
import type { Socks5Host } from "@headworks/socks5";

/** Encodes a host for SOCKS5: addresses as octets, everything else as a name. IPv6 zones are dropped. */
export function socks5Host(host: string): Socks5Host {
  const address = parseAddress(host);
  if (address === undefined) return { kind: "name", name: host };
  const lengthBytes = address.version === 4 ? 4 : 16;
  const octets = new Uint8Array(lengthBytes);
  for (let at = lengthBytes - 1, rest = address.value; at >= 0; at -= 1, rest >>= 8n) octets[at] = Number(rest & 255n);
  return { kind: address.version === 4 ? "ipv4" : "ipv6", octets };
}

/** The text of an address received over SOCKS5: dotted IPv4, or RFC 5952. */
export function addressOfOctets(octets: Uint8Array): string {
  let value = octets.length === 4 ? 0xffffn : 0n;
  for (const octet of octets) value = (value << 8n) | BigInt(octet);
  return formatAddress({ version: octets.length === 4 ? 4 : 6, value });
}
