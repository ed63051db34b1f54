import { findField } from "./fields.ts";
import { scan, type ScannedItem, type ScannedTerm, type ScannedValue, type Span } from "./scan.ts";

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
