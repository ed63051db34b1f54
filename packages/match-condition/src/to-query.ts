import type { Condition, MessageSide } from "@headworks/capture-contract";
import { isSameJson, WrittenNumber } from "@headworks/json";
import { type FieldTest, foldAscii, type NumberRange, type Query, type TextValue } from "@headworks/query-language";
import { leafPhrase } from "./describe.ts";
import { type Leaf, parseStatusRange, PATTERN_MODES } from "./leaves.ts";
import { readPattern, type PatternMode } from "./text-pattern.ts";

/** A query, or the part of a condition without an equivalent. */
export type ToQueryResult =
  | { readonly ok: true; readonly query: Query }
  | { readonly ok: false; readonly message: string };

class NoEquivalent extends Error {}

/**
 * The query that finds the completed exchanges for which a condition holds in a phase; in the request phase, conditions
 * without a side apply to the request. Query parameters, path segments, GraphQL and structured JSON values have no
 * equivalent in the query language.
 */
export function conditionToQuery(condition: Condition, phase: MessageSide): ToQueryResult {
  try {
    return { ok: true, query: convert(condition, phase) };
  } catch (error) {
    if (!(error instanceof NoEquivalent)) throw error;
    return { ok: false, message: error.message };
  }
}

function convert(condition: Condition, phase: MessageSide): Query {
  switch (condition.type) {
    case "all":
      return { kind: "all" };
    case "and":
    case "or": {
      const terms = condition.conditions.map((part) => convert(part, phase));
      return joined(condition.type, terms);
    }
    case "not": {
      const term = convert(condition.condition, phase);
      // A query that matches nothing cannot be written directly; every exchange has a method.
      return { kind: "not", term: term.kind === "all" ? field("method", null, { kind: "exists" }) : term };
    }
    default:
      return leafQuery(condition, phase);
  }
}

/** Flattened, as the parser does it. */
function joined(kind: "and" | "or", terms: readonly Query[]): Query {
  const flat = terms.flatMap((term) => (term.kind === kind ? term.terms : [term]));
  const kept = kind === "and" ? flat.filter((term) => term.kind !== "all") : flat;
  if (kind === "or" && flat.some((term) => term.kind === "all")) return { kind: "all" };
  const [first] = kept;
  if (first === undefined) return { kind: "all" };
  return kept.length === 1 ? first : { kind, terms: kept };
}

function leafQuery(leaf: Leaf, phase: MessageSide): Query {
  switch (leaf.type) {
    case "url_pattern":
      return field("url", null, patternTest(leaf.pattern, PATTERN_MODES.url_pattern));
    case "path_pattern":
      return field("path", null, patternTest(leaf.pattern, PATTERN_MODES.path_pattern));
    case "host":
      return field("host", null, patternTest(leaf.pattern, PATTERN_MODES.host));
    case "method":
      return field("method", null, literalTest("matches", leaf.method));
    case "scheme":
      return field("scheme", null, literalTest("matches", leaf.scheme));
    case "port":
      return field("port", null, numberTest([onlyNumber(leaf.port)]));
    case "header":
      return field(
        headerField(leaf, phase),
        foldAscii(leaf.name),
        leaf.value === undefined || leaf.value === null ? { kind: "exists" } : literalTest("equals", leaf.value),
      );
    case "header_pattern":
      return field(
        headerField(leaf, phase),
        foldAscii(leaf.name),
        patternTest(leaf.pattern, PATTERN_MODES.header_pattern),
      );
    case "content_type":
      return field(headerField(leaf, phase), "content-type", patternTest(leaf.pattern, PATTERN_MODES.content_type));
    case "body_pattern": {
      const name = sideOf(leaf, phase) === "request" ? "req.body" : "resp.body";
      return field(name, null, patternTest(leaf.pattern, PATTERN_MODES.body_pattern));
    }
    case "json_path":
    case "json_path_pattern":
      return jsonQuery(leaf, phase);
    case "status_code": {
      const ranges = parseStatusRange(leaf.range);
      if (phase === "request" || ranges === undefined) throw noWords(leaf);
      return field("status", null, numberTest(ranges));
    }
    default:
      throw noWords(leaf);
  }
}

function noWords(leaf: Leaf): NoEquivalent {
  const { what, predicate } = leafPhrase(leaf);
  return new NoEquivalent(`the query language cannot express: ${what} ${predicate}`);
}

function sideOf(leaf: Leaf & { readonly side?: MessageSide }, phase: MessageSide): MessageSide {
  const side = leaf.side ?? phase;
  // Such a condition never holds, while a query always sees the response.
  if (side === "response" && phase === "request") throw noWords(leaf);
  return side;
}

function headerField(leaf: Leaf & { readonly side?: MessageSide }, phase: MessageSide): string {
  return sideOf(leaf, phase) === "request" ? "req.header" : "resp.header";
}

function field(name: string, key: string | null, test: FieldTest): Query {
  return { kind: "field", field: name, key, test };
}

function literalTest(mode: "matches" | "equals", text: string): FieldTest {
  return { kind: "text", mode, values: [{ kind: "literal", text }] };
}

const onlyNumber = (value: number): NumberRange => ({ min: value, max: value, minExcluded: false, maxExcluded: false });

function numberTest(ranges: readonly NumberRange[]): FieldTest {
  return { kind: "number", mode: "matches", ranges };
}

function patternTest(pattern: string, mode: PatternMode): FieldTest {
  const reading = readPattern(pattern, mode);
  if ("message" in reading) throw new RangeError(`the pattern \`${pattern}\`: ${reading.message}`);
  const isPlainWildcard = reading.kind === "wildcard" && mode.caseless && /^[\w.:*-]+$/.test(pattern);
  const value: TextValue = isPlainWildcard
    ? { kind: "wildcard", parts: pattern.replace(/\*+/g, "*").split("*") }
    : { kind: "pattern", source: reading.source, flags: reading.flags };
  return { kind: "text", mode: "matches", values: [value] };
}

function jsonQuery(
  leaf: Extract<Leaf, { readonly type: "json_path" | "json_path_pattern" }>,
  phase: MessageSide,
): Query {
  const side = sideOf(leaf, phase) === "request" ? "req" : "resp";
  const { path } = leaf;
  if (leaf.type === "json_path_pattern") {
    return { kind: "json", side, path, test: patternTest(leaf.pattern, PATTERN_MODES.json_path_pattern) };
  }
  if (leaf.value === undefined) return { kind: "json", side, path, test: { kind: "exists" } };
  if (typeof leaf.value === "number") {
    return { kind: "json", side, path, test: numberTest([onlyNumber(leaf.value)]) };
  }
  // A text test of a number finds equal values, but also that text.
  if (leaf.value instanceof WrittenNumber) {
    const number = leaf.value.valueOf();
    if (Number.isSafeInteger(number) && isSameJson(leaf.value, number)) {
      return { kind: "json", side, path, test: numberTest([onlyNumber(number)]) };
    }
    throw noWords(leaf);
  }
  // Text that looks like a number or literal would also find those values.
  if (typeof leaf.value !== "string" || LIKE_A_LITERAL.test(leaf.value)) throw noWords(leaf);
  return { kind: "json", side, path, test: literalTest("equals", leaf.value) };
}

const LIKE_A_LITERAL = /^(?:-?\d.*|true|false|null|-?Infinity|NaN)$/;
