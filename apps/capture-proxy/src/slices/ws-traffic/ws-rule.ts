import type { NewWsRule, WsRule, WsRuleAction, WsRuleMatch, WsRuleUpdate } from "@headworks/capture-contract";
import { validateHostPattern } from "@headworks/host-patterns";
import { checkPattern, compilePattern, readReplacement } from "@headworks/linear-pattern";

export interface StoredWsRule {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
  readonly match: WsRuleMatch;
  readonly action: WsRuleAction;
  readonly hitCount: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

const NAMES: Readonly<Record<WsRuleAction["type"], string>> = {
  replace: "Replace text",
  drop: "Drop",
  delay: "Delay",
  pause: "Pause",
};

function written(body: NewWsRule | WsRuleUpdate): Pick<StoredWsRule, "name" | "enabled" | "match" | "action"> {
  const { name, enabled = true, match = {}, action } = body;
  return { name: name ?? NAMES[action.type], enabled, match, action };
}

export function newWsRule(id: string, body: NewWsRule, nowMs: number): StoredWsRule {
  return { id, ...written(body), hitCount: 0, createdAtMs: nowMs, updatedAtMs: nowMs };
}

/** Replaces the writable fields; id, hits and creation time stay. */
export function updatedWsRule(rule: StoredWsRule, body: WsRuleUpdate, nowMs: number): StoredWsRule {
  const { id, hitCount, createdAtMs } = rule;
  return { id, ...written(body), hitCount, createdAtMs, updatedAtMs: nowMs };
}

/** `extraHits` are hits not persisted yet. */
export function showWsRule(rule: StoredWsRule, extraHits: number): WsRule {
  const { id, name, enabled, match, action, hitCount } = rule;
  return {
    id,
    name,
    enabled,
    match,
    action,
    hit_count: hitCount + extraHits,
    created_at: new Date(rule.createdAtMs).toISOString(),
    updated_at: new Date(rule.updatedAtMs).toISOString(),
  };
}

/** The inverse of {@link showWsRule}. */
export function readWsRule(rule: WsRule): StoredWsRule {
  return {
    id: rule.id,
    ...written(rule),
    hitCount: rule.hit_count,
    createdAtMs: Date.parse(rule.created_at),
    updatedAtMs: Date.parse(rule.updated_at),
  };
}

/** Checks beyond the schema; paths point into the rule. */
export function wsRuleIssues(rule: NewWsRule | WsRuleUpdate): { readonly path: string; readonly message: string }[] {
  const { match = {}, action } = rule;
  const issues: { path: string; message: string }[] = [];
  const host = match.host === undefined ? undefined : validateHostPattern(match.host);
  if (host !== undefined) issues.push({ path: "/match/host", message: host.replace(/\.$/, "") });
  for (const name of ["url", "text"] as const) {
    const problem = patternProblem(match[name]);
    if (problem !== undefined) issues.push({ path: `/match/${name}`, message: problem });
  }
  if (match.text !== undefined && match.message_type !== undefined && match.message_type !== "text") {
    issues.push({ path: "/match/text", message: "only text messages have text" });
  }
  if (action.type === "replace") issues.push(...replaceIssues(match, action));
  return issues;
}

function replaceIssues(
  match: WsRuleMatch,
  action: WsRuleAction & { type: "replace" },
): { readonly path: string; readonly message: string }[] {
  if (match.message_type !== undefined && match.message_type !== "text") {
    return [{ path: "/match/message_type", message: "only text messages have text to replace" }];
  }
  const problem = patternProblem(action.find);
  if (problem !== undefined) return [{ path: "/action/find", message: problem }];
  const find = action.find ?? match.text;
  if (find === undefined || patternProblem(find) !== undefined) return [];
  const check = readReplacement(action.replacement, compilePattern(find));
  return check.ok ? [] : [{ path: "/action/replacement", message: check.error.message }];
}

function patternProblem(source: string | undefined): string | undefined {
  if (source === undefined) return undefined;
  const check = checkPattern(source);
  return check.ok ? undefined : check.error.message;
}
