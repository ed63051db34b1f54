/** Octets that are no UTF-8 become lone surrogates from here on, which no text has. */
const ESCAPE = 0xdc00;
const ESCAPED = /[\udc80-\udcff]/;

/**
 * UTF-8 as text, with each octet that is none as a lone surrogate (U+DC80 to U+DCFF), so that the way back gives
 * exactly the same bytes.
 */
export function decodeOctets(bytes: Buffer): string {
  const pieces: string[] = [];
  let from = 0;
  for (let at = 0; at < bytes.length;) {
    const length = sequenceLength(bytes, at);
    if (length > 0) {
      at += length;
      continue;
    }
    pieces.push(bytes.toString("utf8", from, at), String.fromCharCode(ESCAPE + (bytes[at] ?? 0)));
    at += 1;
    from = at;
  }
  pieces.push(bytes.toString("utf8", from));
  return pieces.join("");
}

/** The way back. Halves of characters that are no escapes become U+FFFD, as everywhere. */
export function encodeOctets(text: string): Buffer {
  if (!ESCAPED.test(text)) return Buffer.from(text, "utf8");
  const pieces: Buffer[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < ESCAPE + 0x80 || unit > ESCAPE + 0xff || isHigh(text.charCodeAt(at - 1))) continue;
    if (at > from) pieces.push(Buffer.from(text.slice(from, at), "utf8"));
    pieces.push(Buffer.of(unit - ESCAPE));
    from = at + 1;
  }
  pieces.push(Buffer.from(text.slice(from), "utf8"));
  return Buffer.concat(pieces);
}

const isHigh = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;

/** Octets of the well-formed UTF-8 sequence (Unicode, table 3-7) that begins at `at`; 0 when there is none. */
function sequenceLength(bytes: Buffer, at: number): number {
  const lead = bytes[at] ?? 0;
  if (lead < 0x80) return 1;
  const second = bytes[at + 1] ?? 0;
  if (lead >= 0xc2 && lead <= 0xdf) return isTrail(second) ? 2 : 0;
  const isThird = isTrail(bytes[at + 2] ?? 0);
  if (lead >= 0xe0 && lead <= 0xef) {
    const low = lead === 0xe0 ? 0xa0 : 0x80;
    const high = lead === 0xed ? 0x9f : 0xbf;
    return second >= low && second <= high && isThird ? 3 : 0;
  }
  if (lead < 0xf0 || lead > 0xf4) return 0;
  const low = lead === 0xf0 ? 0x90 : 0x80;
  const high = lead === 0xf4 ? 0x8f : 0xbf;
  return second >= low && second <= high && isThird && isTrail(bytes[at + 3] ?? 0) ? 4 : 0;
}

const isTrail = (octet: number): boolean => (octet & 0xc0) === 0x80;
