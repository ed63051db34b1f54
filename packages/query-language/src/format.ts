import { findField, type NumberUnit } from "./fields.ts";
import { formatDuration, formatNumber } from "./numbers.ts";
import type { FieldTest, Moment, NumberRange, Query, TextValue } from "./query.ts";
import { WORD_SPECIAL } from "./scan.ts";

const PLAIN = /^[\p{L}\p{N}_.~%+,;=&?!#$^<>{}'`/:@-]+$/u;
const EACH_WORD_SPECIAL = new RegExp(WORD_SPECIAL, "g");
const PATTERN_CHARACTERS = /[\\^$*+?()[\]{}|]/;

/** Writes a query so that parsing the text (with the same presets) gives the same query again. */
export function formatQuery(query: Query): string {
  return write(query, "or");
}

/** `place`: the loosest operator that needs no parentheses here. */
function write(query: Query, place: "or" | "and" | "not"): string {
  switch (query.kind) {
    case "all":
      return "";
    case "or": {
      const text = query.terms.map((term) => write(term, "and")).join(" OR ");
      return place === "or" ? text : `(${text})`;
    }
    case "and": {
      const text = query.terms.map((term) => write(term, term.kind === "and" ? "not" : "and")).join(" ");
      return place === "not" ? `(${text})` : text;
    }
    case "not":
      return query.term.kind === "not" ? `-(${write(query.term, "or")})` : `-${write(query.term, "not")}`;
    case "preset":
      return `@${query.name}`;
    case "anywhere":
      return formatValue(query.value, "free");
    case "since":
    case "before":
      return `${query.kind}:${formatMoment(query.moment)}`;
    case "json":
      return `json(${query.side},${query.path})${formatTest(query.test, "count", false)}`;
    case "field": {
      const row = findField(query.field);
      const key = query.key === null ? "" : `[${query.key}]`;
      const unit = row?.value.type === "number" ? row.value.unit : "count";
      return `${query.field}${key}${formatTest(query.test, unit, row?.slashes ?? false)}`;
    }
  }
}

function formatMoment(moment: Moment): string {
  return moment.kind === "ago" ? formatDuration(moment.ms) : formatNumber(moment.epochMs, "time");
}

function formatTest(test: FieldTest, unit: NumberUnit, slashes: boolean): string {
  if (test.kind === "exists") return ":*";
  if (test.kind === "number") return formatNumberTest(test, unit);
  const operator = test.mode === "matches" ? ":" : test.mode === "equals" ? ":=" : ":!=";
  const place = test.mode !== "matches" ? "exact" : slashes ? "slashes" : "value";
  const values = test.values.map((value) => formatValue(value, place));
  const [first] = values;
  return `${operator}${values.length === 1 && first !== undefined ? first : `(${values.join("|")})`}`;
}

function formatNumberTest(test: FieldTest & { readonly kind: "number" }, unit: NumberUnit): string {
  const operator = test.mode === "differs" ? ":!=" : ":";
  const [first] = test.ranges;
  if (test.ranges.length === 1 && first !== undefined) {
    if (test.mode === "matches") return formatSingleRange(first, unit);
    return `${operator}${formatRange(first, unit)}`;
  }
  return `${operator}(${test.ranges.map((range) => formatRange(range, unit)).join("|")})`;
}

function formatSingleRange(range: NumberRange, unit: NumberUnit): string {
  if (range.max === null && range.min !== null) {
    return `:${range.minExcluded ? ">" : ">="}${formatNumber(range.min, unit)}`;
  }
  if (range.min === null && range.max !== null) {
    return `:${range.maxExcluded ? "<" : "<="}${formatNumber(range.max, unit)}`;
  }
  return `:${formatRange(range, unit)}`;
}

function formatRange({ min, max }: NumberRange, unit: NumberUnit): string {
  if (min !== null && min === max) return formatNumber(min, unit);
  if (unit === "status" && min !== null && min % 100 === 0 && max === min + 99) return `${min / 100}xx`;
  return `${min === null ? "" : formatNumber(min, unit)}..${max === null ? "" : formatNumber(max, unit)}`;
}

function formatValue(value: TextValue, place: "free" | "slashes" | "value" | "exact"): string {
  if (value.kind === "pattern") {
    const source = value.source.replace(/\\.|\[(?:\\.|[^\]\\])*\]|\//gs, (found) => (found === "/" ? "\\/" : found));
    const ambiguous = (place === "free" || place === "slashes") && !PATTERN_CHARACTERS.test(source);
    return `/${ambiguous ? `(?:${source})` : source}/${value.flags}`;
  }
  if (value.kind === "wildcard") return value.parts.map(escapeWord).join("*");
  return isPlain(value.text, place) ? value.text : quote(value.text);
}

function isPlain(text: string, place: "free" | "slashes" | "value" | "exact"): boolean {
  if (!PLAIN.test(text) || text.startsWith("/")) return false;
  if (place === "value") return !/^(?:=|!=|>|<)/.test(text) && !text.includes("..");
  if (place === "slashes" || place === "exact") return !/^(?:=|!=|>|<)/.test(text);
  return !/^[-@]|^(?:AND|OR|NOT)$|[:=<>!]/.test(text);
}

/** Parts of a wildcard value cannot be quoted, so what would end or change the word is escaped. */
function escapeWord(part: string): string {
  return part.replace(EACH_WORD_SPECIAL, (char) => `\\${char}`);
}

function quote(text: string): string {
  const escaped = text.replace(
    /["\\\n\r\t]/g,
    (char) => ({ '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" })[char] ?? char,
  );
  return `"${escaped}"`;
}
