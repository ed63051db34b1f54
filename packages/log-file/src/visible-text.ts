/**
 * Escapes everything that could forge lines or move, colour, reorder or hide terminal output: control characters, all
 * line ends, directional marks, zero-width characters and lone surrogates become `\n`, `\u001b`, `\u{e0041}`.
 */
export function visibleText(text: string): string {
  return HARMLESS.test(text) ? text : text.replace(INVISIBLE, escaped);
}

/** Fast path: printable ASCII. */
const HARMLESS = /^[\x20-\x7e]*$/;
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f" };

function escaped(character: string): string {
  const short = SHORT[character];
  if (short !== undefined) return short;
  const code = character.codePointAt(0) ?? 0;
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Like {@link visibleText} for JSON; it parses to the same value. */
export function visibleJson(json: string): string {
  return HARMLESS.test(json) ? json : json.replace(INVISIBLE, escapedUnits);
}

function escapedUnits(character: string): string {
  let text = "";
  for (let at = 0; at < character.length; at += 1) {
    text += `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`;
  }
  return text;
}
