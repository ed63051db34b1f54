/** Letters of scripts that run from right to left, and the characters that change the direction. */
const DIRECTED =
  /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * A name as a part of a sentence: whatever direction it runs in or asks for, the words around it stay where they are.
 * A name that says nothing about directions is given back as it is.
 */
export function isolatedName(name: string): string {
  // An end of isolation inside the name would let the rest of it out.
  return DIRECTED.test(name) ? `\u2068${name.replaceAll(/[\u2066-\u2069]/gu, "")}\u2069` : name;
}
