const NON_ASCII = /[^\0-\x7f]/;
const ASCII_UPPER = /[A-Z]+/g;

/**
 * Lower-cases A to Z only. Facts that stores keep in columns are compared this way, because it is what a database's
 * `lower()` does without locale support, so that index and predicate agree on every input.
 */
export function foldAscii(text: string): string {
  if (!NON_ASCII.test(text)) return text.toLowerCase();
  return text.replace(ASCII_UPPER, (letters) => letters.toLowerCase());
}

/** Lower-cases all letters; used for header values, bodies and notes. */
export function foldUnicode(text: string): string {
  return text.toLowerCase();
}
