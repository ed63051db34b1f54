import type { RewriteRule } from "@headworks/capture-contract";
import { api } from "../../api.ts";
import { rewritesQuery } from "../../queries.ts";
import { conditionSentence } from "../../rules/condition-draft.ts";
import { copyName } from "../../rules/from-entry.ts";
import { RuleRow, RuleRows, useReordering, useRuleList } from "../../rules/rule-list.tsx";
import { actionWords } from "./rewrite-draft.ts";

function bodyOf({ name, condition, direction, rewrites, enabled, priority }: RewriteRule) {
  return { name, condition, direction, rewrites, enabled, priority };
}

const DIRECTIONS = { request: "requests", response: "responses", both: "both directions" } as const;

/** Rules in evaluation order; dragging, Alt with an arrow, or the menu reorders them. */
export function RewriteList({
  rules,
  chosenId,
  onShow,
}: {
  readonly rules: readonly RewriteRule[];
  readonly chosenId: string | null;
  readonly onShow: (rule: RewriteRule | null) => void;
}) {
  const actions = useRuleList<RewriteRule>({
    topic: "rewrites",
    toggle: (rule, enabled) => api.rewrites.toggleRewrite({ params: { id: rule.id }, body: { enabled } }),
    remove: async (rule) => {
      await api.rewrites.deleteRewrite({ params: { id: rule.id } });
      if (rule.id === chosenId) onShow(null);
    },
    restore: (rule) => api.rewrites.createRewrite({ body: bodyOf(rule) }),
    duplicate: (rule) => api.rewrites.createRewrite({ body: { ...bodyOf(rule), name: copyName(rule.name) } }),
  });
  const place = useReordering<RewriteRule>(rewritesQuery.queryKey, (rule, priority) =>
    api.rewrites.updateRewrite({ params: { id: rule.id }, body: { ...bodyOf(rule), priority } }),
  );
  return (
    <RuleRows label="Rewrites">
      {rules.map((rule) => {
        const { row, menu } = place(rule);
        return (
          <RuleRow
            key={rule.id}
            {...row}
            rule={rule}
            isChosen={rule.id === chosenId}
            lines={[
              `${conditionSentence(rule.condition)} · ${DIRECTIONS[rule.direction]}`,
              rule.rewrites.map(actionWords).join(" · "),
            ]}
            hits={{ count: rule.hit_count, title: "Matched requests" }}
            onToggle={(enabled) => actions.toggle(rule, enabled)}
            onShow={() => onShow(rule)}
            menu={() => [
              ...menu,
              { kind: "separator" },
              { kind: "item", label: "Duplicate", onSelect: () => actions.duplicate(rule) },
              { kind: "item", label: "Delete", danger: true, onSelect: () => actions.remove(rule) },
            ]}
          />
        );
      })}
    </RuleRows>
  );
}
