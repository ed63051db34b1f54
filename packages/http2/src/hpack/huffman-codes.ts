/** The symbol behind the bytes 0 to 255: it ends a text, and may not be in one (RFC 7541, 5.2). */
export const END_OF_TEXT = 256;

/** The bits of the codes that have fewest and most. */
export const MIN_CODE_LENGTH = 5;
export const MAX_CODE_LENGTH = 30;

/**
 * How many bits the code of each symbol has (RFC 7541, appendix B). Shorter codes come first and those of one length
 * follow one another in the order of their symbols, so that the lengths say everything.
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

/** The codes themselves, each in the low bits of its number. */
export const CODES: Uint32Array = new Uint32Array(CODE_BITS.length);

/** The symbols in the order of their codes: the shortest first. */
export const SYMBOLS: Uint16Array = new Uint16Array(CODE_BITS.length);

/** The first code of each length. */
export const FIRST_CODE: Uint32Array = new Uint32Array(MAX_CODE_LENGTH + 1);

/** How many codes of each length there are. */
export const CODE_COUNT: Uint16Array = new Uint16Array(MAX_CODE_LENGTH + 1);

/** Where in `SYMBOLS` those of each length begin. */
export const FIRST_SYMBOL: Uint16Array = new Uint16Array(MAX_CODE_LENGTH + 1);

numberCodes();

function numberCodes(): void {
  for (const bits of CODE_BITS) CODE_COUNT[bits] = (CODE_COUNT[bits] ?? 0) + 1;
  const next = new Uint16Array(MAX_CODE_LENGTH + 1);
  let code = 0;
  let place = 0;
  for (let bits = 1; bits <= MAX_CODE_LENGTH; bits++) {
    const count = CODE_COUNT[bits] ?? 0;
    FIRST_CODE[bits] = code;
    FIRST_SYMBOL[bits] = place;
    next[bits] = place;
    place += count;
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
