import type { Condition } from "@headworks/capture-contract";
import { NOT_READ, type BodyText, type MatchSubject } from "../src/index.ts";

/**
 * A plain reference implementation without order or index, using the platform's regular expressions and URL parameters.
 * Supports only regular expressions and JSON paths of members.
 */
export function naiveDecision(condition: Condition, subject: MatchSubject): boolean | "needs-body" {
  switch (condition.type) {
    case "and":
      return conjunction(condition.conditions.map((part) => naiveDecision(part, subject)));
    case "or":
      return negation(conjunction(condition.conditions.map((part) => negation(naiveDecision(part, subject)))));
    case "not":
      return negation(naiveDecision(condition.condition, subject));
    case "all":
      return true;
    case "url_pattern":
      return new RegExp(condition.pattern).test(subject.url);
    case "path_pattern":
      return new RegExp(condition.pattern).test(subject.path);
    case "host":
      return new RegExp(condition.pattern, "i").test(subject.host);
    case "method":
      return condition.method.toUpperCase() === subject.method.toUpperCase();
    case "scheme":
      return condition.scheme.toLowerCase() === subject.scheme;
    case "port":
      return condition.port === subject.port;
    case "path_segment":
      return subject.path.split("/").slice(1)[condition.index] === condition.value;
    case "query_param": {
      const values = new URLSearchParams(subject.query).getAll(condition.name);
      return typeof condition.value === "string" ? values.includes(condition.value) : values.length > 0;
    }
    case "query_param_pattern":
      return new URLSearchParams(subject.query)
        .getAll(condition.name)
        .some((value) => new RegExp(condition.pattern).test(value));
    case "status_code": {
      if (subject.phase === "request" || subject.status === undefined) return false;
      return (
        String(condition.range).replace("xx", "") ===
        String(subject.status).slice(0, String(condition.range).endsWith("xx") ? 1 : 3)
      );
    }
    default:
      return passing(condition, subject);
  }
}

function conjunction(parts: readonly (boolean | "needs-body")[]): boolean | "needs-body" {
  if (parts.includes(false)) return false;
  return parts.includes("needs-body") ? "needs-body" : true;
}

function negation(part: boolean | "needs-body"): boolean | "needs-body" {
  return part === "needs-body" ? part : !part;
}

function passing(condition: Condition, subject: MatchSubject): boolean | "needs-body" {
  const side = "side" in condition && condition.side !== undefined ? condition.side : subject.phase;
  if (side === "response" && subject.phase === "request") return false;
  const flat = side === "request" ? subject.requestFields() : subject.responseFields();
  const pairs = flat.flatMap((name, index) =>
    index % 2 === 0 ? [[name.toLowerCase(), flat[index + 1] ?? ""] as const] : [],
  );
  const valuesOf = (name: string): string[] =>
    pairs.filter(([known]) => known === name.toLowerCase()).map(([, value]) => value);
  switch (condition.type) {
    case "header":
      return typeof condition.value === "string"
        ? valuesOf(condition.name).includes(condition.value)
        : valuesOf(condition.name).length > 0;
    case "header_pattern":
      return valuesOf(condition.name).some((value) => new RegExp(condition.pattern).test(value));
    case "content_type":
      return valuesOf("content-type").some((value) => new RegExp(condition.pattern, "i").test(value));
    default:
      return aboutBody(condition, condition.type.startsWith("graph") ? subject.requestText() : textOf(side, subject));
  }
}

function textOf(side: "request" | "response", subject: MatchSubject): BodyText {
  return side === "request" ? subject.requestText() : subject.responseText();
}

function aboutBody(condition: Condition, text: BodyText): boolean | "needs-body" {
  if (text === NOT_READ) return "needs-body";
  if (text === undefined) return false;
  if (condition.type === "body_pattern") return new RegExp(condition.pattern).test(text);
  let root: unknown;
  try {
    root = JSON.parse(text);
  } catch {
    return false;
  }
  if (condition.type === "json_path" || condition.type === "json_path_pattern") {
    const found = condition.path
      .split(".")
      .slice(1)
      .reduce<unknown>(
        (value, name) => (isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined),
        root,
      );
    if (found === undefined) return false;
    if (condition.type === "json_path_pattern") {
      return !isObject(found) && new RegExp(condition.pattern).test(JSON.stringify(found).replace(/^"|"$/g, ""));
    }
    return condition.value === undefined || JSON.stringify(found) === JSON.stringify(condition.value);
  }
  if (!isObject(root)) return false;
  if ("operation_name" in condition) return root["operationName"] === condition.operation_name;
  if ("operation_type" in condition) {
    const query = root["query"];
    return typeof query === "string" && (/^\s*(\w+)/.exec(query)?.[1] ?? "query") === condition.operation_type;
  }
  if (condition.type !== "graph_q_l_variable" && condition.type !== "graphql_variable") {
    throw new TypeError(condition.type);
  }
  const variables = root["variables"];
  return isObject(variables) && JSON.stringify(variables[condition.name]) === JSON.stringify(condition.value);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
