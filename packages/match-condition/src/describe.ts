import type { Condition, MessageSide } from "@headworks/capture-contract";
import { isNumeric, parseJsonPath, selectJson } from "@headworks/json";
import { foldAscii } from "@headworks/query-language";
import {
  bodyJson,
  bodyText,
  type MatchResult,
  type Explanation,
  headerValues,
  type MatchSubject,
  NOT_READ,
  pathSegment,
  queryValues,
} from "./subject.ts";
import type { CompiledLeaf, Leaf } from "./leaves.ts";

/** The two halves of a sentence about a leaf. */
interface LeafPhrase {
  /** Such as `the path` or `the header X-A of the request`. */
  readonly what: string;
  /** Such as `is /a` or `matches a*`. */
  readonly predicate: string;
}

/** A condition as a sentence: `the host matches *.example.com and the method is POST`. */
export function describeCondition(condition: Condition): string {
  return describe(condition, false);
}

function describe(condition: Condition, isInside: boolean): string {
  switch (condition.type) {
    case "all":
      return "everything";
    case "and":
    case "or": {
      const text = condition.conditions.map((part) => describe(part, true)).join(` ${condition.type} `);
      return isInside && condition.conditions.length > 1 ? `(${text})` : text;
    }
    case "not":
      return `not (${describe(condition.condition, false)})`;
    default: {
      const { what, predicate } = leafPhrase(condition);
      return `${what} ${predicate}`;
    }
  }
}

export function leafPhrase(leaf: Leaf): LeafPhrase {
  switch (leaf.type) {
    case "all":
      return { what: "it", predicate: "is anything" };
    case "url_pattern":
      return { what: "the URL", predicate: matches(leaf.pattern) };
    case "path_pattern":
      return { what: "the path", predicate: matches(leaf.pattern) };
    case "host":
      return { what: "the host", predicate: matches(leaf.pattern) };
    case "method":
      return { what: "the method", predicate: `is ${quoted(leaf.method)}` };
    case "scheme":
      return { what: "the scheme", predicate: `is ${quoted(leaf.scheme)}` };
    case "port":
      return { what: "the port", predicate: `is ${leaf.port}` };
    case "path_segment":
      return { what: `segment ${leaf.index} of the path`, predicate: `is ${quoted(leaf.value)}` };
    case "query_param":
      return { what: `the query parameter ${quoted(leaf.name)}`, predicate: presence(leaf.value) };
    case "query_param_pattern":
      return { what: `the query parameter ${quoted(leaf.name)}`, predicate: matches(leaf.pattern) };
    case "header":
      return { what: `the header ${quoted(leaf.name)}${sideOf(leaf)}`, predicate: presence(leaf.value) };
    case "header_pattern":
      return { what: `the header ${quoted(leaf.name)}${sideOf(leaf)}`, predicate: matches(leaf.pattern) };
    case "content_type":
      return { what: `the content type${sideOf(leaf)}`, predicate: matches(leaf.pattern) };
    case "body_pattern":
      return { what: `the body${sideOf(leaf)}`, predicate: matches(leaf.pattern) };
    case "json_path":
      return {
        what: `the JSON value ${quoted(leaf.path)}${sideOf(leaf)}`,
        predicate: leaf.value === undefined ? "exists" : `is ${quoted(JSON.stringify(leaf.value))}`,
      };
    case "json_path_pattern":
      return { what: `the JSON value ${quoted(leaf.path)}${sideOf(leaf)}`, predicate: matches(leaf.pattern) };
    case "status_code":
      return { what: "the status", predicate: `is ${leaf.range}` };
    default:
      return graphqlPhrase(leaf);
  }
}

function graphqlPhrase(leaf: Extract<Leaf, { readonly type: `graph${string}` }>): LeafPhrase {
  if ("operation_name" in leaf) {
    return { what: "the GraphQL operation", predicate: `is ${quoted(leaf.operation_name)}` };
  }
  if ("operation_type" in leaf) return { what: "the GraphQL operation", predicate: `is a ${leaf.operation_type}` };
  return { what: `the GraphQL variable ${quoted(leaf.name)}`, predicate: `is ${quoted(JSON.stringify(leaf.value))}` };
}

function matches(pattern: string): string {
  return `matches ${quoted(pattern)}`;
}

function presence(value: string | null | undefined): string {
  return value === undefined || value === null ? "exists" : `is ${quoted(value)}`;
}

function sideOf({ side }: { readonly side?: "request" | "response" }): string {
  return side === undefined ? "" : side === "request" ? " of the request" : " of the response";
}

const MAX_QUOTED_LENGTH = 200;

