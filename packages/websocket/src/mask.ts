/**
 * Applies a masking key (RFC 6455, 5.3) to bytes in place; doing it twice undoes it.
 *
 * @param mask  the key as a number, first octet highest
 * @param position  of the first byte in its payload
 */
export function applyMask(bytes: Uint8Array, mask: number, position: number): void {
  const turned = rotate(mask, position & 3);
  const octets = [turned >>> 24, (turned >>> 16) & 0xff, (turned >>> 8) & 0xff, turned & 0xff] as const;
  const [first, second, third, fourth] = octets;
  const whole = bytes.length & ~3;
  for (let at = 0; at < whole; at += 4) {
    bytes[at] = (bytes[at] as number) ^ first;
    bytes[at + 1] = (bytes[at + 1] as number) ^ second;
    bytes[at + 2] = (bytes[at + 2] as number) ^ third;
    bytes[at + 3] = (bytes[at + 3] as number) ^ fourth;
  }
  for (let at = whole; at < bytes.length; at += 1) bytes[at] = (bytes[at] as number) ^ (octets[at & 3] as number);
}

function rotate(mask: number, octets: number): number {
  return octets === 0 ? mask : (mask << (octets * 8)) | (mask >>> (32 - octets * 8));
}
