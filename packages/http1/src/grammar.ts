export const TAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SP = 0x20;
export const COLON = 0x3a;
export const SEMICOLON = 0x3b;

/** A table indexed by latin1 code: 1 if `accepts` returns true. */
function table(accepts: (code: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, code) => (accepts(code) ? 1 : 0));
}

function members(text: string): (code: number) => boolean {
  const codes = new Set(Array.from(text, (character) => character.charCodeAt(0)));
  return (code) => codes.has(code);
}

const ALPHANUMERIC = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/** tchar of RFC 9110 section 5.6.2. */
export const TCHAR = table(members(`!#$%&'*+-.^_\`|~${ALPHANUMERIC}`));

/** field-vchar, SP and HTAB of RFC 9110 section 5.5: no control character, no DEL. */
export const FIELD_VALUE = table((code) => code === TAB || (code >= 0x20 && code !== 0x7f));

/** Characters of a request target: visible ASCII without "#", and non-ASCII octets. */
export const TARGET = table((code) => code > 0x20 && code !== 0x7f && code !== 0x23);

/** Characters of a host name that all parsers treat alike; percent escapes and sub-delimiters are excluded. */
const HOST_NAME = table(members(`-._~${ALPHANUMERIC}`));

/** Value of a hexadecimal digit, or 255. */
export const HEX_VALUE = Uint8Array.from({ length: 256 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16);
  return Number.isNaN(value) ? 255 : value;
});

/** Whether every character of `text` is in `allowed`; characters beyond latin1 never are. */
export function consistsOf(text: string, allowed: Uint8Array): boolean {
  for (let at = 0; at < text.length; at++) {
    if (allowed[text.charCodeAt(at)] !== 1) return false;
  }
  return true;
}

/** Whether `text` is a non-empty token (RFC 9110 section 5.6.2). */
export function isToken(text: string): boolean {
  return text.length > 0 && consistsOf(text, TCHAR);
}

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

const encoder = new TextEncoder();

/** The UTF-8 bytes of a text, one character each, as this codec represents fields. ASCII text is unchanged. */
export function wireText(text: string): string {
  let wire = "";
  for (const byte of encoder.encode(text)) wire += String.fromCharCode(byte);
  return wire;
}

const BEYOND_ASCII = /[\x80-\xff]/;
const EACH_BEYOND_ASCII = /[\x80-\xff]/g;

/** Percent-encodes the non-ASCII octets of a request target (RFC 3986 section 2.1). ASCII text is unchanged. */
export function asciiTarget(target: string): string {
  if (!BEYOND_ASCII.test(target)) return target;
  return target.replaceAll(EACH_BEYOND_ASCII, (octet) => `%${octet.charCodeAt(0).toString(16).toUpperCase()}`);
}

export const BEYOND_LATIN1 = /[^\0-\xff]/;

/**
 * A copy of a string in memory of its own. V8 keeps the parent of a sliced or concatenated string alive, so
 * remembering a name or value of a head would retain the whole head.
 */
export function ownText(text: string): string {
  const encoding = BEYOND_LATIN1.test(text) ? "utf16le" : "latin1";
  return Buffer.from(text, encoding).toString(encoding);
}
