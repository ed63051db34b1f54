/** A name and its value; names are in lower case, order and duplicates are kept. */
export type Parameter = readonly [name: string, value: string];

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Whether the text is a token (RFC 9110 section 5.6.2). */
export const isToken = (text: string): boolean => token.test(text);

/** Splits at `separator` outside quoted strings; pieces are trimmed, empty ones kept. */
export function splitOutsideQuotes(text: string, separator: string): string[] {
  const pieces: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let index = 0; index < text.length; index += 1) {
    const character = text[index];
    if (isQuoted && character === "\\") index += 1;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === separator && !isQuoted) {
      pieces.push(text.slice(start, index).trim());
      start = index + 1;
    }
  }
  pieces.push(text.slice(start).trim());
  return pieces;
}

/**
 * Parses `name=value` with an optional quoted value. Undefined without a token as name. An unclosed quoted string
 * extends to the end, and an unquoted value is taken as it is.
 */
export function parseParameter(text: string): Parameter | undefined {
  const equals = text.indexOf("=");
  if (equals === -1) return undefined;
  const name = text.slice(0, equals).trim().toLowerCase();
  return isToken(name) ? [name, unquoted(text.slice(equals + 1).trim())] : undefined;
}

/** The content of a quoted string (RFC 9110 section 5.6.4); other texts are returned unchanged. */
function unquoted(text: string): string {
  if (!text.startsWith('"')) return text;
  let value = "";
  for (let index = 1; index < text.length; index += 1) {
    const character = text[index] ?? "";
    if (character === '"') break;
    if (character === "\\" && index + 1 < text.length) index += 1;
    value += text[index] ?? "";
  }
  return value;
}

/** The value of the first parameter of that (lower-case) name. */
export const parameterValue = (parameters: readonly Parameter[], name: string): string | undefined =>
  parameters.find(([each]) => each === name)?.[1];
