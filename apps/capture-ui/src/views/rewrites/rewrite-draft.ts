import type { Condition, NewRewriteRule, RewriteRule } from "@headworks/capture-contract";
import { conditionForRequest, nameForRequest, type RequestLine } from "../../rules/from-entry.ts";
import { actionOf, draftOfAction, newAction, type ActionDraft } from "./action-draft.ts";

export interface RewriteDraft {
  readonly name: string;
  readonly condition: Condition;
  readonly direction: RewriteRule["direction"];
  readonly actions: readonly ActionDraft[];
  readonly priority: string;
}

export function newRewrite(): RewriteDraft {
  return { name: "", condition: { type: "all" }, direction: "request", actions: [newAction()], priority: "100" };
}

/** A rule for similar requests. */
export function rewriteFromEntry(request: RequestLine): RewriteDraft {
  return { ...newRewrite(), name: `Rewrite ${nameForRequest(request)}`, condition: conditionForRequest(request) };
}

export function draftOfRule(rule: RewriteRule): RewriteDraft {
  return {
    name: rule.name,
    condition: rule.condition,
    direction: rule.direction,
    actions: rule.rewrites.map(draftOfAction),
    priority: String(rule.priority),
  };
}

/** The rule of a draft, or its problems by step. */
export function ruleOf(
  draft: RewriteDraft,
  condition: Condition | null,
):
  | { readonly ok: true; readonly rule: NewRewriteRule }
  | { readonly ok: false; readonly message: string; readonly problems: ReadonlyMap<number, string> } {
  const problems = new Map<number, string>();
  const rewrites = draft.actions.flatMap((each) => {
    const result = actionOf(each);
    if (result.ok) return [result.action];
    problems.set(each.key, result.message);
    return [];
  });
  const message =
    draft.name.trim() === ""
      ? "Enter a name"
      : condition === null
        ? "Complete the condition"
        : draft.actions.length === 0
          ? "Add a step"
          : !/^-?\d{1,7}$/u.test(draft.priority.trim())
            ? "Priority must be a number"
            : problems.size > 0
              ? "Complete each step"
              : null;
  if (message !== null || condition === null) return { ok: false, message: message ?? "", problems };
  return {
    ok: true,
    rule: {
      name: draft.name.trim(),
      condition,
      direction: draft.direction,
      rewrites,
      priority: Number(draft.priority),
    },
  };
}
