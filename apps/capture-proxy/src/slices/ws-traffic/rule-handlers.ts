import { randomUUID } from "node:crypto";
import type { NewWsRule, WsRuleUpdate, wsTrafficOperations } from "@headworks/capture-contract";
import type { Handlers } from "@headworks/contract-kit";
import { notFound, validationError } from "#api/api-error.ts";
import type { HitCounter } from "#rules/hit-counter.ts";
import type { Clock } from "#slice.ts";
import { newWsRule, showWsRule, updatedWsRule, wsRuleIssues } from "./ws-rule.ts";
import type { StoredWsRule } from "./ws-rule.ts";
import type { WsTrafficStore } from "./ws-traffic.store.ts";

export interface RuleHandlersParts {
  readonly store: WsTrafficStore;
  readonly hits: HitCounter;
  readonly clock: Clock;
  /** The stored rules changed: compile them anew and tell others. */
  readonly onChange: () => void;
}

type RuleOperations = Pick<
  Handlers<typeof wsTrafficOperations>,
  "listWsRules" | "createWsRule" | "getWsRule" | "updateWsRule" | "deleteWsRule" | "toggleWsRule"
>;

/** Handlers of message rules. */
export function createRuleHandlers({ store, hits, clock, onChange }: RuleHandlersParts): RuleOperations {
  const find = (id: string): StoredWsRule => store.find(id) ?? notFound("message rule", id);
  const replace = (rule: StoredWsRule): StoredWsRule => {
    if (!store.update(rule)) return notFound("message rule", rule.id);
    onChange();
    return rule;
  };
  const show = (rule: StoredWsRule) => showWsRule(rule, hits.pending(rule.id));
  return {
    listWsRules: ({ query: { offset = 0, limit = 100 } }) => {
      const rules = store.list().reverse();
      const headers = { "x-total-count": String(rules.length) };
      return { status: 200, headers, body: rules.slice(offset, offset + limit).map(show) };
    },
    createWsRule: ({ body }) => {
      check(body);
      const rule = newWsRule(randomUUID(), body, clock.now());
      store.insert(rule);
      onChange();
      return { status: 201, body: { id: rule.id } };
    },
    getWsRule: ({ params }) => ({ status: 200, body: show(find(params.id)) }),
    updateWsRule: ({ params, body }) => {
      check(body);
      return { status: 200, body: show(replace(updatedWsRule(find(params.id), body, clock.now()))) };
    },
    deleteWsRule: ({ params }) => {
      if (!store.remove(params.id)) return notFound("message rule", params.id);
      hits.forget(params.id);
      onChange();
      return { status: 204 };
    },
    toggleWsRule: ({ params, body }) => {
      const rule = find(params.id);
      const enabled = body?.enabled ?? !rule.enabled;
      if (enabled !== rule.enabled) replace({ ...rule, enabled, updatedAtMs: clock.now() });
      return { status: 200, body: { id: rule.id, enabled } };
    },
  };
}

function check(body: NewWsRule | WsRuleUpdate): void {
  const issues = wsRuleIssues(body);
  if (issues.length > 0) throw validationError(issues.map(({ path, message }) => ({ path: `body${path}`, message })));
}
