import { asksReadableForm, fieldOf, type PlanColumn } from "./fields.ts";
import { foldAscii } from "./record.ts";
import { aliasOf, type CompileOptions, momentMs, separateTerms } from "./compile.ts";
import type { FieldTest, NumberRange, Query, TextValue } from "./query.ts";

/**
 * A condition on columns. Text is compared with the column's value after A to Z were made lower-case, and `value` is
 * in lower case already; `isPassthrough` compares as the texts `true` and `false`. Logic is two-valued: a test of an
 * absent value is false, and `not` of it is true (in SQL, `NOT COALESCE(…, FALSE)`).
 */
export type Plan =
  | { readonly kind: "any" }
  | { readonly kind: "and"; readonly terms: readonly Plan[] }
  | { readonly kind: "or"; readonly terms: readonly Plan[] }
  | { readonly kind: "not"; readonly term: Plan }
  | { readonly kind: "present"; readonly column: PlanColumn }
  | {
      readonly kind: "text";
      readonly column: PlanColumn;
      readonly op: "equals" | "contains" | "startsWith" | "endsWith";
      readonly value: string;
    }
  | {
      readonly kind: "number";
      readonly column: PlanColumn;
      readonly op: "=" | "<" | "<=" | ">" | ">=";
      readonly value: number;
    };

/**
 * What columns alone can say about a query. Every record that satisfies the query satisfies the plan; when `exact`
 * is true the reverse holds too and the predicate need not be applied to what the plan finds.
 */
export interface Approximation {
  readonly plan: Plan;
  readonly exact: boolean;
}

const ANY: Plan = { kind: "any" };
const UNKNOWN: Approximation = { plan: ANY, exact: false };
const NOTHING: Plan = { kind: "not", term: ANY };

/** The conditions on columns that a query implies, for a store to choose rows by. */
export function indexable(query: Query, options: CompileOptions): Approximation {
  switch (query.kind) {
    case "all":
      return { plan: ANY, exact: true };
    case "and":
      return both(separateTerms(query.terms).map((term) => indexable(term, options)));
    case "or":
      return either(query.terms.map((term) => indexable(term, options)));
    case "not":
      return negated(query.term, options);
    case "preset":
      return indexable(query.query, options);
    case "since":
      return exactly({ kind: "number", column: "timestampMs", op: ">=", value: momentMs(query.moment, options.nowMs) });
    case "before":
      return exactly({ kind: "number", column: "timestampMs", op: "<", value: momentMs(query.moment, options.nowMs) });
    case "field":
      return fieldPlan(query.field, query.test);
    case "json":
    case "anywhere":
      return UNKNOWN;
  }
}

/** The opposite of an inexact plan says nothing, so negation is carried inwards first. */
function negated(query: Query, options: CompileOptions): Approximation {
  if (query.kind === "not") return indexable(query.term, options);
  if (query.kind === "preset") return negated(query.query, options);
  if (query.kind === "and") return either(query.terms.map((term) => negated(term, options)));
  if (query.kind === "or") return both(query.terms.map((term) => negated(term, options)));
  const inner = indexable(query, options);
  return inner.exact ? exactly({ kind: "not", term: inner.plan }) : UNKNOWN;
}

function exactly(plan: Plan): Approximation {
  return { plan, exact: true };
}

function both(parts: readonly Approximation[]): Approximation {
  const terms = parts.map((part) => part.plan).filter((plan) => plan.kind !== "any");
  const [first] = terms;
  const plan: Plan = first === undefined ? ANY : terms.length === 1 ? first : { kind: "and", terms };
  return { plan, exact: parts.every((part) => part.exact) };
}

function either(parts: readonly Approximation[]): Approximation {
  const exact = parts.every((part) => part.exact);
  if (parts.some((part) => part.plan.kind === "any")) return { plan: ANY, exact };
  const terms = parts.map((part) => part.plan);
  const [first] = terms;
  return { plan: first === undefined ? NOTHING : terms.length === 1 ? first : { kind: "or", terms }, exact };
}

