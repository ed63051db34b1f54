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
