import type { Condition, MessageSide } from "@headworks/capture-contract";
import { allOf, anyOf, formatQuery, parseQuery } from "@headworks/query-language";
import type { NumberRange, Query, TextValue } from "@headworks/query-language";
import { asLiteral, literalPattern } from "./literal-pattern.ts";

/**
 * The query that finds the traffic a condition holds for, or null where the language has no words for it. Conditions
 * about the message that is passing by are read as ones about `side`.
 */
export function queryOfCondition(condition: Condition, side: MessageSide): string | null {
  const query = toQuery(condition, side);
  return query === null ? null : formatQuery(query);
}

function field(
  name: string,
  value: TextValue,
  key: string | null = null,
  mode: "matches" | "equals" = "matches",
): Query {
  return { kind: "field", field: name, key, test: { kind: "text", mode, values: [value] } };
}

function patternField(name: string, pattern: string, key: string | null = null, flags = ""): Query {
  const literal = asLiteral(pattern);
  if (literal?.comparison === "is") return field(name, { kind: "literal", text: literal.text }, key, "equals");
  if (literal?.comparison === "contains" && flags === "i") {
    return field(name, { kind: "literal", text: literal.text }, key);
  }
  if (/^[^\\^$.|?+()[\]{}]*\*[^\\^$|?+()[\]{}]*$/u.test(pattern) && !pattern.includes(".*")) {
    return field(name, { kind: "wildcard", parts: pattern.split("*") }, key);
  }
  return field(name, { kind: "pattern", source: pattern, flags }, key);
}

function numbers(name: string, ranges: readonly NumberRange[]): Query {
  return { kind: "field", field: name, key: null, test: { kind: "number", mode: "matches", ranges } };
}

function between(min: number, max: number): NumberRange {
  return { min, max, minExcluded: false, maxExcluded: false };
}

function statusRanges(range: string | number): readonly NumberRange[] | null {
  const ranges: NumberRange[] = [];
  for (const part of String(range).split(",")) {
    const text = part.trim();
    const whole = /^([1-9])xx$/iu.exec(text);
    const span = /^(\d{3})(?:\s*-\s*(\d{3}))?$/u.exec(text);
    if (whole !== null) ranges.push(between(Number(whole[1]) * 100, Number(whole[1]) * 100 + 99));
    else if (span !== null) ranges.push(between(Number(span[1]), Number(span[2] ?? span[1])));
    else return null;
  }
  return ranges;
}

function several(conditions: readonly Condition[], side: MessageSide): readonly Query[] | null {
  const queries = conditions.map((condition) => toQuery(condition, side));
  return queries.some((query) => query === null) ? null : queries.filter((query) => query !== null);
}

function toQuery(condition: Condition, side: MessageSide): Query | null {
  const of = (own: MessageSide | undefined): "req" | "resp" => ((own ?? side) === "request" ? "req" : "resp");
  switch (condition.type) {
    case "all":
      return { kind: "all" };
    case "and": {
      const terms = several(condition.conditions, side);
      return terms === null ? null : allOf(terms);
    }
    case "or": {
      const terms = several(condition.conditions, side);
      return terms === null || terms.length === 0 ? null : anyOf(terms);
    }
    case "not": {
      const term = toQuery(condition.condition, side);
      return term === null ? null : { kind: "not", term };
    }
    case "host":
      return patternField("host", condition.pattern, null, "i");
    case "path_pattern":
      return patternField("path", condition.pattern);
    case "url_pattern":
      return patternField("url", condition.pattern);
    case "method":
      return field("method", { kind: "literal", text: condition.method });
    case "scheme":
      return field("scheme", { kind: "literal", text: condition.scheme });
    case "port":
      return numbers("port", [between(condition.port, condition.port)]);
    case "status_code": {
      const ranges = statusRanges(condition.range);
      return ranges === null ? null : numbers("status", ranges);
    }
    case "header": {
      const name = `${of(condition.side)}.header`;
      if (condition.value == null) return { kind: "field", field: name, key: condition.name, test: { kind: "exists" } };
      return field(name, { kind: "literal", text: condition.value }, condition.name, "equals");
    }
    case "header_pattern":
      return patternField(`${of(condition.side)}.header`, condition.pattern, condition.name);
    case "content_type":
      return patternField(`${of(condition.side)}.header`, condition.pattern, "content-type", "i");
    case "body_pattern":
      return patternField(`${of(condition.side)}.body`, condition.pattern);
    case "json_path":
      if (condition.value === undefined) {
        return { kind: "json", side: of(condition.side), path: condition.path, test: { kind: "exists" } };
      }
      if (typeof condition.value !== "string") return null;
      return {
        kind: "json",
        side: of(condition.side),
        path: condition.path,
        test: { kind: "text", mode: "equals", values: [{ kind: "literal", text: condition.value }] },
      };
    default:
      return null;
  }
}

