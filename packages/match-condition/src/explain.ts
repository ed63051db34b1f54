import type { MessageSide } from "@headworks/capture-contract";
import { isNumeric, parseJsonPath, selectJson } from "@headworks/json";
import { foldAscii } from "@headworks/query-language";
import type { Decision, Explanation } from "./compiled.ts";
import { leafPhrase, quoted } from "./describe.ts";
import type { CompiledLeaf, Leaf } from "./leaves.ts";
import { bodyJson, bodyText, headerValues, pathSegment, queryValues } from "./material.ts";
import { NOT_READ, type MatchSubject } from "./subject.ts";

const OUTCOMES = { true: "holds", false: "fails", "needs-body": "needs-body" } as const;

function outcomeOf(decision: Decision): Explanation["outcome"] {
  return OUTCOMES[`${decision}`];
}

export function explainLeaf(
  leaf: Leaf,
  compiled: CompiledLeaf,
  subject: MatchSubject,
  decision: Decision,
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
      : compiled.gaveUp?.(subject) === true
        ? `${statement}: the pattern exceeds the step limit on this text, which counts as no match`
        : `${statement}: no, ${because}`;
  return { outcome, pointer, text, parts: [] };
}

export function joinTexts(
  kind: "and" | "or" | "not",
  decision: Decision,
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
