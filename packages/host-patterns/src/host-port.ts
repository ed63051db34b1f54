import { parseAddress } from "./address.ts";
import { canonicalHost } from "./canonical-host.ts";

/** The longest host name DNS can carry in text form (RFC 1035). */
export const maxHostNameLength = 253;

/** A host without brackets, and the port if there is one. */
export interface HostPort {
  host: string;
  port: number | undefined;
}

/**
 * `host:port` as in URLs and Host fields, IPv6 in brackets, without the scheme's default port. The inverse of {@link
 * parseHostPort}.
 */
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
