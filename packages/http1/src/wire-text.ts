const encoder = new TextEncoder();

/**
 * Text as it stands on the wire: its UTF-8 bytes, one character each, as this codec gives and takes fields. ASCII text
 * is itself.
 */
export function wireText(text: string): string {
  let wire = "";
  for (const byte of encoder.encode(text)) wire += String.fromCharCode(byte);
  return wire;
}

const BEYOND_ASCII = /[\x80-\xff]/;
const EACH_BEYOND_ASCII = /[\x80-\xff]/g;

/**
 * A request target of the wire with its octets beyond ASCII percent-encoded (RFC 3986 section 2.1), as the programs meant
 * that send them unencoded. ASCII text is itself.
 */
export function asciiTarget(target: string): string {
  if (!BEYOND_ASCII.test(target)) return target;
  return target.replaceAll(EACH_BEYOND_ASCII, (octet) => `%${octet.charCodeAt(0).toString(16).toUpperCase()}`);
}
