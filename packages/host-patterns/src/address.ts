/** An IP address. `value` has 128 bits; IPv4 is stored as IPv4-mapped IPv6 (`::ffff:a.b.c.d`). */
export interface IpAddress {
  version: 4 | 6;
  value: bigint;
}

/** A network; `prefixBits` counts from the top of the 128 bits, so that an IPv4 /8 has 104. */
export interface IpNetwork extends IpAddress {
  prefixBits: number;
}

const mappedPrefix = 0xffffn << 32n;
const DOT = 0x2e;
const ZERO = 0x30;

/** Whether a 128-bit value is in ::ffff:0:0/96 (RFC 4291 section 2.5.5.2). */
const isMapped = (value: bigint): boolean => value >> 32n === 0xffffn;

/**
 * Strict text form of IPv4 (four decimal parts, no leading zeros) or IPv6 (RFC 4291 section 2.2; a zone after `%` and
 * surrounding brackets are ignored). Undefined for anything else.
 */
export function parseAddress(text: string): IpAddress | undefined {
  if (!text.includes(":")) {
    const value = ipv4Value(text);
    return value === undefined ? undefined : { version: 4, value: mappedPrefix | BigInt(value) };
  }
  let bare = text.startsWith("[") && text.endsWith("]") ? text.slice(1, -1) : text;
  const zone = bare.indexOf("%");
  if (zone === bare.length - 1) return undefined;
  if (zone !== -1) bare = bare.slice(0, zone);
  const value = ipv6Value(bare);
  return value === undefined ? undefined : { version: 6, value };
}

/** Digit by digit for speed: every requested host is tried as an address first. */
function ipv4Value(text: string): number | undefined {
  let value = 0;
  let dots = 0;
  let octet = -1;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === DOT) {
      if (octet === -1 || ++dots > 3) return undefined;
      value = value * 256 + octet;
      octet = -1;
      continue;
    }
    const digit = code - ZERO;
    // No digit may follow a leading zero, which some programs read as octal.
    if (digit < 0 || digit > 9 || octet === 0) return undefined;
    octet = octet === -1 ? digit : octet * 10 + digit;
    if (octet > 255) return undefined;
  }
  return dots === 3 && octet !== -1 ? value * 256 + octet : undefined;
}

function ipv6Value(text: string): bigint | undefined {
  if (text.length > 45) return undefined;
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const head = ipv6Groups(halves[0] ?? "", halves.length === 1);
  const tail = ipv6Groups(halves[1] ?? "", true);
  if (head === undefined || tail === undefined) return undefined;
  const missing = 8 - head.length - tail.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  let value = 0n;
  for (const group of [...head, ...Array<number>(missing).fill(0), ...tail]) value = (value << 16n) | BigInt(group);
  return value;
}

function ipv6Groups(text: string, mayEndInIpv4: boolean): number[] | undefined {
  if (text === "") return [];
  const groups: number[] = [];
  const parts = text.split(":");
  for (const [index, part] of parts.entries()) {
    if (mayEndInIpv4 && index === parts.length - 1 && part.includes(".")) {
      const value = ipv4Value(part);
      if (value === undefined) return undefined;
      groups.push(Math.floor(value / 65536), value % 65536);
    } else {
      if (!/^[0-9a-fA-F]{1,4}$/.test(part)) return undefined;
      groups.push(Number.parseInt(part, 16));
    }
  }
  return groups;
}

/** Canonical text: dotted decimal, or RFC 5952 for IPv6 (IPv4-mapped addresses with a dotted tail). */
export function formatAddress(address: IpAddress): string {
  if (address.version === 4) return dotted(address.value);
  if (isMapped(address.value)) return `::ffff:${dotted(address.value)}`;
  const groups = Array.from({ length: 8 }, (_, index) => Number((address.value >> BigInt(112 - index * 16)) & 0xffffn));
  const [start, length] = longestZeroRun(groups);
  const hex = (part: number[]): string => part.map((group) => group.toString(16)).join(":");
  return length < 2 ? hex(groups) : `${hex(groups.slice(0, start))}::${hex(groups.slice(start + length))}`;
}

/** As {@link formatAddress}, with IPv4-mapped addresses as IPv4: one text per peer (RFC 4291, 2.5.5.2). */
export function formatPlainAddress({ value, version }: IpAddress): string {
  return formatAddress({ value, version: isMapped(value) ? 4 : version });
}

function dotted(value: bigint): string {
  const low = Number(value & 0xffff_ffffn);
  return `${low >>> 24}.${(low >>> 16) & 255}.${(low >>> 8) & 255}.${low & 255}`;
}

function longestZeroRun(groups: readonly number[]): [start: number, length: number] {
  let best: [number, number] = [0, 0];
  for (let start = 0; start < groups.length; start += 1) {
    let end = start;
    while (groups[end] === 0) end += 1;
    if (end - start > best[1]) best = [start, end - start];
  }
  return best;
}

/** A CIDR network or a single address; bits below the prefix are ignored. Undefined for anything else. */
export function parseNetwork(text: string): IpNetwork | undefined {
  const slash = text.indexOf("/");
  const address = parseAddress(slash === -1 ? text : text.slice(0, slash));
  if (address === undefined) return undefined;
  if (slash === -1) return { ...address, prefixBits: 128 };
  const bits = text.slice(slash + 1);
  if (!/^(?:0|[1-9][0-9]{0,2})$/.test(bits)) return undefined;
  const prefixBits = Number(bits) + (address.version === 4 ? 96 : 0);
  if (prefixBits > 128) return undefined;
  const hostBits = BigInt(128 - prefixBits);
  return { version: address.version, value: (address.value >> hostBits) << hostBits, prefixBits };
}

/**
 * Whether the network contains the address. IPv4 and its IPv4-mapped IPv6 form are one address, except that an IPv6
 * network wider than ::ffff:0:0/96, such as `::/0`, does not contain plain IPv4.
 */
export function networkContains(network: IpNetwork, address: IpAddress): boolean {
  if (address.version === 4 && network.prefixBits < 96) return false;
  const hostBits = BigInt(128 - network.prefixBits);
  return address.value >> hostBits === network.value >> hostBits;
}

const networks = (...texts: readonly string[]): IpNetwork[] => texts.map(parseNetwork).filter((n) => n !== undefined);
const loopbackNetworks = networks("127.0.0.0/8", "::1");

const privateNetworks = networks(
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "169.254.0.0/16",
  "100.64.0.0/10",
  "fc00::/7",
  "fe80::/10",
  "fec0::/10",
);

const unspecifiedNetworks = networks("0.0.0.0", "::");

function isIn(list: readonly IpNetwork[], text: string): boolean {
  const address = parseAddress(text);
  return address !== undefined && list.some((network) => networkContains(network, address));
}

/** 127.0.0.0/8 or ::1, also IPv4-mapped. False for names and other texts. */
export const isLoopback = (address: string): boolean => isIn(loopbackNetworks, address);

/**
 * An address outside the public internet: RFC 1918, link-local, carrier-grade NAT (RFC 6598), unique local and
 * site-local IPv6; also IPv4-mapped. Excludes loopback. False for names and other texts.
 */
export const isPrivate = (address: string): boolean => isIn(privateNetworks, address);

/** 0.0.0.0 or ::, also IPv4-mapped. False for names and other texts. */
export const isUnspecified = (address: string): boolean => isIn(unspecifiedNetworks, address);
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
