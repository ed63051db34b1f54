import type { Query, TextValue } from "@headworks/query-language";
import { rowsOfNeedle } from "./text-signature.ts";

/** Signature rows that must be set for every entry that may match: all rows, or one of several alternatives. */
export type RequiredText =
  | { readonly kind: "rows"; readonly rows: readonly number[] }
  | { readonly kind: "all" | "any"; readonly terms: readonly RequiredText[] };

/** Fields that search bodies only. Other fields have columns or are rarely used alone. */
const BODY_FIELDS: ReadonlySet<string> = new Set(["body", "req.body", "resp.body"]);

/** Undefined if any text may match. */
export function demandOf(query: Query): RequiredText | undefined {
  switch (query.kind) {
    case "and":
      return allOf(query.terms.map(demandOf));
    case "or":
      return anyOf(query.terms.map(demandOf));
    case "preset":
      return demandOf(query.query);
    case "anywhere":
      return demandOfValue(query.value);
    case "field": {
      const { test } = query;
      if (!BODY_FIELDS.has(query.field) || test.kind !== "text" || test.mode !== "matches") return undefined;
      return anyOf(test.values.map(demandOfValue));
    }
    default:
      return undefined;
  }
}

function demandOfValue(value: TextValue): RequiredText | undefined {
  switch (value.kind) {
    case "literal":
      return demandOfText(value.text);
    case "wildcard":
      return allOf(value.parts.map(demandOfText));
    case "pattern":
      return undefined;
  }
}

/** The query language compares free texts and bodies in lower case. */
function demandOfText(text: string): RequiredText | undefined {
  const rows = rowsOfNeedle(text.toLowerCase());
  return rows === undefined ? undefined : { kind: "rows", rows };
}

function allOf(terms: readonly (RequiredText | undefined)[]): RequiredText | undefined {
  const known = terms.filter((term) => term !== undefined);
  return known.length === 0 ? undefined : { kind: "all", terms: known };
}

function anyOf(terms: readonly (RequiredText | undefined)[]): RequiredText | undefined {
  const known = terms.filter((term) => term !== undefined);
  return known.length === 0 || known.length < terms.length ? undefined : { kind: "any", terms: known };
}
