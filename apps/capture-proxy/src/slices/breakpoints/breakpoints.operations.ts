import { randomUUID } from "node:crypto";
import type {
  BreakpointUpdate,
  Condition,
  NewBreakpoint,
  PauseAll,
  breakpointsOperations,
} from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { parseRuleCondition } from "@headworks/match-condition";
import { notFound, validationError } from "#api/api-error.ts";
import { CONTINUE } from "#exchange/phases.ts";
import type { Verdict } from "#exchange/phases.ts";
import type { HitCounter } from "#rules/hit-counter.ts";
import type { Clock } from "#slice.ts";
import { newBreakpoint, showBreakpoint, updatedBreakpoint } from "./breakpoint-rule.ts";
import type { StoredBreakpoint } from "./breakpoint-rule.ts";
import type { BreakpointsStore } from "./breakpoints.store.ts";
import { parseDecision } from "./decision.ts";
import { PAUSE_ALL } from "./pause-all.ts";
import type { PauseAllSwitch } from "./pause-all.ts";
import { leaveTrace } from "./paused-exchanges.ts";
import type { Paused, PausedExchanges } from "./paused-exchanges.ts";
import { showPaused } from "./paused-item.ts";
import { prepare } from "./resume.ts";
import type { PreparedDecision } from "./resume.ts";

export interface BreakpointsOperationsParts {
  readonly store: BreakpointsStore;
  readonly hits: HitCounter;
  readonly paused: PausedExchanges;
  readonly pauseAll: PauseAllSwitch;
  readonly clock: Clock;
  readonly bodyLimitBytes: () => number;
  /** The stored rules changed: compile them anew and tell others. */
  readonly onChange: () => void;
}

type All = Handlers<typeof breakpointsOperations>;
type RuleOperation =
  | "listBreakpoints"
  | "createBreakpoint"
  | "getBreakpoint"
  | "updateBreakpoint"
  | "deleteBreakpoint"
  | "toggleBreakpoint";

/** Handlers of the breakpoints' operations. */
export function createBreakpointsOperations(parts: BreakpointsOperationsParts): All {
  return { ...ruleOperations(parts), ...pausedOperations(parts) };
}

const DEFAULT_LIMIT = 100;
const DEFAULT_HOLD_SECS = 60;

function ruleOperations({ store, hits, clock, onChange }: BreakpointsOperationsParts): Pick<All, RuleOperation> {
  const find = (id: string): StoredBreakpoint => store.find(id) ?? notFound("breakpoint", id);
  const replace = (rule: StoredBreakpoint): StoredBreakpoint => {
    if (!store.update(rule)) return notFound("breakpoint", rule.id);
    onChange();
    return rule;
  };
  const show = (rule: StoredBreakpoint) => showBreakpoint(rule, hits.pending(rule.id));
  return {
    listBreakpoints: ({ query }) => {
      const rules = store.list().reverse();
      const { offset = 0, limit = DEFAULT_LIMIT } = query;
      const headers = { "x-total-count": String(rules.length) };
      return { status: 200, headers, body: rules.slice(offset, offset + limit).map(show) };
    },
    createBreakpoint: ({ body }) => {
      const rule = newBreakpoint(randomUUID(), body, writtenCondition(body), clock.now());
      store.insert(rule);
      onChange();
      return { status: 201, body: { id: rule.id } };
    },
    getBreakpoint: ({ params }) => ({ status: 200, body: show(find(params.id)) }),
    updateBreakpoint: ({ params, body }) => {
      const rule = find(params.id);
      return { status: 200, body: show(replace(updatedBreakpoint(rule, body, writtenCondition(body), clock.now()))) };
    },
    deleteBreakpoint: ({ params }) => {
      if (!store.remove(params.id)) return notFound("breakpoint", params.id);
      hits.forget(params.id);
      onChange();
      return { status: 204 };
    },
    toggleBreakpoint: ({ params, body }) => {
      const rule = find(params.id);
      const enabled = body?.enabled ?? !rule.enabled;
      if (enabled !== rule.enabled) replace({ ...rule, enabled, updatedAtMs: clock.now() });
      return { status: 200, body: { id: rule.id, enabled } };
    },
  };
}

