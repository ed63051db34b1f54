/** Escapes control characters, which could manipulate a terminal; line breaks are kept. */
export function visibleText(text: string): string {
  return text.replace(
    /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu,
    (character) => {
      return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
    },
  );
}
