/** A dictionary member of Structured Fields; its parameters are parsed but omitted. */
export type StructuredValue =
  | { readonly type: "integer" | "decimal" | "date"; readonly value: number }
  | { readonly type: "string" | "token" | "byte-sequence" | "display-string"; readonly value: string }
  | { readonly type: "boolean"; readonly value: boolean }
  | { readonly type: "inner-list"; readonly value: readonly StructuredValue[] };

const TRUE: StructuredValue = { type: "boolean", value: true };
const SPACES = / */y;
const WHITE_SPACE = /[ \t]*/y;
const KEY = /[a-z*][a-z0-9_.*-]*/y;
const DECIMAL = /-?[0-9]{1,12}\.[0-9]{1,3}(?![0-9])/y;
const INTEGER = /-?[0-9]{1,15}(?![0-9.])/y;
const STRING = /"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"/y;
const TOKEN = /[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*/y;
const BYTE_SEQUENCE = /:[A-Za-z0-9+/=]*:/y;
const BOOLEAN = /\?[01]/y;
const DATE = /@-?[0-9]{1,15}(?![0-9.])/y;
const DISPLAY_STRING = /%"(?:[\x20\x21\x23\x24\x26-\x7e]|%[0-9a-f]{2})*"/y;

/**
 * Parses a dictionary of Structured Fields (RFC 9651 section 4.2.2) from the lines of a field; undefined if any part
 * is malformed. The last of several members with the same key counts.
 */
export function parseDictionary(lines: readonly string[]): ReadonlyMap<string, StructuredValue> | undefined {
  const cursor = new Cursor(lines.join(", "));
  const members = new Map<string, StructuredValue>();
  cursor.take(SPACES);
  while (!cursor.isAtEnd) {
    const key = cursor.take(KEY);
    if (key === undefined) return undefined;
    const value = cursor.skip("=") ? readMember(cursor) : TRUE;
    if (value === undefined || !skipParameters(cursor)) return undefined;
    members.delete(key);
    members.set(key, value);
    cursor.take(WHITE_SPACE);
    if (cursor.isAtEnd) break;
    if (!cursor.skip(",")) return undefined;
    cursor.take(WHITE_SPACE);
    if (cursor.isAtEnd) return undefined;
  }
  return members;
}

class Cursor {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  /** The text that a sticky pattern matches at the current position, or undefined. */
  take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  skip(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }
}

function readMember(cursor: Cursor): StructuredValue | undefined {
  if (!cursor.skip("(")) return readBareItem(cursor);
  const value: StructuredValue[] = [];
  for (;;) {
    const spaces = cursor.take(SPACES);
    if (cursor.skip(")")) return { type: "inner-list", value };
    if (value.length > 0 && spaces === "") return undefined;
    const item = readBareItem(cursor);
    if (item === undefined || !skipParameters(cursor)) return undefined;
    value.push(item);
  }
}

function skipParameters(cursor: Cursor): boolean {
  while (cursor.skip(";")) {
    cursor.take(SPACES);
    if (cursor.take(KEY) === undefined) return false;
    if (cursor.skip("=") && readBareItem(cursor) === undefined) return false;
  }
  return true;
}

function readBareItem(cursor: Cursor): StructuredValue | undefined {
  let text: string | undefined;
  if ((text = cursor.take(INTEGER)) !== undefined) return { type: "integer", value: Number(text) };
  if ((text = cursor.take(TOKEN)) !== undefined) return { type: "token", value: text };
  if ((text = cursor.take(STRING)) !== undefined) {
    return { type: "string", value: text.slice(1, -1).replace(/\\(.)/g, "$1") };
  }
  if ((text = cursor.take(BOOLEAN)) !== undefined) return { type: "boolean", value: text === "?1" };
  if ((text = cursor.take(DECIMAL)) !== undefined) return { type: "decimal", value: Number(text) };
  if ((text = cursor.take(BYTE_SEQUENCE)) !== undefined) return { type: "byte-sequence", value: text.slice(1, -1) };
  if ((text = cursor.take(DATE)) !== undefined) return { type: "date", value: Number(text.slice(1)) };
  if ((text = cursor.take(DISPLAY_STRING)) === undefined) return undefined;
  try {
    return { type: "display-string", value: decodeURIComponent(text.slice(2, -1)) };
  } catch {
    return undefined;
  }
}
