import type { Condition, MessageSide } from "@headworks/capture-contract";
import { conditionToQuery, queryToCondition } from "@headworks/match-condition";
import { anyOf, formatQuery, parseQuery } from "@headworks/query-language";
import type { FieldTest, Query, TextValue } from "@headworks/query-language";
import { asLiteral } from "./condition-draft.ts";

/** Phase in which a rule is evaluated: request, response, or both. */
export type RulePhase = MessageSide | "both";

/** The query that finds a condition's traffic in a phase, or null if it cannot be expressed. */
export function queryOfCondition(condition: Condition, phase: RulePhase): string | null {
  const sides: readonly MessageSide[] = phase === "both" ? ["request", "response"] : [phase];
  const queries = sides.flatMap((side) => converted(condition, side) ?? []);
  const texts = [...new Set(queries.map(formatQuery))];
  if (texts.length <= 1) return texts[0] ?? null;
  return formatQuery(anyOf(queries));
}

function converted(condition: Condition, side: MessageSide): Query | null {
  try {
    const result = conditionToQuery(condition, side);
    return result.ok ? inWords(result.query) : null;
  } catch (error) {
    // Incomplete pattern.
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** Writes literal patterns as words: `host:=a.example` for `host:/^a\.example$/i`. */
function inWords(query: Query): Query {
  switch (query.kind) {
    case "and":
    case "or":
      return { ...query, terms: query.terms.map(inWords) };
    case "not":
      return { ...query, term: inWords(query.term) };
    case "field":
      return { ...query, test: testInWords(query.test, query.field === "host") };
    default:
      return query;
  }
}

function testInWords(test: FieldTest, isHost: boolean): FieldTest {
  const [value, ...others] = test.kind === "text" && test.mode === "matches" ? test.values : [];
  if (value?.kind !== "pattern" || others.length > 0) return test;
  const literal = asLiteral(value.source);
  if (literal === null) return test;
  const values: readonly TextValue[] = [{ kind: "literal", text: literal.text }];
  // Host names are stored in lower case, so case is irrelevant.
  const isExact = value.flags === "" || (isHost && literal.text === literal.text.toLowerCase());
  if (literal.comparison === "is" && isExact) return { kind: "text", mode: "equals", values };
  if (literal.comparison === "contains" && value.flags === "i") return { kind: "text", mode: "matches", values };
  return test;
}

/** The condition of a query in a phase, or a sentence on the part that a rule cannot express. */
export function conditionOfQuery(
  text: string,
  phase: RulePhase,
): { readonly ok: true; readonly condition: Condition } | { readonly ok: false; readonly message: string } {
  const parsed = parseQuery(text);
  if (!parsed.ok) return { ok: false, message: parsed.error.message };
  const result = queryToCondition(phase === "request" ? aboutTheRequest(parsed.query) : parsed.query);
  return result.ok ? result : { ok: false, message: capital(result.message) };
}

/** Reads `body:` and `header[…]:` as the request's: there is no response yet. */
function aboutTheRequest(query: Query): Query {
  switch (query.kind) {
    case "and":
    case "or":
      return { ...query, terms: query.terms.map(aboutTheRequest) };
    case "not":
      return { ...query, term: aboutTheRequest(query.term) };
    case "preset":
      return { ...query, query: aboutTheRequest(query.query) };
    case "field":
      return query.field === "body" || query.field === "header" ? { ...query, field: `req.${query.field}` } : query;
    default:
      return query;
  }
}

function capital(sentence: string): string {
  // Field names stay in lower case.
  return /^[a-z.]+:/u.test(sentence) ? sentence : sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
