import { findField } from "./fields.ts";
import type { QueryError } from "./query.ts";

/** A stretch of the text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** One value as written. `parts` of a word are the literal stretches between its stars. */
export type ScannedValue =
  | (Span & { readonly kind: "word"; readonly parts: readonly string[] })
  | (Span & { readonly kind: "quoted"; readonly text: string })
  | (Span & { readonly kind: "pattern"; readonly source: string; readonly flags: string });

/** The part of a term before its colon. */
interface ScannedField extends Span {
  readonly name: string;
  /** The text between `[` and `]`, or between the parentheses of `json(…)`. */
  readonly key: (Span & { readonly text: string }) | undefined;
}

/** A test as written: `host:(a|b)`. Free text has neither field nor operator. */
export interface ScannedTerm extends Span {
  readonly type: "term";
  readonly field: ScannedField | undefined;
  readonly operator: (Span & { readonly text: string }) | undefined;
  readonly values: readonly ScannedValue[];
}

/** A piece of a query. Scanning never fails: what is wrong is noted in `problem` and decided by the parser. */
export type ScannedItem = (
  | (Span & { readonly type: "open" | "close" | "and" | "or" | "not" | "minus" })
  | (Span & { readonly type: "preset"; readonly name: string })
  | ScannedTerm
) & { readonly problem?: QueryError };

