import type { Condition } from "@headworks/capture-contract";
import type { Leaf } from "./leaves.ts";

/** The two halves of a sentence about a leaf. */
export interface LeafPhrase {
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

export function quoted(text: string): string {
  return text.length > MAX_QUOTED_LENGTH ? `\`${text.slice(0, MAX_QUOTED_LENGTH)}…\`` : `\`${text}\``;
}
