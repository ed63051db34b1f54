import { formatAddress, parseAddress } from "@headworks/host-patterns";
import type { Socks5Host } from "@headworks/socks5";

/** A host as SOCKS5 carries it: addresses by their octets, all else by name. IPv6 zones mean nothing elsewhere. */
export function socks5Host(host: string): Socks5Host {
  const address = parseAddress(host);
  if (address === undefined) return { kind: "name", name: host };
  const lengthBytes = address.version === 4 ? 4 : 16;
  const octets = new Uint8Array(lengthBytes);
  for (let at = lengthBytes - 1, rest = address.value; at >= 0; at -= 1, rest >>= 8n) octets[at] = Number(rest & 255n);
  return { kind: address.version === 4 ? "ipv4" : "ipv6", octets };
}

/** The text of an address that came by SOCKS5: dotted, or RFC 5952. */
export function addressOfOctets(octets: Uint8Array): string {
  let value = octets.length === 4 ? 0xffffn : 0n;
  for (const octet of octets) value = (value << 8n) | BigInt(octet);
  return formatAddress({ version: octets.length === 4 ? 4 : 6, value });
}
