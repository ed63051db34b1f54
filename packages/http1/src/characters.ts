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

/**
 * Characters of a request target: visible ASCII without "#", and non-ASCII octets, which some clients do not
 * percent-encode.
 */
export const TARGET = table((code) => code > 0x20 && code !== 0x7f && code !== 0x23);

/** Characters of a host name that all parsers treat alike; percent escapes and sub-delimiters are excluded. */
export const HOST_NAME = table(members(`-._~${ALPHANUMERIC}`));

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
