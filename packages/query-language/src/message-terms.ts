import { foldUnicode } from "./fold.ts";
import type { TextField } from "./fields.ts";
import type { FieldTest, Query } from "./query.ts";
import type { Direction, QueryRecord } from "./record.ts";
import { DIRECTIONS } from "./stream-fields.ts";
import { compileValues } from "./text-match.ts";

/** The terms of a conjunction without the directions that are a part of its other terms; see {@link directionsOf}. */
export function separateTerms(terms: readonly Query[]): readonly Query[] {
  return terms.some(asksForMessages) ? terms.filter((term) => !asksForDirection(term)) : terms;
}

function asksForMessages(term: Query): boolean {
  return term.kind === "field" && term.field === "ws.text";
}

function asksForDirection(term: Query): boolean {
  return term.kind === "field" && term.field === "dir";
}

/**
 * The ways that messages may have gone by the `dir:` terms of a conjunction: beside `ws.text:` they are about the message
 * that is looked for, not about any other of the same connection.
 */
export function directionsOf(terms: readonly Query[]): readonly Direction[] {
  const tests = terms.flatMap((term) => (term.kind === "field" && term.field === "dir" ? [term.test] : []));
  return DIRECTIONS.filter((direction) => tests.every((test) => isAllowed(test, direction)));
}

function isAllowed(test: FieldTest, direction: Direction): boolean {
  if (test.kind !== "text") return test.kind === "exists";
  const isListed = test.values.some((value) => value.kind === "literal" && value.text === direction);
  return isListed === (test.mode !== "differs");
}

/** Compiles a test of the texts of messages that went one of these ways; texts are taken one by one until it is decided. */
export function compileMessages(
  test: FieldTest,
  field: TextField,
  directions: readonly Direction[],
): (record: QueryRecord) => boolean {
  if (test.kind === "number" || directions.length === 0) return () => false;
  const matches = test.kind === "exists" ? [] : compileValues(test, field);
  const folds = matches.some(({ usesFolded }) => usesFolded);
  const differs = test.kind === "text" && test.mode === "differs";
  return (record) => {
    let isPresent = false;
    for (const text of record.webSocketTexts?.(directions) ?? []) {
      isPresent ||= text !== "";
      if (test.kind === "exists" && isPresent) return true;
      const folded = folds ? foldUnicode(text) : text;
      if (matches.some((match) => match.matches(match.usesFolded ? folded : text))) return !differs;
    }
    return differs && isPresent;
  };
}