/** The condition that a query's text stands for, or a sentence about what of it a rule cannot ask. */
export function conditionOfQuery(
  text: string,
): { readonly ok: true; readonly condition: Condition } | { readonly ok: false; readonly message: string } {
  const parsed = parseQuery(text);
  if (!parsed.ok) return { ok: false, message: parsed.error.message };
  try {
    return { ok: true, condition: fromQuery(parsed.query) };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
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
    case "field":
      return fromField(query);
    case "json": {
      const side = query.side === "req" ? "request" : "response";
      if (query.test.kind === "exists") return { type: "json_path", path: query.path, side };
      return alternatives(query, (value, isExact) =>
        value.kind === "literal" && isExact
          ? { type: "json_path", path: query.path, value: value.text, side }
          : { type: "json_path_pattern", path: query.path, pattern: patternOf(value, isExact), side },
      );
    }
    case "anywhere":
    case "since":
    case "before":
      throw new Error(
        query.kind === "anywhere"
          ? "A rule needs to know where to look: write host:, path:, body: and the like"
          : "Rules hold at any time; leave since: and before: out",
      );
  }
}

type FieldQuery = Query & { readonly kind: "field" | "json" };

/** One condition for each value, joined; a comparison by `!=` turns them round. */
function alternatives(query: FieldQuery, one: (value: TextValue, isExact: boolean) => Condition): Condition {
  const { test } = query;
  if (test.kind !== "text") throw new Error("A rule cannot compare this by numbers");
  const conditions = test.values.map((value) => one(value, test.mode !== "matches"));
  const [first] = conditions;
  if (first === undefined) throw new Error("A value is missing");
  const joined: Condition = conditions.length === 1 ? first : { type: "or", conditions };
  return test.mode === "differs" ? { type: "not", condition: joined } : joined;
}

function patternOf(value: TextValue, isExact: boolean): string {
  switch (value.kind) {
    case "literal":
      return literalPattern(isExact ? "is" : "contains", value.text);
    case "wildcard":
      return `^${value.parts.map((part) => literalPattern("contains", part)).join(".*")}$`;
    case "pattern":
      return value.source;
  }
}

function fromNumbers(query: FieldQuery & { readonly kind: "field" }): Condition {
  const { test } = query;
  if (test.kind !== "number") throw new Error(`${query.field}: takes numbers`);
  const bounds = test.ranges.map(({ min, max, minExcluded, maxExcluded }) => ({
    from: (min ?? 100) + (minExcluded ? 1 : 0),
    to: (max ?? 999) - (maxExcluded ? 1 : 0),
  }));
  const port = bounds.length === 1 && bounds[0]?.from === bounds[0]?.to ? bounds[0] : undefined;
  if (query.field === "port" && port === undefined) throw new Error("A rule asks for one port: port:443");
  const condition: Condition =
    query.field === "port"
      ? { type: "port", port: port?.from ?? 443 }
      : {
          type: "status_code",
          range: bounds.map(({ from, to }) => (from === to ? String(from) : `${from}-${to}`)).join(","),
        };
  return test.mode === "differs" ? { type: "not", condition } : condition;
}

function fromField(query: FieldQuery & { readonly kind: "field" }): Condition {
  const sides: Readonly<Record<string, MessageSide>> = { req: "request", resp: "response" };
  const [prefix, suffix] = query.field.split(".");
  const name = suffix ?? prefix ?? "";
  const side = suffix === undefined ? undefined : sides[prefix ?? ""];
  const sided = side === undefined ? {} : { side };
  const key = query.key;
  switch (name) {
    case "host":
      return alternatives(query, (value, isExact) => ({ type: "host", pattern: patternOf(value, isExact) }));
    case "path":
      return alternatives(query, (value, isExact) => ({ type: "path_pattern", pattern: patternOf(value, isExact) }));
    case "url":
      return alternatives(query, (value, isExact) => ({ type: "url_pattern", pattern: patternOf(value, isExact) }));
    case "body":
      return alternatives(query, (value, isExact) => ({
        type: "body_pattern",
        pattern: patternOf(value, isExact),
        ...sided,
      }));
    case "method":
    case "scheme":
      return alternatives(query, (value) => {
        if (value.kind !== "literal") throw new Error(`${name}: takes one word in a rule`);
        return name === "method" ? { type: "method", method: value.text } : { type: "scheme", scheme: value.text };
      });
    case "header": {
      if (key === null) throw new Error("A rule asks for a field by its name: header[name]");
      if (query.test.kind === "exists") return { type: "header", name: key, ...sided };
      return alternatives(query, (value, isExact) =>
        value.kind === "literal" && isExact
          ? { type: "header", name: key, value: value.text, ...sided }
          : { type: "header_pattern", name: key, pattern: patternOf(value, isExact), ...sided },
      );
    }
    case "port":
    case "status":
      return fromNumbers(query);
    default:
      throw new Error(`Rules cannot ask for ${query.field}:`);
  }
}