function fieldPlan(name: string, test: FieldTest): Approximation {
  const { value } = fieldOf(name);
  if (value.type === "number") return value.column === undefined ? UNKNOWN : numberPlan(value.column, test);
  const { columns, implies } = value;
  if (implies !== undefined) return { plan: { kind: "present", column: implies }, exact: false };
  if (columns === undefined) return UNKNOWN;
  const present = either(columns.map((column) => exactly({ kind: "present", column })));
  if (test.kind === "exists") return present;
  if (test.kind === "number") return exactly(NOTHING);
  if (asksReadableForm(value, test)) return UNKNOWN;
  const caseless = value.caseless === true;
  const equality = (wanted: TextValue, column: PlanColumn): Approximation => {
    if (wanted.kind !== "literal") return UNKNOWN;
    return {
      plan: {
        kind: "text",
        column,
        op: "equals",
        value: foldAscii(caseless ? aliasOf(value, wanted.text) : wanted.text),
      },
      exact: caseless,
    };
  };
  const everyday = (wanted: TextValue, column: PlanColumn): Approximation =>
    wanted.kind === "literal"
      ? exactly({ kind: "text", column, op: value.literal, value: foldAscii(aliasOf(value, wanted.text)) })
      : wanted.kind === "wildcard"
        ? wildcardPlan(wanted.parts.map(foldAscii), column)
        : UNKNOWN;
  const compare = test.mode === "matches" ? everyday : equality;
  const found = either(test.values.flatMap((wanted) => columns.map((column) => compare(wanted, column))));
  if (test.mode !== "differs") return found;
  return found.exact ? both([present, exactly({ kind: "not", term: found.plan })]) : { ...present, exact: false };
}

function wildcardPlan(parts: readonly string[], column: PlanColumn): Approximation {
  const terms: Plan[] = [];
  const first = parts[0] ?? "";
  const last = parts.at(-1) ?? "";
  const inner = parts.slice(1, -1);
  if (first !== "") terms.push({ kind: "text", column, op: "startsWith", value: first });
  for (const part of inner) terms.push({ kind: "text", column, op: "contains", value: part });
  if (last !== "") terms.push({ kind: "text", column, op: "endsWith", value: last });
  if (terms.length === 0) terms.push({ kind: "text", column, op: "contains", value: "" });
  const joined = both(terms.map(exactly));
  return { plan: joined.plan, exact: terms.length === 1 };
}

function numberPlan(column: PlanColumn, test: FieldTest): Approximation {
  if (test.kind === "exists") return exactly({ kind: "present", column });
  if (test.kind === "text") return exactly(NOTHING);
  const found = either(test.ranges.map((range) => rangePlan(column, range)));
  if (test.mode === "matches") return found;
  return both([exactly({ kind: "present", column }), exactly({ kind: "not", term: found.plan })]);
}

function rangePlan(column: PlanColumn, range: NumberRange): Approximation {
  const { min, max } = range;
  if (min !== null && min === max && !range.minExcluded && !range.maxExcluded) {
    return exactly({ kind: "number", column, op: "=", value: min });
  }
  const terms: Plan[] = [];
  if (min !== null) terms.push({ kind: "number", column, op: range.minExcluded ? ">" : ">=", value: min });
  if (max !== null) terms.push({ kind: "number", column, op: range.maxExcluded ? "<" : "<=", value: max });
  return both(terms.length === 0 ? [exactly({ kind: "present", column })] : terms.map(exactly));
}

/** The parts of a record that a predicate reads, so that a store fetches only those. */
export interface Needs {
  readonly headFields: boolean;
  readonly requestBody: boolean;
  readonly responseBody: boolean;
  /** Content of streams: their messages, and the status of calls. */
  readonly streams: boolean;
}

const NO_NEEDS: Needs = { headFields: false, requestBody: false, responseBody: false, streams: false };

/** Finds out what material a query touches beyond plain columns. */
export function needs(query: Query): Needs {
  switch (query.kind) {
    case "and":
    case "or":
      return query.terms.map(needs).reduce((left, right) => ({
        headFields: left.headFields || right.headFields,
        requestBody: left.requestBody || right.requestBody,
        responseBody: left.responseBody || right.responseBody,
        streams: left.streams || right.streams,
      }));
    case "not":
      return needs(query.term);
    case "preset":
      return needs(query.query);
    case "anywhere":
      return { ...NO_NEEDS, headFields: true, requestBody: true, responseBody: true };
    case "json":
      return { ...NO_NEEDS, requestBody: query.side === "req", responseBody: query.side === "resp" };
    case "field": {
      const { reads } = fieldOf(query.field);
      return {
        headFields: reads === "fields",
        requestBody: reads === "requestBody" || reads === "bothBodies",
        responseBody: reads === "responseBody" || reads === "bothBodies",
        streams: reads === "stream" || reads === "messages",
      };
    }
    case "all":
    case "since":
    case "before":
      return NO_NEEDS;
  }
}