function writtenCondition(body: NewBreakpoint | BreakpointUpdate): Condition {
  const parsed = parseRuleCondition(body, "body");
  if (!parsed.ok) throw validationError(parsed.issues);
  return parsed.condition;
}

function pausedOperations(parts: BreakpointsOperationsParts): Omit<All, RuleOperation> {
  const { paused, pauseAll, clock, bodyLimitBytes } = parts;
  const shown = (withBodies: boolean, position: number) => ({
    withBodies,
    position,
    bodyLimitBytes: bodyLimitBytes(),
  });
  const showPauseAll = (): PauseAll => ({ ...pauseAll.shown(), paused_count: paused.count });
  return {
    listPausedItems: async ({ query }) => {
      const withBodies = query.include_bodies === "true";
      const items = paused.list().map((item, index) => showPaused(item, shown(withBodies, index + 1)));
      return { status: 200, body: (await Promise.all(items)).reverse() };
    },
    getPausedItem: async ({ params }) => {
      const item = paused.find(params.id) ?? notFound("paused item", params.id);
      return { status: 200, body: await showPaused(item, shown(true, paused.positionOf(item.id))) };
    },
    resumePausedItem: async ({ params, body }) => {
      const decision = parseDecision(body);
      const item = paused.find(params.id) ?? notFound("paused item", params.id);
      const prepared = await prepare(item, decision, { bodyLimitBytes: bodyLimitBytes() });
      // It may have ended meanwhile, by somebody else's decision too.
      const decide = paused.take(item.id) ?? notFound("paused item", params.id);
      const carryOut = (): void => decide(verdictOf(item, prepared));
      if (prepared.delayMs === 0) carryOut();
      else clock.after(prepared.delayMs, carryOut);
      return { status: 200, body: { id: item.id, action: decision.action } };
    },
    holdPausedItem: ({ params, body }) => {
      const item = paused.hold(params.id, (body?.seconds ?? DEFAULT_HOLD_SECS) * 1000);
      if (item === undefined) return notFound("paused item", params.id);
      const deadline = item.deadlineMs === undefined ? null : new Date(item.deadlineMs).toISOString();
      return { status: 200, body: { id: item.id, deadline } };
    },
    getPauseAll: () => ({ status: 200, body: showPauseAll() }),
    pauseAll: ({ body }) => {
      pauseAll.set(body ?? {});
      return { status: 200, body: showPauseAll() };
    },
    resumeAll: ({ body }) => ({ status: 200, body: { resumed_count: resumeAll(parts, body ?? {}) } }),
  };
}

/** The exchange may have failed while its decision was held back. */
function verdictOf({ exchange }: Paused, prepared: PreparedDecision): Verdict {
  return exchange.state.step === "paused" ? prepared.carryOut() : CONTINUE;
}

function resumeAll(
  { store, paused, pauseAll, clock, onChange }: BreakpointsOperationsParts,
  { rule_id: ruleId, disable = false }: { rule_id?: string; disable?: boolean },
): number {
  const items = paused.list().filter(({ rule }) => ruleId === undefined || rule.id === ruleId);
  const rule = ruleId === undefined ? undefined : store.find(ruleId);
  if (ruleId !== undefined && ruleId !== PAUSE_ALL && rule === undefined && items.length === 0) {
    return notFound("breakpoint", ruleId);
  }
  if (ruleId === undefined || (disable && ruleId === PAUSE_ALL)) pauseAll.set({ enabled: false });
  if (disable) {
    const named = rule === undefined ? [] : [rule];
    const concerned = ruleId === undefined ? store.list().filter(({ enabled }) => enabled) : named;
    store.updateAll(concerned.map((one) => ({ ...one, enabled: false, updatedAtMs: clock.now() })));
    onChange();
  }
  for (const item of items) {
    leaveTrace(item, []);
    paused.take(item.id)?.(CONTINUE);
  }
  return items.length;
}
