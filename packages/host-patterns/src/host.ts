import { formatAddress, parseAddress } from "./address.ts";

const plainName = /^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/;

/** Texts that the WHATWG URL parser, and often getaddrinfo, read as an IPv4 address: `127.1`, `0x7f000001`. */
const numericEnd = /(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)$/;

/**
 * The canonical spelling of a host without port, for comparison: lower case, no trailing dot, IDNs as A-labels,
 * addresses in canonical text without brackets or zone (also shorthand IPv4 such as `127.1`). Never fails: texts that
 * cannot be converted are returned in lower case.
 */
export function canonicalHost(host: string): string {
  let text = host.toLowerCase();
  if (text.endsWith(".")) text = text.slice(0, -1);
  if (plainName.test(text) && !numericEnd.test(text)) return text;
  const address = parseAddress(text);
  if (address !== undefined) return formatAddress(address);
  if (/[^\x00-\x7f]/.test(text) || (plainName.test(text) && numericEnd.test(text))) return throughUrl(text) ?? text;
  return text;
}

/** A host with its A-labels (RFC 5890) decoded; invalid labels stay. */
export function unicodeHost(host: string): string {
  if (!/xn--/i.test(host)) return host;
  return host
    .split(".")
    .map((label) => (/^xn--/i.test(label) ? (punycodeDecoded(label.slice(4).toLowerCase()) ?? label) : label))
    .join(".");
}

const MAX_LABEL_LENGTH = 63;

/** Bootstring with the parameters of Punycode (RFC 3492 section 6.2); undefined for invalid text. */
function punycodeDecoded(text: string): string | undefined {
  if (text === "" || text.length > MAX_LABEL_LENGTH) return undefined;
  const delimiter = text.lastIndexOf("-");
  const points = Array.from(text.slice(0, Math.max(0, delimiter)), (character) => character.charCodeAt(0));
  let point = 128;
  let index = 0;
  let bias = 72;
  for (let at = delimiter + 1; at < text.length; index += 1) {
    const before = index;
    for (let weight = 1, step = 36; ; step += 36) {
      const digit = at < text.length ? "abcdefghijklmnopqrstuvwxyz0123456789".indexOf(text.charAt(at)) : -1;
      at += 1;
      if (digit === -1) return undefined;
      index += digit * weight;
      const threshold = Math.min(26, Math.max(1, step - bias));
      if (digit < threshold) break;
      weight *= 36 - threshold;
      if (weight > 0x7fff_ffff || index > 0x7fff_ffff) return undefined;
    }
    const length = points.length + 1;
    bias = adaptedBias(index - before, length, before === 0);
    point += Math.floor(index / length);
    index %= length;
    if (point > 0x10_ffff || (point >= 0xd800 && point <= 0xdfff)) return undefined;
    points.splice(index, 0, point);
  }
  return String.fromCodePoint(...points);
}

function adaptedBias(delta: number, length: number, isFirst: boolean): number {
  let rest = Math.floor(delta / (isFirst ? 700 : 2));
  rest += Math.floor(rest / length);
  let bias = 0;
  for (; rest > 455; bias += 36) rest = Math.floor(rest / 35);
  return bias + Math.floor((36 * rest) / (rest + 38));
}

/** The host in the spelling of the URL standard's host parser: A-labels, canonical IPv4. Undefined if it fails. */
function throughUrl(text: string): string | undefined {
  if (/[\x00-\x20\x7f#%/:<>?@[\\\]^|]/.test(text)) return undefined;
  try {
    const { hostname } = new URL(`http://${text}/`);
    return hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  } catch {
    return undefined;
  }
}

/** The longest host name DNS can carry in text form (RFC 1035). */
export const maxHostNameLength = 253;

/** A host without brackets, and the port if there is one. */
export interface HostPort {
  host: string;
  port: number | undefined;
}

/** `host:port` as in URLs and Host, IPv6 in brackets, without the default port. Inverse of {@link parseHostPort}. */
export function hostPortText(host: string, port: number, impliedPort?: number): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === impliedPort ? name : `${name}:${port}`;
}

/**
 * Splits `host`, `host:port`, `[v6]` or `[v6]:port` (RFC 3986 section 3.2.2, stricter): no user information, no empty
 * or padded port, ports 1 to 65535, IPv6 only in brackets. The host is returned in lower case, IDNs as A-labels; a
 * trailing dot and an IPv6 zone stay. Returns a sentence as `issue` for anything else; never throws.
 */
export function parseHostPort(text: string): HostPort | { issue: string } {
  if (text === "") return { issue: "The host is missing." };
  if (text.includes("@")) return { issue: "User information before the host is not allowed." };
  if (text.startsWith("[")) return bracketed(text);
  const colon = text.indexOf(":");
  if (colon !== text.lastIndexOf(":")) {
    return { issue: "Write an IPv6 address in brackets, such as [::1]:443." };
  }
  const host = hostName(colon === -1 ? text : text.slice(0, colon));
  if (typeof host !== "string") return host;
  return withPort(host, colon === -1 ? "" : text.slice(colon));
}

function bracketed(text: string): HostPort | { issue: string } {
  const end = text.indexOf("]");
  if (end === -1) return { issue: "The closing bracket of the IPv6 address is missing." };
  // RFC 6874 writes the zone's percent sign as %25 inside URLs; users and systems write it bare.
  const host = text.slice(1, end).replace("%25", "%").toLowerCase();
  const zone = host.indexOf("%");
  if (
    !host.includes(":") ||
    parseAddress(host) === undefined ||
    (zone !== -1 && !/^%[a-z0-9._~-]+$/.test(host.slice(zone)))
  ) {
    return { issue: "The text in brackets is not an IPv6 address." };
  }
  return withPort(host, text.slice(end + 1));
}

/** `rest` follows the host: empty, or a colon and the port. */
function withPort(host: string, rest: string): HostPort | { issue: string } {
  if (rest === "") return { host, port: undefined };
  if (!rest.startsWith(":")) return { issue: "Only a port may follow the closing bracket." };
  const digits = rest.slice(1);
  const port = /^[1-9][0-9]{0,4}$/.test(digits) ? Number(digits) : 0;
  if (port < 1 || port > 65535) return { issue: "The port must be a number from 1 to 65535." };
  return { host, port };
}

function hostName(text: string): string | { issue: string } {
  const isAscii = !/[^\x00-\x7f]/.test(text);
  const host = isAscii ? text.toLowerCase() : canonicalHost(text);
  const name = host.endsWith(".") ? host.slice(0, -1) : host;
  if (name === "") return { issue: "The host is missing." };
  if (!/^[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/.test(name)) {
    return { issue: "The host has an empty part or a character that cannot be in a host name." };
  }
  if (name.length > maxHostNameLength) return { issue: `The host is longer than ${maxHostNameLength} characters.` };
  return host;
}
