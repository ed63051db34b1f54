/** Text as the octets of a field value, one character for each: Latin-1 if possible, otherwise UTF-8. */
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

/** The octets of a field value read as UTF-8; undefined if they are the same in Latin-1, or no UTF-8. */
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
 * Whether a comparison with a field value depends on its charset, so that both readings must be tried. In a pattern,
 * escapes may stand for non-ASCII characters.
 */
export function dependsOnReading(asked: string, isPattern = false): boolean {
  return BEYOND_ASCII.test(asked) || (isPattern && /\\[uxp]/iu.test(asked));
}

const BEYOND_ASCII = /[^\0-\x7f]/u;
const BEYOND_OCTETS = /[^\0-\xff]/u;
