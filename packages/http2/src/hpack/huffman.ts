import {
  CODE_BITS,
  CODE_COUNT,
  CODES,
  END_OF_TEXT,
  FIRST_CODE,
  FIRST_SYMBOL,
  MAX_CODE_LENGTH,
  MIN_CODE_LENGTH,
  SYMBOLS,
} from "./huffman-codes.ts";
import { HpackError } from "./hpack-error.ts";

/** So many bits are looked up in one step: most pairs of letters and digits, or what is common between them. */
const STEP_BITS = 12;
const STEP_MASK = (1 << STEP_BITS) - 1;
/**
 * For each step the one or two whole codes at its begin: the first byte, the second one or 0, how many there are, and
 * their bits, from the low bits on. 0 for the begin of a longer code.
 */
const steps = new Uint32Array(1 << STEP_BITS);
const SECOND_SHIFT = 8;
const COUNT_SHIFT = 16;
const BITS_SHIFT = 20;

/** So many bits and a byte fit into a number of 32. */
const MAX_BEFORE_BYTE = 24;

/** Codes up to this fit into a number of 32 bits behind less than two bytes that wait. */
const MAX_BEHIND_TWO_BYTES = 17;

/** Texts up to this are put together in memory that is kept. */
const SCRATCH_BYTES = 8192;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

buildSteps();

function buildSteps(): void {
  for (let place = 0; place < SYMBOLS.length; place++) {
    const byte = SYMBOLS[place] ?? 0;
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

/** The bytes that a latin1 text takes in Huffman's code (RFC 7541, 5.2). */
export function huffmanSizeBytes(text: string): number {
  let bits = 0;
  for (let at = 0; at < text.length; at++) bits += CODE_BITS[text.charCodeAt(at) & 0xff] ?? 0;
  return (bits + 7) >>> 3;
}

/** Writes a latin1 text in Huffman's code from `at` on, where there must be room for it. Returns where it ends. */
export function writeHuffman(text: string, into: Buffer, at: number): number {
  let end = at;
  let held = 0;
  let heldBits = 0;
  for (let index = 0; index < text.length; index++) {
    const byte = text.charCodeAt(index) & 0xff;
    const code = CODES[byte] ?? 0;
    let bits = CODE_BITS[byte] ?? 0;
    do {
      const taken = bits > MAX_BEHIND_TWO_BYTES ? bits - MAX_BEHIND_TWO_BYTES : bits;
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
 * Reads the text in Huffman's code between two offsets; a character of it is a byte.
 * @throws HpackError when it contains the end of text, ends within a code, or is not filled up with less than eight
 * ones (RFC 7541, 5.2)
 */
export function readHuffman(bytes: Buffer, start: number, end: number): string {
  // The shortest code has five bits, and a step may write a byte too many.
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

/** What fills up a text to a whole byte (RFC 7541, 5.2). */
function isPadding(held: number, heldBits: number): boolean {
  const ones = (1 << heldBits) - 1;
  return heldBits < 8 && (held & ones) === ones;
}

/** The symbol whose code the held bits begin with, and the byte behind them if there is one. */
function oneSymbol(held: number, heldBits: number, next: number | undefined): number {
  const most = Math.min(MAX_CODE_LENGTH, next === undefined ? heldBits : heldBits + 8);
  for (let bits = MIN_CODE_LENGTH; bits <= most; bits++) {
    const missing = bits - heldBits;
    const ahead = missing > 0 ? (held << missing) | ((next ?? 0) >>> (8 - missing)) : held >>> -missing;
    const place = (ahead & (2 ** bits - 1)) - (FIRST_CODE[bits] ?? 0);
    if (place >= (CODE_COUNT[bits] ?? 0)) continue;
    const symbol = SYMBOLS[(FIRST_SYMBOL[bits] ?? 0) + place] ?? END_OF_TEXT;
    if (symbol === END_OF_TEXT) break;
    return symbol;
  }
  throw new HpackError("A text in Huffman's code contains its end, or does not end with a code and ones");
}
