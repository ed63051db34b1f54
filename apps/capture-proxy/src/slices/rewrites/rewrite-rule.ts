import type {
  Condition,
  NewRewriteRule,
  RewriteAction,
  RewriteRule,
  RewriteRuleUpdate,
} from "@headworks/capture-contract";

export type Direction = RewriteRule["direction"];

export interface StoredRewrite {
  readonly id: string;
  readonly name: string;
  readonly condition: Condition;
  readonly direction: Direction;
  readonly actions: readonly RewriteAction[];
  readonly enabled: boolean;
  readonly priority: number;
  readonly hitCount: number;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
}

const DEFAULT_PRIORITY = 100;

function written(
  body: NewRewriteRule | RewriteRuleUpdate,
  condition: Condition,
): Omit<StoredRewrite, "id" | "hitCount" | "createdAtMs" | "updatedAtMs"> {
  return {
    name: body.name.trim(),
    condition,
    direction: body.direction,
    actions: body.rewrites,
    enabled: body.enabled ?? true,
    priority: body.priority ?? DEFAULT_PRIORITY,
  };
}

export function newRewrite(id: string, body: NewRewriteRule, condition: Condition, nowMs: number): StoredRewrite {
  return { id, ...written(body, condition), hitCount: 0, createdAtMs: nowMs, updatedAtMs: nowMs };
}

/** Replaces the writable fields; id, hits and creation time stay. */
export function updatedRewrite(
  rule: StoredRewrite,
  body: RewriteRuleUpdate,
  condition: Condition,
  nowMs: number,
): StoredRewrite {
  const { id, hitCount, createdAtMs } = rule;
  return { id, ...written(body, condition), hitCount, createdAtMs, updatedAtMs: nowMs };
}

/** `extraHits` are hits not persisted yet. */
export function showRewrite(rule: StoredRewrite, extraHits: number): RewriteRule {
  return {
    id: rule.id,
    name: rule.name,
    condition: rule.condition,
    direction: rule.direction,
    rewrites: [...rule.actions],
    enabled: rule.enabled,
    priority: rule.priority,
    hit_count: rule.hitCount + extraHits,
    device_id: null,
    created_at: new Date(rule.createdAtMs).toISOString(),
    updated_at: new Date(rule.updatedAtMs).toISOString(),
  };
}

/** The inverse of {@link showRewrite}. */
export function readRewrite(rule: RewriteRule): StoredRewrite {
  return {
    id: rule.id,
    ...written(rule, rule.condition),
    hitCount: rule.hit_count,
    createdAtMs: Date.parse(rule.created_at),
    updatedAtMs: Date.parse(rule.updated_at),
  };
}
