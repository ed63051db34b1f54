import type { Condition, MessageSide } from "@headworks/capture-contract";
import { isSameJson, parseNumber, WrittenNumber } from "@headworks/json";
import { type FieldTest, foldAscii, type NumberRange, type Query, type TextValue } from "@headworks/query-language";
import { leafPhrase } from "./describe.ts";
import { type Leaf, parseStatusRange, PATTERN_MODES } from "./leaves.ts";
import { type PatternMode, readPattern } from "./text-pattern.ts";

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
    return { ok: true, query: toQuery(condition, phase) };
  } catch (error) {
    if (!(error instanceof NoEquivalent)) throw error;
    return { ok: false, message: error.message };
  }
}

function toQuery(condition: Condition, phase: MessageSide): Query {
  switch (condition.type) {
    case "all":
      return { kind: "all" };
    case "and":
    case "or": {
      const terms = condition.conditions.map((part) => toQuery(part, phase));
      return joined(condition.type, terms);
    }
    case "not": {
      const term = toQuery(condition.condition, phase);
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

/** A condition, or why the query has no equivalent. */
export type FromQueryResult =
  | { readonly ok: true; readonly condition: Condition }
  | { readonly ok: false; readonly message: string };

/**
 * The condition that holds, once there is a response, for exactly the exchanges a query finds. Queries about facts
 * unknown when rules decide, such as durations and notes, return an error. Two differences remain: `:*` finds binary
 * bodies and rules do not, and case folding of non-ASCII letters may differ.
 */
export function queryToCondition(query: Query): FromQueryResult {
  try {
    return { ok: true, condition: fromQuery(query) };
  } catch (error) {
    if (!(error instanceof NoEquivalent)) throw error;
    return { ok: false, message: error.message };
  }
}

function fromQuery(query: Query): Condition {
  switch (query.kind) {
    case "all":
      return { type: "all" };
    case "and":
    case "or":
      return { type: query.kind, conditions: query.terms.map(fromQuery) };
    case "not":
      return { type: "not", condition: fromQuery(query.term) };
    case "preset":
      return fromQuery(query.query);
    case "json":
      return jsonCondition(query.side === "req" ? "request" : "response", query.path, query.test);
    case "field":
      return fieldCondition(query.field, query.key, query.test);
    case "anywhere":
      throw new NoEquivalent("rules cannot match text anywhere in an exchange; name a field, such as url: or body:");
    case "since":
    case "before":
      throw new NoEquivalent(`${query.kind}: is about stored entries, and rules match live traffic`);
  }
}

function fieldCondition(field: string, key: string | null, test: FieldTest): Condition {
  switch (field) {
    case "method":
    case "scheme":
      return wordCondition(field, test);
    case "host":
      return textCondition(test, "contains", PATTERN_MODES.host, (pattern) => ({ type: "host", pattern }));
    case "path":
      return textCondition(test, "contains", PATTERN_MODES.path_pattern, (pattern) => ({
        type: "path_pattern",
        pattern,
      }));
    case "url":
      return textCondition(test, "contains", PATTERN_MODES.url_pattern, (pattern) => ({
        type: "url_pattern",
        pattern,
      }));
    case "req.header":
    case "resp.header":
    case "header":
      if (key === null) {
        throw new NoEquivalent(`${field}: requires a name in rules; write ${field}[name]:`);
      }
      return eitherSide(test, field, (side) => headerCondition(key, side, test));
    case "req.body":
    case "resp.body":
    case "body":
      return eitherSide(test, field, (side) =>
        textCondition(test, "contains", PATTERN_MODES.body_pattern, (pattern) => ({
          type: "body_pattern",
          pattern,
          side,
        })),
      );
    case "port":
      return portCondition(test);
    case "status":
      return statusCondition(test);
    case "ws.text":
    case "dir":
      throw new NoEquivalent(`${field}: is about messages of streams; use rules for WebSocket messages`);
    case "grpc.service":
    case "grpc.method":
      return callCondition(field, test);
    case "grpc.status":
      throw new NoEquivalent("grpc.status: is known only after the call, too late for rules");
    default:
      throw new NoEquivalent(`${field}: cannot be used in rules`);
  }
}

/** Media types of gRPC and gRPC-Web requests, as in the query language. */
const CALL: Condition = {
  type: "header_pattern",
  name: "content-type",
  pattern: "(?i)^application/grpc(?:$|[-+; ])",
  side: "request",
};

/** The second to last segment of a call's path, or the last; neither is empty. */
function callCondition(field: "grpc.service" | "grpc.method", test: FieldTest): Condition {
  const isService = field === "grpc.service";
  const path = (segment: string): Condition => ({
    type: "path_pattern",
    pattern: fitting(`(?i)/${isService ? `${segment}/[^/]+` : `[^/]+/${segment}`}$`),
  });
  const any = path("[^/]+");
  if (test.kind !== "text") return { type: "and", conditions: [CALL, any] };
  const isPart = isService && test.mode === "matches";
  const found = anyOf(test.values.map((value) => path(segmentOf(field, value, isPart))));
  return { type: "and", conditions: [CALL, ...(test.mode === "differs" ? [any, negation(found)] : [found])] };
}

function segmentOf(field: string, value: TextValue, isPart: boolean): string {
  const parts = value.kind === "literal" ? [value.text] : value.kind === "wildcard" ? value.parts : undefined;
  if (parts === undefined) throw new NoEquivalent(`${field}: cannot be a pattern in rules; use path:`);
  const text = parts.join("");
  if (text === "" || text.includes("/")) {
    throw new NoEquivalent(`${field}: must be one segment of the path, without a slash`);
  }
  const segment = parts.map(escaped).join("[^/]*");
  return isPart && value.kind === "literal" ? `[^/]*${segment}[^/]*` : segment;
}

function negation(condition: Condition): Condition {
  return { type: "not", condition };
}

function sides(field: string): readonly MessageSide[] {
  return field.startsWith("req.") ? ["request"] : field.startsWith("resp.") ? ["response"] : ["request", "response"];
}

/** One side, or either. A value that differs on both sides cannot be expressed. */
function eitherSide(test: FieldTest, field: string, make: (side: MessageSide) => Condition): Condition {
  const conditions = sides(field).map(make);
  const [first] = conditions;
  if (conditions.length === 1 && first !== undefined) return first;
  if (test.kind === "text" && test.mode === "differs") {
    throw new NoEquivalent(`${field}:!= applies to both messages at once; write req.${field}: or resp.${field}:`);
  }
  return { type: "or", conditions };
}

function anyOf(conditions: readonly Condition[]): Condition {
  const [first] = conditions;
  if (first === undefined) throw new NoEquivalent("there is no value to compare with");
  return conditions.length === 1 ? first : { type: "or", conditions };
}

function wordCondition(field: "method" | "scheme", test: FieldTest): Condition {
  if (test.kind === "exists") return { type: "all" };
  if (test.kind !== "text") throw new NoEquivalent(`${field}: must be compared with text`);
  const words = test.values.map((value): Condition => {
    if (value.kind !== "literal") throw new NoEquivalent(`${field}: must be a whole word in rules`);
    return field === "method" ? { type: "method", method: value.text } : { type: "scheme", scheme: value.text };
  });
  const condition = anyOf(words);
  return test.mode === "differs" ? { type: "not", condition } : condition;
}

const ANY_TEXT = "(?s).";

function textCondition(
  test: FieldTest,
  literal: "contains" | "equals",
  mode: PatternMode,
  make: (pattern: string, value?: TextValue) => Condition,
): Condition {
  if (test.kind === "exists") return make(ANY_TEXT);
  if (test.kind !== "text") throw new NoEquivalent("only ports and statuses compare with numbers");
  const condition = anyOf(
    test.values.map((value) =>
      make(test.mode === "matches" ? patternOf(value, literal, mode) : exactPattern(value), value),
    ),
  );
  return test.mode === "differs"
    ? { type: "and", conditions: [make(ANY_TEXT), { type: "not", condition }] }
    : condition;
}

const MAX_PATTERN_LENGTH = 1000;

function fitting(pattern: string): string {
  if (pattern.length > MAX_PATTERN_LENGTH) throw new NoEquivalent("the text is too long for a pattern");
  return pattern;
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

/** Exact values are case-sensitive unless the kind of condition ignores case. */
function exactPattern(value: TextValue): string {
  return fitting(`^${escaped(value.kind === "literal" ? value.text : "")}$`);
}

const PLAIN_WILDCARD = /^[\w.:/*-]+$/;

function patternOf(value: TextValue, literal: "contains" | "equals", mode: PatternMode): string {
  const caseless = mode.caseless ? "" : "(?i)";
  if (value.kind === "pattern") {
    const flags = value.flags === "" ? "" : `(?${value.flags})`;
    return fitting(asRegex(flags + value.source, mode));
  }
  if (value.kind === "literal") {
    const text = literal === "equals" ? `^${escaped(value.text)}$` : escaped(value.text);
    return fitting(asRegex(`${/[a-z]/i.test(value.text) ? caseless : ""}${text}`, mode));
  }
  const wildcard = value.parts.join("*");
  if (mode.caseless && mode.wildcard === "whole" && PLAIN_WILDCARD.test(wildcard)) return fitting(wildcard);
  const source = value.parts.map(escaped).join(".*");
  return fitting(`(?${mode.caseless ? "s" : "is"})${mode.wildcard === "part" ? source : `^${source}$`}`);
}

/** Prevents a regular expression from being read as a wildcard. */
function asRegex(pattern: string, mode: PatternMode): string {
  const reading = readPattern(pattern, mode);
  const isRegex = "kind" in reading && reading.kind === "regex";
  return isRegex ? pattern : `(?:${pattern})`;
}

function headerCondition(name: string, side: MessageSide, test: FieldTest): Condition {
  if (test.kind === "exists") return { type: "header", name, side };
  if (test.kind === "text" && test.mode === "equals") {
    return anyOf(
      test.values.map((value) => ({ type: "header", name, value: value.kind === "literal" ? value.text : "", side })),
    );
  }
  return textCondition(test, "contains", PATTERN_MODES.header_pattern, (pattern) => ({
    type: "header_pattern",
    name,
    pattern,
    side,
  }));
}

function jsonCondition(side: MessageSide, path: string, test: FieldTest): Condition {
  if (test.kind === "exists") return { type: "json_path", path, side };
  if (test.kind === "text") {
    return textCondition(test, "equals", PATTERN_MODES.json_path_pattern, (pattern, value) => {
      const written: Condition = { type: "json_path_pattern", path, pattern, side };
      const number = value?.kind === "literal" ? parseNumber(value.text) : undefined;
      // Queries also compare numbers by value: 7 finds 7.0.
      return number === undefined ? written : anyOf([written, { type: "json_path", path, value: number, side }]);
    });
  }
  const conditions = test.ranges.map((range): Condition => {
    if (range.min === null || range.min !== range.max || range.minExcluded || range.maxExcluded) {
      throw new NoEquivalent("a rule compares a JSON value with one number, not with a range");
    }
    return { type: "json_path", path, value: range.min, side };
  });
  if (test.mode === "differs") throw new NoEquivalent("rules cannot negate a number in a JSON body");
  return anyOf(conditions);
}

const MAX_PORTS = 64;
const TOO_MANY_PORTS = `rules list ports one by one, at most ${MAX_PORTS}`;

function portCondition(test: FieldTest): Condition {
  if (test.kind === "exists") return { type: "all" };
  if (test.kind !== "number") throw new NoEquivalent("port: must be compared with numbers");
  const ports = test.ranges.flatMap((range) => {
    const [min, max] = wholeRange(range, 1, 65_535);
    if (max - min >= MAX_PORTS) throw new NoEquivalent(TOO_MANY_PORTS);
    return Array.from({ length: Math.max(0, max - min + 1) }, (_, index) => min + index);
  });
  if (ports.length > MAX_PORTS) throw new NoEquivalent(TOO_MANY_PORTS);
  if (ports.length === 0) throw new NoEquivalent("there is no such port");
  const condition = anyOf(ports.map((port) => ({ type: "port", port })));
  return test.mode === "differs" ? { type: "not", condition } : condition;
}

function statusCondition(test: FieldTest): Condition {
  const any: Condition = { type: "status_code", range: "100-999" };
  if (test.kind === "exists") return any;
  if (test.kind !== "number") throw new NoEquivalent("status: must be compared with numbers");
  const texts = test.ranges.flatMap((range) => {
    const [min, max] = wholeRange(range, 100, 999);
    if (min > max) return [];
    if (min === max) return [String(min)];
    return [min % 100 === 0 && max === min + 99 ? `${min / 100}xx` : `${min}-${max}`];
  });
  if (texts.length === 0) throw new NoEquivalent("there is no such status");
  const range = texts.join(",");
  if (range.length > 255) throw new NoEquivalent("these are too many statuses for one condition");
  const condition: Condition = { type: "status_code", range };
  return test.mode === "differs" ? { type: "and", conditions: [any, { type: "not", condition }] } : condition;
}

/** The integers of a range between two bounds. */
function wholeRange(range: NumberRange, least: number, most: number): readonly [min: number, max: number] {
  const min =
    range.min === null ? least : Math.floor(range.min) + (range.minExcluded || !Number.isInteger(range.min) ? 1 : 0);
  const max =
    range.max === null ? most : Math.ceil(range.max) - (range.maxExcluded || !Number.isInteger(range.max) ? 1 : 0);
  return [Math.max(least, min), Math.min(most, max)];
}
