// Tested by rewrites.interceptor.test.ts
import {
  compileCondition,
  compileConditionSet,
  type CompiledCondition,
  type ConditionSet,
} from "@headworks/match-condition";
import type { MappedFiles } from "./mapped-files.ts";
import type { StoredRewrite } from "./rewrite-rule.ts";
import { compileAction } from "./rewrite-actions.ts";
import type { Apply } from "./rewrite-actions.ts";

/** A rule for one phase. */
export interface CompiledRule {
  readonly id: string;
  readonly name: string;
  readonly condition: CompiledCondition;
  readonly actions: readonly Apply[];
  /** Its place among the rules of its phase. */
  readonly order: number;
}

/** The enabled rules in the order in which they run; immutable, replaced whole on every change. */
export interface RewriteRules {
  readonly request: ConditionSet<CompiledRule>;
  readonly response: ConditionSet<CompiledRule>;
  /** A rule for answers asks for the request's body, which has passed by then. */
  readonly keepsRequestBody: boolean;
  /** Stored rules that cannot be read: they change nothing, which must not stay unnoticed. */
  readonly issues: readonly { readonly rule: string; readonly issue: string }[];
}

/** Compiles rules given oldest first. `onlyEnabled: false` takes the disabled ones too, for a dry run. */
export function compileRewriteRules(
  rules: readonly StoredRewrite[],
  files: MappedFiles,
  options: { readonly onlyEnabled: boolean } = { onlyEnabled: true },
): RewriteRules {
  const request: CompiledRule[] = [];
  const response: CompiledRule[] = [];
  const issues: { rule: string; issue: string }[] = [];
  const inOrder = rules
    .filter((rule) => rule.enabled || !options.onlyEnabled)
    .toSorted((one, other) => one.priority - other.priority);
  for (const rule of inOrder) {
    try {
      const { id, name, direction } = rule;
      const condition = compileCondition(rule.condition);
      const actions = rule.actions.map((action) => compileAction(action, files));
      const forRequests = actions.flatMap(({ request: apply }) => apply ?? []);
      const forAnswers = actions.flatMap(({ response: apply }) => apply ?? []);
      if (direction !== "response" && forRequests.length > 0 && condition.atRequest.possible) {
        request.push({ id, name, condition, actions: forRequests, order: request.length });
      }
      if (direction !== "request" && forAnswers.length > 0 && condition.atResponse.possible) {
        response.push({ id, name, condition, actions: forAnswers, order: response.length });
      }
    } catch (error) {
      issues.push({ rule: rule.id, issue: (error as Error).message });
    }
  }
  return {
    request: compileConditionSet(request, (rule) => rule.condition),
    response: compileConditionSet(response, (rule) => rule.condition),
    keepsRequestBody: response.some(({ condition }) => condition.atResponse.request),
    issues,
  };
}
