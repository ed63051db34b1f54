/**
 * The part of DER (ITU-T X.690) for X.509 certificates: a writer of small functions, each of which returns one
 * complete tag-length-value, and a bounds-checked reader.
 */

/** Identifier octets of the universal types used here. */
export const Tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  objectIdentifier: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

function lengthOctets(length: number): number[] {
  if (length < 0x80) return [length];
  const octets: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest & 0xff);
  return [0x80 | octets.length, ...octets];
}

/** One tag-length-value; `contents` are concatenated. */
export function tlv(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  let length = 0;
  for (const content of contents) length += content.length;
  return Buffer.concat([Uint8Array.from([tag, ...lengthOctets(length)]), ...contents]);
}

/** SEQUENCE of already encoded elements. */
export const sequence = (...elements: readonly Uint8Array[]): Buffer => tlv(Tag.sequence, ...elements);

/** SET of one already encoded element (more than one would need DER's ordering rule). */
export const setOfOne = (element: Uint8Array): Buffer => tlv(Tag.set, element);

/** BOOLEAN TRUE; DER forbids writing a DEFAULT FALSE, so there is no other. */
export const booleanTrue: Buffer = tlv(Tag.boolean, Uint8Array.of(0xff));

/** INTEGER from an unsigned big-endian magnitude, in the fewest octets that keep it positive. */
export function unsignedInteger(magnitude: Uint8Array): Buffer {
  let start = 0;
  while (start < magnitude.length - 1 && magnitude[start] === 0) start += 1;
  const digits = magnitude.subarray(start);
  const first = digits[0] ?? 0;
  return first >= 0x80 || digits.length === 0 ? tlv(Tag.integer, Uint8Array.of(0), digits) : tlv(Tag.integer, digits);
}

/** OBJECT IDENTIFIER from its dotted form. */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const octets: number[] = [];
  for (const arc of [first * 40 + second, ...rest]) {
    const base128 = [arc & 0x7f];
    for (let high = Math.floor(arc / 128); high > 0; high = Math.floor(high / 128)) {
      base128.unshift((high & 0x7f) | 0x80);
    }
    octets.push(...base128);
  }
  return tlv(Tag.objectIdentifier, Uint8Array.from(octets));
}

export const octetString = (bytes: Uint8Array): Buffer => tlv(Tag.octetString, bytes);

/** BIT STRING whose last octet has `unusedBits` padding bits. */
export const bitString = (bytes: Uint8Array, unusedBits = 0): Buffer =>
  tlv(Tag.bitString, Uint8Array.of(unusedBits), bytes);

/** UTF8String. */
export const utf8String = (text: string): Buffer => tlv(Tag.utf8String, Buffer.from(text, "utf8"));

/** Time as in RFC 5280 section 4.1.2.5: UTCTime for 1950 to 2049, else GeneralizedTime; whole seconds, UTC. */
export function time(date: Date): Buffer {
  const year = date.getUTCFullYear();
  if (!(year >= 0 && year <= 9999)) throw new RangeError("a certificate date must lie in the years 0 to 9999");
  const digits = date.toISOString().slice(0, 19).replace(/[-:T]/g, "");
  return year >= 1950 && year < 2050
    ? tlv(Tag.utcTime, Buffer.from(`${digits.slice(2)}Z`, "latin1"))
    : tlv(Tag.generalizedTime, Buffer.from(`${digits}Z`, "latin1"));
}

/** `[number]` around encoded content: constructed (explicit tagging) unless `primitive`. */
export const contextTag = (number: number, content: Uint8Array, primitive = false): Buffer =>
  tlv((primitive ? 0x80 : 0xa0) | number, content);

/** One element found by {@link readElement}; `raw` includes its header. */
export interface DerElement {
  tag: number;
  content: Uint8Array;
  raw: Uint8Array;
}

/** Reads the element at the start of `bytes`. Throws a RangeError if it extends beyond them. */
export function readElement(bytes: Uint8Array): DerElement {
  const tag = bytes[0];
  const first = bytes[1];
  if (tag === undefined || first === undefined) throw new RangeError("a DER element is cut short");
  if ((tag & 0x1f) === 0x1f) throw new RangeError("a DER tag above 30 is not supported");
  let length = first;
  let start = 2;
  if (first >= 0x80) {
    const count = first & 0x7f;
    if (count === 0 || count > 4) throw new RangeError("a DER length is indefinite or too large");
    length = 0;
    for (let index = 0; index < count; index += 1) length = length * 256 + (bytes[2 + index] ?? 0);
    start = 2 + count;
  }
  const end = start + length;
  if (end > bytes.length) throw new RangeError("a DER element is cut short");
  return { tag, content: bytes.subarray(start, end), raw: bytes.subarray(0, end) };
}

/** Reads all consecutive elements in `bytes`. */
export function readElements(bytes: Uint8Array): DerElement[] {
  const elements: DerElement[] = [];
  for (let rest = bytes; rest.length > 0;) {
    const element = readElement(rest);
    elements.push(element);
    rest = rest.subarray(element.raw.length);
  }
  return elements;
}
