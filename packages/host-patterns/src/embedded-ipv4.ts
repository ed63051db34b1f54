import type { IpAddress } from "./address.ts";

const lowWord = 0xffff_ffffn;
const mapped = (ipv4: bigint): IpAddress => ({ version: 4, value: (0xffffn << 32n) | (ipv4 & lowWord) });

/** Whether the topmost `bits` of the address are `prefix`. */
const startsWith = (value: bigint, bits: number, prefix: bigint): boolean => value >> BigInt(128 - bits) === prefix;

/**
 * IPv4 addresses that packets to an IPv6 address may reach, because a translator or tunnel extracts them: NAT64
 * 64:ff9b::/96 (RFC 6052) and 64:ff9b:1::/48 (RFC 8215, read as a /96), IPv4-translated ::ffff:0:0:0/96 (RFC 7915),
 * IPv4-compatible ::/96 (RFC 4291 section 2.5.5.1), 6to4 2002::/16 (RFC 3056), Teredo 2001::/32 (RFC 4380: its server
 * and its client) and ISATAP interface identifiers (RFC 5214). Empty for IPv4 including IPv4-mapped addresses, and
 * for :: and ::1.
 */
export function embeddedIpv4(address: IpAddress): IpAddress[] {
  const { version, value } = address;
  if (version === 4 || value <= 1n || value >> 32n === 0xffffn) return [];
  if (startsWith(value, 96, 0x0064_ff9b_0000_0000_0000_0000n)) return [mapped(value)];
  if (startsWith(value, 48, 0x0064_ff9b_0001n)) return [mapped(value)];
  if (startsWith(value, 96, 0xffff_0000n)) return [mapped(value)];
  if (startsWith(value, 96, 0n)) return [mapped(value)];
  if (startsWith(value, 16, 0x2002n)) return [mapped(value >> 80n)];
  if (startsWith(value, 32, 0x2001_0000n)) return [mapped(value >> 64n), mapped(value ^ lowWord)];
  const identifier = (value >> 32n) & lowWord;
  return identifier === 0x0000_5efen || identifier === 0x0200_5efen ? [mapped(value)] : [];
}