function quoted(text: string): string {
  return text.length > MAX_QUOTED_LENGTH ? `\`${text.slice(0, MAX_QUOTED_LENGTH)}…\`` : `\`${text}\``;
}

const OUTCOMES = { true: "holds", false: "fails", "needs-body": "needs-body" } as const;

function outcomeOf(decision: MatchResult): Explanation["outcome"] {
  return OUTCOMES[`${decision}`];
}

export function explainLeaf(
  leaf: Leaf,
  compiled: CompiledLeaf,
  subject: MatchSubject,
  decision: MatchResult,
  pointer: string,
): Explanation {
  const { what, predicate } = leafPhrase(leaf);
  const statement = capital(`${what} ${predicate}`);
  const outcome = outcomeOf(decision);
  if (outcome === "holds") {
    return { outcome, pointer, text: leaf.type === "all" ? "Everything matches" : statement, parts: [] };
  }
  const because =
    compiled.about === "response" && subject.phase === "request" ? "there is no response yet" : found(leaf, subject);
  const text =
    outcome === "needs-body"
      ? `${statement}: unknown, the body was not read`
      : compiled.exceededStepLimit?.(subject) === true
        ? `${statement}: the pattern exceeds the step limit on this text, which counts as no match`
        : `${statement}: no, ${because}`;
  return { outcome, pointer, text, parts: [] };
}

export function joinTexts(
  kind: "and" | "or" | "not",
  decision: MatchResult,
  pointer: string,
  parts: readonly Explanation[],
): Explanation {
  const outcome = outcomeOf(decision);
  const holding = parts.filter((part) => part.outcome === "holds").length;
  const text =
    kind === "not"
      ? `Negated: the condition ${WORDS[outcome]}`
      : kind === "and"
        ? `All of ${parts.length} must hold: ${holding} ${holding === 1 ? "does" : "do"}`
        : `One of ${parts.length} must hold: ${holding} ${holding === 1 ? "does" : "do"}`;
  return { outcome, pointer, text, parts };
}

const WORDS = { holds: "holds", fails: "does not hold", "needs-body": "is unknown without the body" } as const;

function found(leaf: Leaf, subject: MatchSubject): string {
  switch (leaf.type) {
    case "url_pattern":
      return `it is ${quoted(subject.url)}`;
    case "path_pattern":
      return `it is ${quoted(subject.path)}`;
    case "host":
      return `it is ${quoted(subject.host)}`;
    case "method":
      return `it is ${quoted(subject.method)}`;
    case "scheme":
      return `it is ${quoted(subject.scheme)}`;
    case "port":
      return `it is ${subject.port}`;
    case "path_segment": {
      const segment = pathSegment(subject.path, leaf.index);
      return segment === undefined ? "the path is shorter" : `it is ${quoted(segment)}`;
    }
    case "query_param":
    case "query_param_pattern":
      return listed(queryValues(subject.query, leaf.name));
    case "header":
    case "header_pattern":
      return listed(headerValues(subject, leaf.side ?? subject.phase, foldAscii(leaf.name)));
    case "content_type":
      return listed(headerValues(subject, leaf.side ?? subject.phase, "content-type"));
    case "body_pattern": {
      const text = bodyText(subject, leaf.side ?? subject.phase);
      return text === undefined ? "there is no text body" : "the body has no match";
    }
    case "json_path":
    case "json_path_pattern":
      return foundInJson(leaf.path, subject, leaf.side ?? subject.phase);
    case "status_code":
      return subject.status === undefined ? "there is no response yet" : `it is ${subject.status}`;
    default:
      return bodyJson(subject, "request") === undefined
        ? "the request body is not JSON"
        : "the request has other values";
  }
}

function foundInJson(path: string, subject: MatchSubject, side: MessageSide): string {
  const root = bodyJson(subject, side);
  if (root === undefined || root === NOT_READ) return "the body is not JSON";
  const parsed = parseJsonPath(path);
  return listed(
    parsed.ok
      ? selectJson(root, parsed.steps)
          .slice(0, MAX_LISTED + 1)
          .map(jsonText)
      : [],
  );
}

function jsonText(value: unknown): string {
  return typeof value === "object" && value !== null && !isNumeric(value)
    ? Array.isArray(value)
      ? "[…]"
      : "{…}"
    : JSON.stringify(value);
}

const MAX_LISTED = 5;

function listed(values: readonly string[]): string {
  if (values.length === 0) return "it does not exist";
  const shown = values.slice(0, MAX_LISTED).map(quoted).join(", ");
  return `it is ${shown}${values.length > MAX_LISTED ? " and more" : ""}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
