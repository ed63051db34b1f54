import type { RewriteRule } from "@headworks/capture-contract";
import { GripVertical } from "lucide-react";
import { useState } from "react";
import type { DragEvent } from "react";
import { api } from "../../api.ts";
import { queryClient } from "../../queries.ts";
import { conditionSentence } from "../../rules/condition-draft.ts";
import { copyName } from "../../rules/from-entry.ts";
import { reordered } from "../../rules/rule-order.ts";
import { RuleRow, RuleRows, useRuleList } from "../../rules/rule-list.tsx";
import { attempt } from "../../ui/toast.tsx";
import { actionWords } from "./rewrite-draft.ts";
import styles from "./rewrites.module.css";

function bodyOf({ name, condition, direction, rewrites, enabled, priority }: RewriteRule) {
  return { name, condition, direction, rewrites, enabled, priority };
}

const DIRECTIONS = { request: "requests", response: "responses", both: "both directions" } as const;

/** Rules in evaluation order; dragging or the menu reorders them. */
export function RewriteList({
  rules,
  chosenId,
  onShow,
}: {
  readonly rules: readonly RewriteRule[];
  readonly chosenId: string | null;
  readonly onShow: (rule: RewriteRule | null) => void;
}) {
  const [dragged, setDragged] = useState<string | null>(null);
  const [over, setOver] = useState<string | null>(null);
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
  const move = async (id: string, before: string | null): Promise<void> => {
    await attempt("Could not change the order", async () => {
      for (const { rule, priority } of reordered(rules, id, before)) {
        await api.rewrites.updateRewrite({ params: { id: rule.id }, body: { ...bodyOf(rule), priority } });
      }
    });
    await queryClient.invalidateQueries({ queryKey: ["rewrites"] });
  };
  const drop = (event: DragEvent, before: string | null): void => {
    event.preventDefault();
    if (dragged !== null) void move(dragged, before);
    setDragged(null);
    setOver(null);
  };
  return (
    <RuleRows label="Rewrites">
      {rules.map((rule, index) => (
        <RuleRow
          key={rule.id}
          rule={rule}
          isChosen={rule.id === chosenId}
          lines={[
            `${conditionSentence(rule.condition)} · ${DIRECTIONS[rule.direction]}`,
            rule.rewrites.map(actionWords).join(" · "),
          ]}
          before={<GripVertical size={14} className={styles["gripper"]} aria-hidden />}
          hitsTitle="Matched requests"
          onToggle={(enabled) => actions.toggle(rule, enabled)}
          onShow={() => onShow(rule)}
          menu={() => [
            {
              kind: "item",
              label: "Move up",
              disabled: index === 0,
              onSelect: () => void move(rule.id, rules[index - 1]?.id ?? null),
            },
            {
              kind: "item",
              label: "Move down",
              disabled: index === rules.length - 1,
              onSelect: () => void move(rule.id, rules[index + 2]?.id ?? null),
            },
            { kind: "separator" },
            { kind: "item", label: "Duplicate", onSelect: () => actions.duplicate(rule) },
            { kind: "item", label: "Delete", danger: true, onSelect: () => actions.remove(rule) },
          ]}
          data-over={over === rule.id || undefined}
          data-dragged={dragged === rule.id || undefined}
          draggable
          onDragStart={(event) => {
            event.dataTransfer.effectAllowed = "move";
            event.dataTransfer.setData("text/plain", rule.name);
            setDragged(rule.id);
          }}
          onDragOver={(event) => {
            if (dragged === null) return;
            event.preventDefault();
            setOver(rule.id);
          }}
          onDragEnd={() => {
            setDragged(null);
            setOver(null);
          }}
          onDrop={(event) => drop(event, insertBefore(rules, dragged, index))}
        />
      ))}
    </RuleRows>
  );
}

/** Dropping on a lower rule inserts after it, on a higher one before it. */
function insertBefore(rules: readonly RewriteRule[], dragged: string | null, index: number): string | null {
  const from = rules.findIndex((rule) => rule.id === dragged);
  return rules[from !== -1 && from < index ? index + 1 : index]?.id ?? null;
}
