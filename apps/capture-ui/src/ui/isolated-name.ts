/** Right-to-left letters, and characters that change the direction. */
const DIRECTED =
  /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/** Isolates a name's text direction inside a sentence. Names without directional characters are returned unchanged. */
export function isolatedName(name: string): string {
  // A pop-isolate character inside the name would end the isolation early.
  return DIRECTED.test(name) ? `\u2068${name.replaceAll(/[\u2066-\u2069]/gu, "")}\u2069` : name;
}
