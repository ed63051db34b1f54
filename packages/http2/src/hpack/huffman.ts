/** A field block that cannot be decoded: COMPRESSION_ERROR of its connection (RFC 9113, 4.3). */
export class HpackError extends Error {
  override readonly name = "HpackError";
}

/** EOS, the symbol after the bytes 0 to 255; its code must not occur in a string (RFC 7541, 5.2). */
export const END_OF_TEXT = 256;

/** Minimum and maximum code length in bits. */
const MIN_CODE_LENGTH = 5;
const MAX_CODE_LENGTH = 30;

/**
 * Code length of each symbol in bits (RFC 7541, appendix B). The code is canonical: codes are ordered by length and then
 * by symbol, so that the lengths determine it.
 */
export const CODE_BITS: Uint8Array = Uint8Array.from([
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
  28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6,
  5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23,
  22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22,
  23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26,
  20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27,
  27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27,
  27, 27, 27, 26, 30,
]);

/** Codes by symbol, in the low bits. */
export const CODES: Uint32Array = new Uint32Array(CODE_BITS.length);

/** Symbols in the order of their codes, shortest first. */
const SYMBOLS: Uint16Array = new Uint16Array(CODE_BITS.length);

/** First code of each length. */
const FIRST_CODE: Uint32Array = new Uint32Array(MAX_CODE_LENGTH + 1);

/** Number of codes of each length. */
const CODE_COUNT: Uint16Array = new Uint16Array(MAX_CODE_LENGTH + 1);

/** Index in `SYMBOLS` of the first symbol of each length. */
const FIRST_SYMBOL: Uint16Array = new Uint16Array(MAX_CODE_LENGTH + 1);

numberCodes();

function numberCodes(): void {
  for (const bits of CODE_BITS) CODE_COUNT[bits] = (CODE_COUNT[bits] ?? 0) + 1;
  const next = new Uint16Array(MAX_CODE_LENGTH + 1);
  let code = 0;
  let index = 0;
  for (let bits = 1; bits <= MAX_CODE_LENGTH; bits++) {
    const count = CODE_COUNT[bits] ?? 0;
    FIRST_CODE[bits] = code;
    FIRST_SYMBOL[bits] = index;
    next[bits] = index;
    index += count;
    code = (code + count) * 2;
  }
  for (let symbol = 0; symbol < CODE_BITS.length; symbol++) {
    const bits = CODE_BITS[symbol] ?? 0;
    const at = next[bits] ?? 0;
    next[bits] = at + 1;
    SYMBOLS[at] = symbol;
    CODES[symbol] = (FIRST_CODE[bits] ?? 0) + at - (FIRST_SYMBOL[bits] ?? 0);
  }
}

/** Bits per table lookup: enough for most pairs of letters and digits. */
const STEP_BITS = 12;
const STEP_MASK = (1 << STEP_BITS) - 1;

/**
 * For each lookup value the one or two complete codes at its start, from the low bits: first byte, second byte or 0,
 * number of bytes, number of bits. 0 if a longer code starts there.
 */
const steps = new Uint32Array(1 << STEP_BITS);
const SECOND_SHIFT = 8;
const COUNT_SHIFT = 16;
const BITS_SHIFT = 20;

/** With one more byte, this many bits fit into 32. */
const MAX_BEFORE_BYTE = 24;

/** Codes up to this length fit into 32 bits after fewer than 16 pending bits. */
const MAX_BITS_AFTER_TWO_BYTES = 17;

/** Strings up to this size are decoded in a shared buffer. */
const SCRATCH_BYTES = 8192;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

buildSteps();

function buildSteps(): void {
  for (let index = 0; index < SYMBOLS.length; index++) {
    const byte = SYMBOLS[index] ?? 0;
    const bits = CODE_BITS[byte] ?? 0;
    if (bits > STEP_BITS) break;
    const restBits = STEP_BITS - bits;
    const begin = (CODES[byte] ?? 0) << restBits;
    steps.fill(byte | (1 << COUNT_SHIFT) | (bits << BITS_SHIFT), begin, begin + (1 << restBits));
    for (let after = 0; after < SYMBOLS.length; after++) {
      const second = SYMBOLS[after] ?? 0;
      const spareBits = restBits - (CODE_BITS[second] ?? 0);
      if (spareBits < 0) break;
      const pair = begin | ((CODES[second] ?? 0) << spareBits);
      const both = byte | (second << SECOND_SHIFT) | (2 << COUNT_SHIFT) | ((STEP_BITS - spareBits) << BITS_SHIFT);
      steps.fill(both, pair, pair + (1 << spareBits));
    }
  }
}

