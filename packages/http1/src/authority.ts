import { consistsOf, HOST_NAME } from "./characters.ts";

const IP_LITERAL = /^\[[0-9a-f]*:[0-9a-f:.]*\]$/i;
const PORT = /^[0-9]{1,5}$/;

/**
 * Whether `text` is an unambiguous `host[:port]`: no user information, percent escapes, lists or zone identifiers. The
 * host is a DNS-like name, an IPv4 address or a bracketed IPv6 address.
 */
export function isAuthority(text: string): boolean {
  let hostEnd = text.length;
  if (text.startsWith("[")) {
    hostEnd = text.indexOf("]") + 1;
    if (!IP_LITERAL.test(text.slice(0, hostEnd))) return false;
  } else {
    const colon = text.indexOf(":");
    if (colon >= 0) hostEnd = colon;
    if (hostEnd === 0 || !consistsOf(hostEnd === text.length ? text : text.slice(0, hostEnd), HOST_NAME)) return false;
  }
  return hostEnd === text.length || (text.charAt(hostEnd) === ":" && isPort(text.slice(hostEnd + 1)));
}

/** Whether `text` is `host:port` with both parts present, as CONNECT requires. */
export function isAuthorityWithPort(text: string): boolean {
  return isAuthority(text) && text.lastIndexOf(":") > text.lastIndexOf("]");
}

function isPort(text: string): boolean {
  return PORT.test(text) && Number(text) <= 65_535;
}
