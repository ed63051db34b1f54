// Tested by ../../../apps/gateway/src/routing/route-table.test.ts
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
