import type { Breakpoint, BreakpointUpdate, Condition, NewBreakpoint } from "@headworks/capture-contract";
import { readJson } from "@headworks/json";
import { describeCondition, parseCondition } from "@headworks/match-condition";
import { RuleTable } from "#rules/rule-table.ts";
import type { Database } from "#storage/database.ts";

const DEFAULT_PRIORITY = 100;

/** A rule as stored: times in milliseconds, defaults filled in. */
export interface StoredBreakpoint {
  readonly id: string;
  readonly name: string;
  readonly condition: Condition;
  readonly direction: Breakpoint["direction"];
  readonly enabled: boolean;
  readonly priority: number;
  readonly timeoutSecs: number | null;
  readonly hitCount: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

/** Writable fields with defaults filled in. */
function written(
  body: NewBreakpoint | BreakpointUpdate,
  condition: Condition,
): Omit<StoredBreakpoint, "id" | "hitCount" | "createdAtMs" | "updatedAtMs"> {
  return {
    name: body.name?.trim() ?? nameOf(condition),
    condition,
    direction: body.direction ?? "both",
    enabled: body.enabled ?? true,
    priority: body.priority ?? DEFAULT_PRIORITY,
    timeoutSecs: body.timeout_secs ?? null,
  };
}

export function newBreakpoint(id: string, body: NewBreakpoint, condition: Condition, nowMs: number): StoredBreakpoint {
  return { id, ...written(body, condition), hitCount: 0, createdAtMs: nowMs, updatedAtMs: nowMs };
}

/** Replaces the writable fields; id, hits and creation time stay. */
export function updatedBreakpoint(
  rule: StoredBreakpoint,
  body: BreakpointUpdate,
  condition: Condition,
  nowMs: number,
): StoredBreakpoint {
  const { id, hitCount, createdAtMs } = rule;
  return { id, ...written(body, condition), hitCount, createdAtMs, updatedAtMs: nowMs };
}

const MAX_NAME_LENGTH = 120;

/** The default name of a rule: its condition, shortened. */
function nameOf(condition: Condition): string {
  const text = describeCondition(condition);
  return text.length <= MAX_NAME_LENGTH ? text : `${text.slice(0, MAX_NAME_LENGTH - 1)}…`;
}

/** The wire form; `extraHits` are not persisted yet. */
export function showBreakpoint(rule: StoredBreakpoint, extraHits: number): Breakpoint {
  return {
    id: rule.id,
    name: rule.name,
    condition: rule.condition,
    direction: rule.direction,
    enabled: rule.enabled,
    priority: rule.priority,
    timeout_secs: rule.timeoutSecs,
    hit_count: rule.hitCount + extraHits,
    device_id: null,
    created_at: new Date(rule.createdAtMs).toISOString(),
    updated_at: new Date(rule.updatedAtMs).toISOString(),
  };
}

/** Checks beyond the schema; paths are JSON pointers into the rule. */
export function breakpointIssues(rule: Breakpoint): readonly { readonly path: string; readonly message: string }[] {
  const parsed = parseCondition(rule.condition, "/condition");
  return parsed.ok ? [] : parsed.issues;
}

/** The inverse of {@link showBreakpoint}. */
export function readBreakpoint(rule: Breakpoint): StoredBreakpoint {
  const { id, hit_count: hitCount, created_at: createdAt, updated_at: updatedAt } = rule;
  return {
    id,
    ...written(rule, rule.condition),
    hitCount,
    createdAtMs: Date.parse(createdAt),
    updatedAtMs: Date.parse(updatedAt),
  };
}

export type BreakpointsStore = RuleTable<StoredBreakpoint>;

export function createBreakpointsStore(database: Database): BreakpointsStore {
  return new RuleTable(database, {
    table: "breakpoints",
    columns: {
      name: ({ name }) => name,
      condition: ({ condition }) => JSON.stringify(condition),
      direction: ({ direction }) => direction,
      priority: ({ priority }) => priority,
      timeout_secs: ({ timeoutSecs }) => timeoutSecs,
    },
    read: (row) => ({
      name: String(row["name"]),
      condition: readJson(String(row["condition"])) as unknown as Condition,
      direction: String(row["direction"]) as StoredBreakpoint["direction"],
      priority: Number(row["priority"]),
      timeoutSecs: row["timeout_secs"] === null ? null : Number(row["timeout_secs"]),
    }),
  });
}
