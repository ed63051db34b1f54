import {
  type NewScript,
  type Script,
  SCRIPT_HOOKS,
  type ScriptFilter,
  type ScriptHook,
  type ScriptMatch,
  type ScriptUpdate,
} from "@headworks/capture-contract";
import type { StoredRule } from "#rules/rule-table.ts";

export interface StoredScript extends StoredRule {
  readonly name: string;
  readonly description: string | null;
  readonly source: string;
  readonly hooks: readonly ScriptHook[];
  readonly priority: number;
  readonly matchFilter: ScriptFilter | null;
  readonly onError: Script["on_error"];
}

const DEFAULT_PRIORITY = 100;
const PRIORITY_STEP = 10;

/** `declaredHooks` are those whose functions the source declares. */
export function newScript(
  id: string,
  body: NewScript,
  declaredHooks: readonly ScriptHook[],
  nowMs: number,
): StoredScript {
  return {
    id,
    name: body.name.trim(),
    description: body.description ?? null,
    source: body.source,
    hooks: inHookOrder(body.hooks ?? declaredHooks),
    priority: body.priority ?? DEFAULT_PRIORITY,
    matchFilter: filterOf(body.match_filter),
    onError: body.on_error ?? "stop_chain",
    enabled: body.enabled ?? true,
    hitCount: 0,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
  };
}

/** Replaces what the body gives; `hooks` are the default for a body without them. */
export function updatedScript(
  script: StoredScript,
  body: ScriptUpdate,
  hooks: readonly ScriptHook[],
  nowMs: number,
): StoredScript {
  return {
    ...script,
    name: body.name?.trim() ?? script.name,
    description: body.description === undefined ? script.description : body.description,
    source: body.source ?? script.source,
    hooks: inHookOrder(body.hooks ?? hooks),
    priority: body.priority ?? script.priority,
    matchFilter: body.match_filter === undefined ? script.matchFilter : filterOf(body.match_filter),
    onError: body.on_error ?? script.onError,
    enabled: body.enabled ?? script.enabled,
    updatedAtMs: nowMs,
  };
}

/** A filter without patterns filters nothing. */
function filterOf(filter: ScriptFilter | null | undefined): ScriptFilter | null {
  return filter === null || filter === undefined || Object.keys(filter).length === 0 ? null : filter;
}

function inHookOrder(hooks: readonly ScriptHook[]): ScriptHook[] {
  return SCRIPT_HOOKS.filter((hook) => hooks.includes(hook));
}

export function hasSameHooks(left: readonly ScriptHook[], right: readonly ScriptHook[]): boolean {
  return left.length === right.length && left.every((hook) => right.includes(hook));
}

/** `problem`: why the source cannot run. */
export function showScript(script: StoredScript, problem: string | null): Script {
  return {
    ...showMatch(script),
    description: script.description,
    source: script.source,
    on_error: script.onError,
    created_at: new Date(script.createdAtMs).toISOString(),
    modified_at: new Date(script.updatedAtMs).toISOString(),
    problem,
  };
}

export function showMatch(script: StoredScript): ScriptMatch {
  return {
    id: script.id,
    name: script.name,
    priority: script.priority,
    enabled: script.enabled,
    hooks: [...script.hooks],
    ...(script.matchFilter === null ? {} : { match_filter: script.matchFilter }),
  };
}

/** The inverse of {@link showScript}. */
export function readScript(script: Script): StoredScript {
  return {
    ...newScript(script.id, script, [], Date.parse(script.created_at)),
    updatedAtMs: Date.parse(script.modified_at),
  };
}

/** By priority, then by creation, which is the order of the list. */
export function inRunOrder(scripts: readonly StoredScript[]): StoredScript[] {
  return scripts.toSorted((left, right) => left.priority - right.priority);
}

/** Scripts with new priorities after a move by one place; undefined at the end of the order. */
export function moved(
  scripts: readonly StoredScript[],
  id: string,
  direction: "up" | "down",
): readonly StoredScript[] | undefined {
  const order = inRunOrder(scripts);
  const from = order.findIndex((script) => script.id === id);
  const to = from + (direction === "up" ? -1 : 1);
  const [script, neighbor] = [order[from], order[to]];
  if (script === undefined || neighbor === undefined) return undefined;
  order[from] = neighbor;
  order[to] = script;
  return order.flatMap((each, index) => {
    const priority = DEFAULT_PRIORITY + index * PRIORITY_STEP;
    return each.priority === priority ? [] : [{ ...each, priority }];
  });
}
