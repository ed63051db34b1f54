import { compileCondition, compileConditionSet } from "@headworks/match-condition";
import type { CompiledCondition, ConditionSet } from "@headworks/match-condition";
import type { StoredBreakpoint } from "./breakpoint-rule.ts";
import type { PausingRule } from "./paused-exchanges.ts";

/** An enabled rule, ready to be asked. */
export interface CompiledBreakpoint extends PausingRule {
  readonly condition: CompiledCondition;
}

/** The enabled rules by phase, in the order in which they are asked; immutable, replaced whole on every change. */
export interface BreakpointRules {
  readonly atRequest: ConditionSet<CompiledBreakpoint>;
  readonly atResponse: ConditionSet<CompiledBreakpoint>;
  /** A rule for answers may ask for the request's body, which is gone by then unless it was kept. */
  readonly keepsRequestBodies: boolean;
  /** Stored rules that cannot be read: they pause nothing, which must not stay unnoticed. */
  readonly issues: readonly { readonly rule: string; readonly issue: string }[];
}

/** Compiles rules, oldest first: of several that match the one with the lowest priority decides, the oldest of equals. */
export function compileBreakpoints(rules: readonly StoredBreakpoint[]): BreakpointRules {
  const issues: { rule: string; issue: string }[] = [];
  const compiled: (CompiledBreakpoint & { readonly direction: StoredBreakpoint["direction"] })[] = [];
  for (const rule of rules.filter(({ enabled }) => enabled).toSorted((a, b) => a.priority - b.priority)) {
    const { id, name, timeoutSecs, direction } = rule;
    try {
      compiled.push({ id, name, timeoutSecs, direction, condition: compileCondition(rule.condition) });
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      issues.push({ rule: id, issue: error.message });
    }
  }
  const atRequest = compiled.filter(({ direction }) => direction !== "response");
  const atResponse = compiled.filter(
    ({ direction, condition }) => direction !== "request" && condition.atResponse.possible,
  );
  return {
    atRequest: compileConditionSet(atRequest, ({ condition }) => condition),
    atResponse: compileConditionSet(atResponse, ({ condition }) => condition),
    keepsRequestBodies: atResponse.some(({ condition }) => condition.atResponse.request),
    issues,
  };
}
