import { queryClient } from "../queries.ts";
import { attempt } from "../ui/attempt.ts";
import { isolatedName } from "../ui/isolated-name.ts";
import { toast } from "../ui/toast.tsx";
import type { ListedRule, RuleActions } from "./rule-columns.tsx";

interface RuleCalls<R> {
  /** First part of the query keys. */
  readonly topic: string;
  readonly toggle: (rule: R, enabled: boolean) => Promise<unknown>;
  readonly remove: (rule: R) => Promise<unknown>;
  /** Recreates a deleted rule. */
  readonly restore: (rule: R) => Promise<unknown>;
  readonly duplicate: (rule: R) => Promise<unknown>;
}

/** Enables, duplicates and deletes rules of a list; deletion can be undone. */
export function useRuleList<R extends ListedRule>(calls: RuleCalls<R>): Omit<RuleActions<R>, "edit" | "more"> {
  const refresh = () => queryClient.invalidateQueries({ queryKey: [calls.topic] });
  const act = async (what: string, action: () => Promise<unknown>): Promise<boolean> => {
    const done = await attempt(what, action);
    await refresh();
    return done;
  };
  const remove = async (rule: R): Promise<void> => {
    if (!(await act("Could not delete the rule", () => calls.remove(rule)))) return;
    toast({
      title: `${isolatedName(rule.name)} deleted`,
      durationMs: 8000,
      action: {
        label: "Undo",
        onSelect: () => void act("Could not restore the rule", () => calls.restore(rule)),
      },
    });
  };
  return {
    toggle: (rule, enabled) => void act("Could not switch the rule", () => calls.toggle(rule, enabled)),
    duplicate: (rule) => void act("Could not duplicate the rule", () => calls.duplicate(rule)),
    remove: (rule) => void remove(rule),
  };
}
