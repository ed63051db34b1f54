const BEYOND_LATIN1 = /[^\0-\xff]/;

/**
 * The same text in memory of its own. A text that was cut out of another one, or joined with such a one, keeps all of that in
 * memory: whoever remembers a name or a value of a head, or a key made of one, would remember the head.
 */
export function ownText(text: string): string {
  const encoding = BEYOND_LATIN1.test(text) ? "utf16le" : "latin1";
  return Buffer.from(text, encoding).toString(encoding);
}
