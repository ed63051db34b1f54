import { CR, FIELD_VALUE, LF, SP } from "./characters.ts";

const MAX_BYTES = 65_536;
const BLOCK_BYTES = 2_048;
const memory = new ArrayBuffer(MAX_BYTES + 4);
const bytes = Buffer.from(memory);
const words = new Int32Array(memory);

/**
 * Looks for a head that lies whole in `chunk` from `start` and is clean: nothing but field-value characters and
 * pairs of CR LF up to the first empty line. Returns the offset behind that line, or -1 if the head is not whole, not
 * clean, or longer than `maxBytes` (or 64 KiB). In a clean head a parser may search for line ends natively instead
 * of judging every character, which halves the cost of a head.
 *
 * Four bytes are judged at a time: the expression is zero exactly if none of them is below 0x20 or equal to 0x7f.
 * Only words with a line end (or a tab, or worse) are looked at byte by byte.
 */
export function cleanHeadEnd(chunk: Buffer, start: number, maxBytes: number): number {
  const available = Math.min(chunk.length - start, maxBytes, MAX_BYTES);
  let copied = 0;
  let wordIndex = 0;
  let lineStart = 0;
  let lastCr = -1;
  while (copied < available) {
    const size = Math.min(available - copied, BLOCK_BYTES);
    chunk.copy(bytes, copied, start + copied, start + copied + size);
    copied += size;
    for (let padding = copied; padding < copied + 3; padding++) bytes[padding] = SP;
    for (const wordEnd = (copied + 3) >> 2; wordIndex < wordEnd; wordIndex++) {
      const word = words[wordIndex] ?? 0;
      const deletes = word ^ 0x7f7f7f7f;
      const flags = ((word - 0x20202020) & ~word) | ((deletes - 0x01010101) & ~deletes);
      if ((flags & 0x80808080) === 0) continue;
      const behind = 4 * wordIndex + 4;
      for (let at = behind - 4; at < behind; at++) {
        const byte = bytes[at] ?? 0;
        if (FIELD_VALUE[byte] === 1) continue;
        if (byte === CR && lastCr < lineStart) {
          lastCr = at;
        } else if (byte === LF && lastCr >= lineStart && lastCr === at - 1) {
          if (lastCr === lineStart) return start + at + 1;
          lineStart = at + 1;
        } else {
          return -1;
        }
      }
    }
  }
  return -1;
}
