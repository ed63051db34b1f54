/**
 * Text that a person wrote as the octets of a field value, one character for each: Latin-1 where that has all of its
 * characters, UTF-8 otherwise.
 */
export function wireText(text: string): string {
  return BEYOND_OCTETS.test(text) ? utf8Octets(text) : text;
}

/** Text as the octets of its UTF-8, one character for each. */
export function utf8Octets(text: string): string {
  if (!BEYOND_ASCII.test(text)) return text;
  let octets = "";
  for (const octet of new TextEncoder().encode(text)) octets += String.fromCharCode(octet);
  return octets;
}

/** What the octets of a field value say in UTF-8; undefined where they say the same in Latin-1, or are no UTF-8. */
export function utf8Reading(octets: string): string | undefined {
  if (!BEYOND_ASCII.test(octets) || BEYOND_OCTETS.test(octets)) return undefined;
  const bytes = Uint8Array.from(octets, (octet) => octet.charCodeAt(0));
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/**
 * Whether what is asked of a field value depends on how its octets are read, so that both readings must be looked at. In a
 * pattern, escapes may stand for such characters.
 */
export function dependsOnReading(asked: string, isPattern = false): boolean {
  return BEYOND_ASCII.test(asked) || (isPattern && /\\[uxp]/iu.test(asked));
}

const BEYOND_ASCII = /[^\0-\x7f]/u;
const BEYOND_OCTETS = /[^\0-\xff]/u;
