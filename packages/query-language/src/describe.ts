import { fieldOf, type NumberUnit } from "./fields.ts";
import { directionsOf, separateTerms } from "./message-terms.ts";
import { formatDuration, formatNumber } from "./numbers.ts";
import type { FieldTest, Moment, NumberRange, Query, TextValue } from "./query.ts";

/** Says in English what a query selects, for tooltips: `the method is POST and the status is at least 500`. */
export function describeQuery(query: Query): string {
  return query.kind === "all" ? "everything" : say(query, true);
}

function say(query: Query, outermost: boolean): string {
  switch (query.kind) {
    case "all":
      return "anything";
    case "and":
    case "or": {
      const said = query.kind === "and" ? sayTogether(query.terms) : query.terms.map((term) => say(term, false));
      const text = said.join(query.kind === "and" ? " and " : " or ");
      return outermost ? text : `(${text})`;
    }
    case "not":
      return sayNot(query.term);
    case "preset":
      return `@${query.name} (${say(query.query, true)})`;
    case "anywhere":
      return `the URL, a header or a body ${sayText(query.value, "contains")}`;
    case "since":
      return `it started ${sayMoment(query.moment, "within the last", "at or after")}`;
    case "before":
      return `it started ${sayMoment(query.moment, "longer ago than", "before")}`;
    case "json":
      return `the value at ${query.path} in the ${query.side === "req" ? "request" : "response"} body ${sayTest(query.test, "equals", "count")}`;
    case "field": {
      const { phrase, value, name } = fieldOf(query.field);
      if (name === "modified" || name === "passthrough") return sayFlag(phrase, query.test);
      const subject = query.key === null ? phrase : `${phrase} named “${query.key}”`;
      return `${subject} ${sayTest(query.test, value.type === "text" ? value.literal : "equals", value.type === "number" ? value.unit : "count")}`;
    }
  }
}

const WAYS = { in: "from the server", out: "from the client" } as const;

/** Directions beside texts of messages are said with those, since they are about the same message. */
function sayTogether(terms: readonly Query[]): readonly string[] {
  const [direction, ...others] = directionsOf(terms);
  if (direction === undefined || others.length > 0) return terms.map((term) => say(term, false));
  return separateTerms(terms).map((term) => {
    const text = say(term, false);
    if (term.kind !== "field" || term.field !== "ws.text") return text;
    const { phrase } = fieldOf(term.field);
    return `${phrase} ${WAYS[direction]}${text.slice(phrase.length)}`;
  });
}

function sayNot(term: Query): string {
  return `not ${term.kind === "and" || term.kind === "or" ? say(term, false) : `(${say(term, true)})`}`;
}

function sayFlag(phrase: string, test: FieldTest): string {
  if (test.kind !== "text") return `it is known whether it was ${phrase}`;
  const wanted = test.values.some((value) => value.kind === "literal" && value.text === "true");
  return `it was ${wanted === (test.mode !== "differs") ? "" : "not "}${phrase}`;
}

function sayMoment(moment: Moment, ago: string, at: string): string {
  return moment.kind === "ago"
    ? `${ago} ${formatDuration(moment.ms)}`
    : `${at} ${formatNumber(moment.epochMs, "time")}`;
}

function sayTest(test: FieldTest, literal: "contains" | "equals", unit: NumberUnit): string {
  if (test.kind === "exists") return "is present";
  if (test.kind === "number") {
    const ranges = test.ranges.map((range) => sayRange(range, unit)).join(" or ");
    return test.mode === "differs" ? `is known and not ${ranges}` : `is ${ranges}`;
  }
  if (test.mode === "matches") return test.values.map((value) => sayText(value, literal)).join(" or ");
  const values = test.values.map((value) => `“${value.kind === "literal" ? value.text : ""}”`).join(" or ");
  return test.mode === "equals" ? `is exactly ${values}` : `is present and not ${values}`;
}

function sayText(value: TextValue, literal: "contains" | "equals"): string {
  if (value.kind === "pattern") return `matches /${value.source}/${value.flags}`;
  if (value.kind === "wildcard") return `looks like “${value.parts.join("*")}”`;
  return `${literal === "equals" ? "is" : "contains"} “${value.text}”`;
}

function sayRange({ min, max, minExcluded, maxExcluded }: NumberRange, unit: NumberUnit): string {
  const low = min === null ? "" : formatNumber(min, unit);
  const high = max === null ? "" : formatNumber(max, unit);
  if (min !== null && max !== null) return min === max ? low : `from ${low} to ${high}`;
  if (min !== null) return `${minExcluded ? "more than" : "at least"} ${low}`;
  return `${maxExcluded ? "less than" : "at most"} ${high}`;
}
