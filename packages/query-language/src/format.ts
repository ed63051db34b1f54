import { directionsOf, separateTerms } from "./compile.ts";
import { fieldOf, findField, type NumberUnit } from "./fields.ts";
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
function write(query: Query, context: "or" | "and" | "not"): string {
  switch (query.kind) {
    case "all":
      return "";
    case "or": {
      const text = query.terms.map((term) => write(term, "and")).join(" OR ");
      return context === "or" ? text : `(${text})`;
    }
    case "and": {
      const text = query.terms.map((term) => write(term, term.kind === "and" ? "not" : "and")).join(" ");
      return context === "not" ? `(${text})` : text;
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
  const context = test.mode !== "matches" ? "exact" : slashes ? "slashes" : "value";
  const values = test.values.map((value) => formatValue(value, context));
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

function formatValue(value: TextValue, context: "free" | "slashes" | "value" | "exact"): string {
  if (value.kind === "pattern") {
    const source = value.source.replace(/\\.|\[(?:\\.|[^\]\\])*\]|\//gs, (found) => (found === "/" ? "\\/" : found));
    const ambiguous = (context === "free" || context === "slashes") && !PATTERN_CHARACTERS.test(source);
    return `/${ambiguous ? `(?:${source})` : source}/${value.flags}`;
  }
  if (value.kind === "wildcard") return value.parts.map(escapeWord).join("*");
  return isPlain(value.text, context) ? value.text : quote(value.text);
}

function isPlain(text: string, context: "free" | "slashes" | "value" | "exact"): boolean {
  if (!PLAIN.test(text) || text.startsWith("/")) return false;
  if (context === "value") return !/^(?:=|!=|>|<)/.test(text) && !text.includes("..");
  if (context === "slashes" || context === "exact") return !/^(?:=|!=|>|<)/.test(text);
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

/** Says in English what a query selects, for tooltips: `the method is POST and the status is at least 500`. */
export function describeQuery(query: Query): string {
  return query.kind === "all" ? "everything" : describe(query, true);
}

function describe(query: Query, outermost: boolean): string {
  switch (query.kind) {
    case "all":
      return "anything";
    case "and":
    case "or": {
      const parts =
        query.kind === "and" ? describeTogether(query.terms) : query.terms.map((term) => describe(term, false));
      const text = parts.join(query.kind === "and" ? " and " : " or ");
      return outermost ? text : `(${text})`;
    }
    case "not":
      return describeNot(query.term);
    case "preset":
      return `@${query.name} (${describe(query.query, true)})`;
    case "anywhere":
      return `the URL, a header or a body ${describeText(query.value, "contains")}`;
    case "since":
      return `it started ${describeMoment(query.moment, "within the last", "at or after")}`;
    case "before":
      return `it started ${describeMoment(query.moment, "longer ago than", "before")}`;
    case "json":
      return `the value at ${query.path} in the ${query.side === "req" ? "request" : "response"} body ${describeTest(query.test, "equals", "count")}`;
    case "field": {
      const { phrase, value, name } = fieldOf(query.field);
      if (name === "modified" || name === "passthrough") return describeFlag(phrase, query.test);
      const subject = query.key === null ? phrase : `${phrase} named “${query.key}”`;
      return `${subject} ${describeTest(query.test, value.type === "text" ? value.literal : "equals", value.type === "number" ? value.unit : "count")}`;
    }
  }
}

const DIRECTION_PHRASES = { in: "from the server", out: "from the client" } as const;

/** Directions beside texts of messages are said with those, since they are about the same message. */
function describeTogether(terms: readonly Query[]): readonly string[] {
  const [direction, ...others] = directionsOf(terms);
  if (direction === undefined || others.length > 0) return terms.map((term) => describe(term, false));
  return separateTerms(terms).map((term) => {
    const text = describe(term, false);
    if (term.kind !== "field" || term.field !== "ws.text") return text;
    const { phrase } = fieldOf(term.field);
    return `${phrase} ${DIRECTION_PHRASES[direction]}${text.slice(phrase.length)}`;
  });
}

function describeNot(term: Query): string {
  return `not ${term.kind === "and" || term.kind === "or" ? describe(term, false) : `(${describe(term, true)})`}`;
}

function describeFlag(phrase: string, test: FieldTest): string {
  if (test.kind !== "text") return `it is known whether it was ${phrase}`;
  const wanted = test.values.some((value) => value.kind === "literal" && value.text === "true");
  return `it was ${wanted === (test.mode !== "differs") ? "" : "not "}${phrase}`;
}

function describeMoment(moment: Moment, ago: string, at: string): string {
  return moment.kind === "ago"
    ? `${ago} ${formatDuration(moment.ms)}`
    : `${at} ${formatNumber(moment.epochMs, "time")}`;
}

function describeTest(test: FieldTest, literal: "contains" | "equals", unit: NumberUnit): string {
  if (test.kind === "exists") return "is present";
  if (test.kind === "number") {
    const ranges = test.ranges.map((range) => describeRange(range, unit)).join(" or ");
    return test.mode === "differs" ? `is known and not ${ranges}` : `is ${ranges}`;
  }
  if (test.mode === "matches") return test.values.map((value) => describeText(value, literal)).join(" or ");
  const values = test.values.map((value) => `“${value.kind === "literal" ? value.text : ""}”`).join(" or ");
  return test.mode === "equals" ? `is exactly ${values}` : `is present and not ${values}`;
}

function describeText(value: TextValue, literal: "contains" | "equals"): string {
  if (value.kind === "pattern") return `matches /${value.source}/${value.flags}`;
  if (value.kind === "wildcard") return `looks like “${value.parts.join("*")}”`;
  return `${literal === "equals" ? "is" : "contains"} “${value.text}”`;
}

function describeRange({ min, max, minExcluded, maxExcluded }: NumberRange, unit: NumberUnit): string {
  const low = min === null ? "" : formatNumber(min, unit);
  const high = max === null ? "" : formatNumber(max, unit);
  if (min !== null && max !== null) return min === max ? low : `from ${low} to ${high}`;
  if (min !== null) return `${minExcluded ? "more than" : "at least"} ${low}`;
  return `${maxExcluded ? "less than" : "at most"} ${high}`;
}
