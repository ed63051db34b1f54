/** A value that is compared with text. Wildcard values keep the literal parts between the stars. */
export type TextValue =
  | { readonly kind: "literal"; readonly text: string }
  | { readonly kind: "wildcard"; readonly parts: readonly string[] }
  | { readonly kind: "pattern"; readonly source: string; readonly flags: string };

/** A stretch of numbers; null leaves that end open-ended, `…Excluded` leaves the bound itself out. */
export interface NumberRange {
  readonly min: number | null;
  readonly max: number | null;
  readonly minExcluded: boolean;
  readonly maxExcluded: boolean;
}

/**
 * What is asked of a field. `matches` is the everyday comparison of the field (contains or equals, by field),
 * `equals` compares whole values, `differs` holds when there is a value and none of the listed ones equals it.
 * Several values are alternatives.
 */
export type FieldTest =
  | { readonly kind: "exists" }
  | { readonly kind: "text"; readonly mode: "matches" | "equals" | "differs"; readonly values: readonly TextValue[] }
  | { readonly kind: "number"; readonly mode: "matches" | "differs"; readonly ranges: readonly NumberRange[] };

/** A moment: so many milliseconds before the evaluation, or a fixed time. */
export type Moment = { readonly kind: "ago"; readonly ms: number } | { readonly kind: "at"; readonly epochMs: number };

/** A parsed query. Immutable and made of plain data; `formatQuery` turns it back into text. */
export type Query =
  | { readonly kind: "all" }
  | { readonly kind: "and"; readonly terms: readonly Query[] }
  | { readonly kind: "or"; readonly terms: readonly Query[] }
  | { readonly kind: "not"; readonly term: Query }
  | { readonly kind: "anywhere"; readonly value: TextValue }
  | { readonly kind: "preset"; readonly name: string; readonly query: Query }
  | { readonly kind: "field"; readonly field: string; readonly key: string | null; readonly test: FieldTest }
  | { readonly kind: "json"; readonly side: "req" | "resp"; readonly path: string; readonly test: FieldTest }
  | { readonly kind: "since"; readonly moment: Moment }
  | { readonly kind: "before"; readonly moment: Moment };

/** Why a text is not a query, and where: offsets in UTF-16 units, `end` exclusive. */
export interface QueryError {
  readonly message: string;
  readonly start: number;
  readonly end: number;
}

/** The query that every record satisfies. */
export const EVERYTHING: Query = { kind: "all" };

/** Joins terms with AND, without needless nesting. */
export function allOf(terms: readonly Query[]): Query {
  const flat = terms.flatMap((term) => (term.kind === "and" ? term.terms : term.kind === "all" ? [] : [term]));
  const [first] = flat;
  if (first === undefined) return EVERYTHING;
  return flat.length === 1 ? first : { kind: "and", terms: flat };
}

/** Joins terms with OR, without needless nesting. At least one term. */
export function anyOf(terms: readonly Query[]): Query {
  const flat = terms.flatMap((term) => (term.kind === "or" ? term.terms : [term]));
  const [first] = flat;
  if (first === undefined || flat.some((term) => term.kind === "all")) return EVERYTHING;
  return flat.length === 1 ? first : { kind: "or", terms: flat };
}

/** Named queries. Values are query texts and may name other presets. */
export type Presets = Readonly<Record<string, string>>;

/** The presets that every installation has; users' saved filters are added to them and may not replace them. */
export const BUILT_IN_PRESETS: Presets = {
  errors: "status:>=400 OR state:failed",
  slow: "dur:>1s",
  changes: "method:(POST|PUT|PATCH|DELETE)",
  api: "type:(json|xml|grpc|graphql|protobuf) -type:(image|font|svg)",
  assets: "type:(script|stylesheet|image|font|media|css|javascript|audio|video)",
  pages: "type:(document|html)",
  streams: "type:(websocket|event-stream|grpc)",
  tunnels: "passthrough:true",
  redirects: "status:3xx",
};
