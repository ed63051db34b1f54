import { compileCondition, compileConditionSet } from "@headworks/match-condition";
import type { CompiledCondition, ConditionSet } from "@headworks/match-condition";
import type { StoredBreakpoint } from "./breakpoint-rule.ts";
import type { PausingRule } from "./paused-exchanges.ts";

export interface CompiledBreakpoint extends PausingRule {
  readonly condition: CompiledCondition;
}

/** Enabled rules by phase, in evaluation order; immutable, replaced on every change. */
export interface BreakpointRules {
  readonly atRequest: ConditionSet<CompiledBreakpoint>;
  readonly atResponse: ConditionSet<CompiledBreakpoint>;
  /** A rule for responses matches on the request body, so request bodies must be kept. */
  readonly keepsRequestBodies: boolean;
  /** Stored rules that cannot be compiled and therefore pause nothing. */
  readonly issues: readonly { readonly rule: string; readonly issue: string }[];
}

/** Compiles rules, oldest first: the lowest priority wins, the oldest among equals. */
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
