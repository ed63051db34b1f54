const BEYOND_LATIN1 = /[^\0-\xff]/;

/**
 * A copy of a string in memory of its own. V8 keeps the parent of a sliced or concatenated string alive, so
 * remembering a name or value of a head would retain the whole head.
 */
export function ownText(text: string): string {
  const encoding = BEYOND_LATIN1.test(text) ? "utf16le" : "latin1";
  return Buffer.from(text, encoding).toString(encoding);
}
