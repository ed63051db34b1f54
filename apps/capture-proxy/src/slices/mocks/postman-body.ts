// Tested by import-warnings.test.ts
import type { Condition } from "@headworks/capture-contract";
import { isSameJson, readJson } from "@headworks/json";
import { escapedPattern } from "./captured-mock.ts";
import { member, membersOf, textOf } from "./imported-mocks.ts";
import type { Members } from "./imported-mocks.ts";

export interface SentBody {
  /** Equal for equal bodies; empty without one. */
  readonly key: string;
  /** Matches only this body; undefined when no condition can. */
  readonly condition: Condition | undefined;
}

/** Replaces known variables. */
export function filledIn(text: string, variables: ReadonlyMap<string, string>): string {
  return text.replace(/\{\{([^{}]*)\}\}/g, (whole, name: string) => variables.get(name.trim()) ?? whole);
}

/**
 * Reads the member `body` of a request. Forms and files have no condition, since clients may encode them in many forms.
 */
export function sentBody(body: unknown, variables: ReadonlyMap<string, string>): SentBody {
  const members = membersOf(body);
  const mode = textOf(member(members, "mode")) ?? "";
  const content = member(members, mode);
  if ((content ?? "") === "" || member(members, "disabled") === true) {
    return { key: "", condition: undefined };
  }
  const key = filledIn(JSON.stringify([mode, content]), variables);
  if (key.includes("{{")) return { key, condition: undefined };
  const text = mode === "raw" ? textOf(content) : undefined;
  if (text !== undefined) return { key, condition: rawCondition(filledIn(text, variables)) };
  if (mode === "graphql") return { key, condition: graphqlCondition(membersOf(content), variables) };
  return { key, condition: undefined };
}

function rawCondition(text: string): Condition {
  const value = jsonOf(text);
  if (value !== undefined) return { type: "json_path", path: "$", value };
  return { type: "body_pattern", pattern: `^${escapedPattern(text)}$` };
}

function graphqlCondition(content: Members | undefined, variables: ReadonlyMap<string, string>): Condition | undefined {
  const query = textOf(member(content, "query"));
  if (query === undefined) return undefined;
  const asked: Condition = { type: "json_path", path: "$.query", value: filledIn(query, variables) };
  const written = textOf(member(content, "variables"))?.trim() ?? "";
  if (written === "") return asked;
  const value = jsonOf(filledIn(written, variables));
  if (value === undefined) return undefined;
  return { type: "and", conditions: [asked, { type: "json_path", path: "$.variables", value }] };
}

/** Undefined for invalid JSON, and for numbers that would lose digits. */
function jsonOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return isSameJson(value, readJson(text)) ? value : undefined;
  } catch {
    return undefined;
  }
}