/** Size of a latin1 string in Huffman code (RFC 7541, 5.2). */
export function huffmanSizeBytes(text: string): number {
  let bits = 0;
  for (let at = 0; at < text.length; at++) bits += CODE_BITS[text.charCodeAt(at) & 0xff] ?? 0;
  return (bits + 7) >>> 3;
}

/** Writes a latin1 string in Huffman code at `at`; `into` must have room. Returns the end offset. */
export function writeHuffman(text: string, into: Buffer, at: number): number {
  let end = at;
  let held = 0;
  let heldBits = 0;
  for (let index = 0; index < text.length; index++) {
    const byte = text.charCodeAt(index) & 0xff;
    const code = CODES[byte] ?? 0;
    let bits = CODE_BITS[byte] ?? 0;
    do {
      const taken = bits > MAX_BITS_AFTER_TWO_BYTES ? bits - MAX_BITS_AFTER_TWO_BYTES : bits;
      bits -= taken;
      held = (held << taken) | ((code >>> bits) & ((1 << taken) - 1));
      heldBits += taken;
      if (heldBits >= 16) {
        heldBits -= 16;
        into[end++] = held >>> (heldBits + 8);
        into[end++] = held >>> heldBits;
      }
    } while (bits > 0);
  }
  if (heldBits >= 8) {
    heldBits -= 8;
    into[end++] = held >>> heldBits;
  }
  if (heldBits > 0) {
    const padding = 8 - heldBits;
    into[end++] = (held << padding) | ((1 << padding) - 1);
  }
  return end;
}

/**
 * Decodes the Huffman-coded string between two offsets, one character per byte.
 * @throws HpackError if it contains EOS, ends inside a code, or is not padded with fewer than eight ones (RFC 7541, 5.2)
 */
export function readHuffman(bytes: Buffer, start: number, end: number): string {
  // The shortest code has five bits, and a lookup may write one byte too many.
  const maxBytes = Math.ceil(((end - start) * 8) / 5) + 1;
  const into = maxBytes <= SCRATCH_BYTES ? scratch : Buffer.allocUnsafeSlow(maxBytes);
  let length = 0;
  let at = start;
  let held = 0;
  let heldBits = 0;
  for (;;) {
    while (heldBits <= MAX_BEFORE_BYTE && at < end) {
      held = (held << 8) | (bytes[at++] ?? 0);
      heldBits += 8;
    }
    while (heldBits >= STEP_BITS) {
      const step = steps[(held >>> (heldBits - STEP_BITS)) & STEP_MASK] ?? 0;
      if (step === 0) break;
      into[length] = step;
      into[length + 1] = step >>> SECOND_SHIFT;
      length += (step >>> COUNT_SHIFT) & 3;
      heldBits -= step >>> BITS_SHIFT;
    }
    if (heldBits <= MAX_BEFORE_BYTE) {
      if (at < end) continue;
      if (isPadding(held, heldBits)) break;
    }
    const next = at < end ? (bytes[at] ?? 0) : undefined;
    const symbol = oneSymbol(held, heldBits, next);
    into[length++] = symbol;
    heldBits -= CODE_BITS[symbol] ?? 0;
    if (heldBits < 0) {
      held = next ?? 0;
      heldBits += 8;
      at++;
    }
  }
  return into.toString("latin1", 0, length);
}

/** Whether the remaining bits are padding to a whole byte (RFC 7541, 5.2). */
function isPadding(held: number, heldBits: number): boolean {
  const ones = (1 << heldBits) - 1;
  return heldBits < 8 && (held & ones) === ones;
}

/** The symbol whose code starts the held bits, continued in the next byte if there is one. */
function oneSymbol(held: number, heldBits: number, next: number | undefined): number {
  const maxBits = Math.min(MAX_CODE_LENGTH, next === undefined ? heldBits : heldBits + 8);
  for (let bits = MIN_CODE_LENGTH; bits <= maxBits; bits++) {
    const missing = bits - heldBits;
    const ahead = missing > 0 ? (held << missing) | ((next ?? 0) >>> (8 - missing)) : held >>> -missing;
    const index = (ahead & (2 ** bits - 1)) - (FIRST_CODE[bits] ?? 0);
    if (index >= (CODE_COUNT[bits] ?? 0)) continue;
    const symbol = SYMBOLS[(FIRST_SYMBOL[bits] ?? 0) + index] ?? END_OF_TEXT;
    if (symbol === END_OF_TEXT) break;
    return symbol;
  }
  throw new HpackError("A Huffman-coded string contains EOS or ends with an incomplete code or invalid padding");
}
