import type { Query, TextValue } from "@headworks/query-language";
import { rowsOfNeedle } from "./text-signature.ts";

/** What must be set in the signatures of every entry that a query holds for: all of some rows, or one of several demands. */
export type RequiredText =
  | { readonly kind: "rows"; readonly rows: readonly number[] }
  | { readonly kind: "all" | "any"; readonly terms: readonly RequiredText[] };

/** Fields that look into bodies only. Other fields have columns, or are too rarely asked for alone. */
const BODY_FIELDS: ReadonlySet<string> = new Set(["body", "req.body", "resp.body"]);

/** Undefined when a query may hold for an entry whatever its texts are. */
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

/** Lower case is how the query language compares free texts and bodies. */
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