/** Characters that a backslash escapes in a word. */
export const WORD_SPECIAL = /[\\*"()[|/@:=!<>\s-]/;
const SPACE = /\s/;
const FIELD = /[A-Za-z][A-Za-z0-9_.]*/y;
const OPERATOR = /:(?:!=|>=|<=|=|>|<)?/y;
const KEYWORD = /(AND|OR|NOT)(?=[\s()]|$)/y;
const PRESET = /@[A-Za-z0-9_.-]*/y;
const FLAGS = /[A-Za-z]*/y;
const PATTERN_CHARACTERS = /[\\^$*+?()[\]{}|]/;

/** How far the end of a pattern is looked for; patterns may have half of that. */
const MAX_LOOK_AHEAD = 2000;
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t" };

function sticky(expression: RegExp, text: string, at: number): string | undefined {
  expression.lastIndex = at;
  return expression.exec(text)?.[0];
}

class Scanner {
  readonly #text: string;
  readonly #items: ScannedItem[] = [];
  #at = 0;
  #problem: QueryError | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  run(): readonly ScannedItem[] {
    for (;;) {
      while (this.#at < this.#text.length && SPACE.test(this.#char())) this.#at += 1;
      if (this.#at >= this.#text.length) return this.#items;
      this.#problem = undefined;
      const item = this.#item();
      this.#items.push(this.#problem === undefined ? item : { ...item, problem: this.#problem });
    }
  }

  #char(offset = 0): string {
    return this.#text.charAt(this.#at + offset);
  }

  #report(message: string, start: number, end: number): void {
    this.#problem ??= { message, start, end };
  }

  #item(): ScannedItem {
    const start = this.#at;
    const char = this.#char();
    if (char === "(" || char === ")") {
      this.#at += 1;
      return { type: char === "(" ? "open" : "close", start, end: this.#at };
    }
    if (char === "-" && this.#char(1) !== "" && !SPACE.test(this.#char(1)) && this.#char(1) !== ")") {
      this.#at += 1;
      return { type: "minus", start, end: this.#at };
    }
    if (char === "@") {
      const preset = sticky(PRESET, this.#text, start) ?? "@";
      this.#at += preset.length;
      return { type: "preset", name: preset.slice(1), start, end: this.#at };
    }
    const keyword = sticky(KEYWORD, this.#text, start);
    if (keyword !== undefined) {
      this.#at += keyword.length;
      return { type: keyword === "AND" ? "and" : keyword === "OR" ? "or" : "not", start, end: this.#at };
    }
    const field = this.#field();
    if (field === undefined) {
      const value = this.#value(true, false);
      return { type: "term", field: undefined, operator: undefined, values: [value], start, end: this.#at };
    }
    const operatorStart = this.#at;
    const text = sticky(OPERATOR, this.#text, operatorStart);
    if (text === undefined) return { type: "term", field, operator: undefined, values: [], start, end: this.#at };
    this.#at += text.length;
    const operator = { text, start: operatorStart, end: this.#at };
    const values = this.#values(findField(field.name)?.slashes ?? false, field, operator);
    return { type: "term", field, operator, values, start, end: this.#at };
  }

  /** Reads `name:`, `name[key]:` or `json(…):` when one stands here, up to but without the colon. */
  #field(): ScannedField | undefined {
    const start = this.#at;
    const name = sticky(FIELD, this.#text, start);
    if (name === undefined) return undefined;
    let end = start + name.length;
    let key: ScannedField["key"];
    const next = this.#text.charAt(end);
    if (next === "[" || (next === "(" && name.toLowerCase() === "json")) {
      const close = next === "[" ? this.#text.indexOf("]", end) : closingParenthesis(this.#text, end);
      if (close === -1) {
        if (findField(name) === undefined && next === "[") return undefined;
        this.#report(`\`${next}\` is not closed`, end, this.#text.length);
        key = { text: this.#text.slice(end + 1), start: end + 1, end: this.#text.length };
        this.#at = this.#text.length;
        return { name, key, start, end: this.#at };
      }
      key = { text: this.#text.slice(end + 1, close), start: end + 1, end: close };
      end = close + 1;
    }
    if (this.#text.charAt(end) !== ":") {
      if (key === undefined || (findField(name) === undefined && next === "[")) return undefined;
      this.#report(`\`${this.#text.slice(start, end)}\` needs a colon and a value, such as \`:*\``, start, end);
      this.#at = end;
      return { name, key, start, end };
    }
    if (key === undefined && this.#text.startsWith("://", end) && findField(name) === undefined) return undefined;
    this.#at = end;
    return { name, key, start, end };
  }

  #values(slashes: boolean, field: ScannedField, operator: Span): readonly ScannedValue[] {
    const char = this.#char();
    if (char === "" || SPACE.test(char) || char === ")") {
      const written = this.#text.slice(field.start, operator.end);
      this.#report(`\`${written}\` needs a value; \`:*\` asks whether there is one`, field.start, operator.end);
      return [];
    }
    return char === "(" ? this.#list(slashes) : [this.#value(slashes, false)];
  }

  #list(slashes: boolean): readonly ScannedValue[] {
    const open = this.#at;
    const values: ScannedValue[] = [];
    this.#at += 1;
    for (;;) {
      while (SPACE.test(this.#char())) this.#at += 1;
      if (this.#char() === "" || this.#char() === ")" || this.#char() === "|") {
        this.#report("a value is missing in the list", this.#at, Math.min(this.#at + 1, this.#text.length));
      } else {
        values.push(this.#value(slashes, true));
      }
      while (SPACE.test(this.#char())) this.#at += 1;
      const char = this.#char();
      if (char === "|" || char === ")") {
        this.#at += 1;
        if (char === ")") return values;
      } else if (char === "") {
        this.#report("the list is not closed: `)` is missing", open, this.#text.length);
        return values;
      } else {
        this.#report("values of a list are separated by `|`", this.#at, this.#at + 1);
      }
    }
  }

  /** `slashes`: a leading slash more likely begins a path than a pattern. */
  #value(slashes: boolean, inList: boolean): ScannedValue {
    if (this.#char() === '"') return this.#quoted();
    if (this.#char() === "/") {
      const pattern = this.#pattern(inList);
      if (pattern !== undefined && (!slashes || PATTERN_CHARACTERS.test(pattern.source))) {
        this.#at = pattern.end;
        return pattern;
      }
      if (!slashes && pattern === undefined) {
        this.#report(
          "the pattern is not closed: `/` is missing (quote the value if it is not a pattern)",
          this.#at,
          this.#text.length,
        );
      }
      const word = this.#word(inList);
      this.#refuseBareSlash(word);
      return word;
    }
    return this.#word(inList);
  }

  /** `/a/b\d/` would otherwise be searched for as text, which its backslashes tell was not meant. */
  #refuseBareSlash({ start, end }: Span): void {
    const written = this.#text.slice(start, end);
    const inside = /^\/(?:\\.|[^\\/])*/s.exec(written)?.[0].length ?? 0;
    const isEnclosed = inside < written.lastIndexOf("/") && /\/[ims]*$/.test(written);
    if (!isEnclosed || ![...written.matchAll(/\\(.)/gs)].some(([, char]) => !WORD_SPECIAL.test(char ?? ""))) return;
    this.#report(
      "a slash inside a pattern is written `\\/` (quote the value if it is not a pattern)",
      start + inside,
      start + inside + 1,
    );
  }

  #quoted(): ScannedValue {
    const start = this.#at;
    let text = "";
    this.#at += 1;
    while (this.#at < this.#text.length) {
      const char = this.#char();
      this.#at += 1;
      if (char === '"') return { kind: "quoted", text, start, end: this.#at };
      if (char !== "\\") {
        text += char;
        continue;
      }
      const escaped = this.#char();
      const unicode =
        escaped === "u" ? /^[0-9A-Fa-f]{4}/.exec(this.#text.slice(this.#at + 1, this.#at + 5))?.[0] : undefined;
      text += unicode === undefined ? (ESCAPES[escaped] ?? escaped) : String.fromCharCode(Number.parseInt(unicode, 16));
      this.#at += unicode === undefined ? escaped.length : 5;
    }
    this.#report('the quotation mark is not closed: `"` is missing', start, this.#text.length);
    return { kind: "quoted", text, start, end: this.#at };
  }

  /** Reads ahead without moving: a closed pattern that ends where a value may end, or undefined. */
  #pattern(inList: boolean): (ScannedValue & { readonly kind: "pattern" }) | undefined {
    const start = this.#at;
    let inClass = false;
    const furthest = Math.min(this.#text.length, start + MAX_LOOK_AHEAD);
    for (let at = start + 1; at < furthest; at += 1) {
      const char = this.#text.charAt(at);
      if (char === "\\") at += 1;
      else if (char === "[") inClass = true;
      else if (char === "]") inClass = false;
      else if (char === "/" && !inClass) {
        const source = this.#text.slice(start + 1, at);
        const flags = sticky(FLAGS, this.#text, at + 1) ?? "";
        const end = at + 1 + flags.length;
        const next = this.#text.charAt(end);
        const ends = next === "" || next === ")" || SPACE.test(next) || (inList && next === "|");
        return ends && source !== "" ? { kind: "pattern", source, flags, start, end } : undefined;
      }
    }
    return undefined;
  }

  #word(inList: boolean): ScannedValue {
    const start = this.#at;
    const parts: string[] = [];
    let part = "";
    let depth = 0;
    while (this.#at < this.#text.length) {
      const char = this.#char();
      if (SPACE.test(char) || (char === ")" && depth === 0) || (char === "|" && inList && depth === 0)) break;
      this.#at += 1;
      if (char === "(") depth += 1;
      if (char === ")") depth -= 1;
      if (char === "*") {
        parts.push(part);
        part = "";
      } else if (char === "\\" && WORD_SPECIAL.test(this.#char())) {
        part += this.#char();
        this.#at += 1;
      } else {
        part += char;
      }
    }
    parts.push(part);
    return {
      kind: "word",
      parts: parts.filter((text, index) => text !== "" || index === 0 || index === parts.length - 1),
      start,
      end: this.#at,
    };
  }
}

function closingParenthesis(text: string, open: number): number {
  let quote = "";
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (quote !== "") {
      if (char === "\\") at += 1;
      else if (char === quote) quote = "";
    } else if (char === '"' || char === "'") quote = char;
    else if (char === "(") depth += 1;
    else if (char === ")") {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return -1;
}

/** Cuts a text into the pieces of a query; works on incomplete and wrong input as well. */
export function scan(text: string): readonly ScannedItem[] {
  return new Scanner(text).run();
}

/** The kind of a token of a query, for syntax highlighting. */
export type TokenKind =
  | "field"
  | "key"
  | "operator"
  | "value"
  | "string"
  | "pattern"
  | "wildcard"
  | "keyword"
  | "negation"
  | "preset"
  | "group"
  | "error";

/** A coloured stretch; offsets in UTF-16 units, `end` exclusive. */
export interface Token extends Span {
  readonly kind: TokenKind;
}

/** Cuts any text, complete or not, into coloured stretches in order and without overlap. Gaps are white space or punctuation. */
export function tokens(text: string): readonly Token[] {
  return scan(text).flatMap(itemTokens);
}

function itemTokens(item: ScannedItem): readonly Token[] {
  const { start, end } = item;
  switch (item.type) {
    case "open":
    case "close":
      return [{ kind: "group", start, end }];
    case "and":
    case "or":
    case "not":
      return [{ kind: "keyword", start, end }];
    case "minus":
      return [{ kind: "negation", start, end }];
    case "preset":
      return [{ kind: "preset", start, end }];
    case "term":
      return termTokens(item);
  }
}

function termTokens(term: ScannedTerm): readonly Token[] {
  const found: Token[] = [];
  const { field, operator } = term;
  if (field !== undefined) {
    const known = findField(field.name) !== undefined || ["json", "since", "before"].includes(field.name.toLowerCase());
    found.push({ kind: known ? "field" : "error", start: field.start, end: field.start + field.name.length });
    if (field.key !== undefined && field.key.end > field.key.start) {
      found.push({ kind: "key", start: field.key.start, end: field.key.end });
    }
  }
  if (operator !== undefined && operator.end > operator.start) {
    found.push({ kind: "operator", start: operator.start, end: operator.end });
  }
  for (const value of term.values) found.push({ kind: valueKind(value), start: value.start, end: value.end });
  return found.filter((token) => token.end > token.start);
}

function valueKind(value: ScannedValue): TokenKind {
  if (value.kind === "quoted") return "string";
  if (value.kind === "pattern") return "pattern";
  return value.parts.length > 1 ? "wildcard" : "value";
}
