import type { Condition } from "@headworks/capture-contract";
import { Copy, MoreHorizontal, Pencil, Trash2 } from "lucide-react";
import type { ReactNode } from "react";
import { IconButton } from "../ui/button.tsx";
import { Switch } from "../ui/field.tsx";
import { formatCount } from "../ui/format.ts";
import { isolatedName } from "../ui/isolated-name.ts";
import type { ListColumn } from "../ui/list-table.tsx";
import { Menu, type MenuEntry } from "../ui/menu.tsx";
import { conditionSentence } from "./condition-sentence.ts";
import styles from "./rule-columns.module.css";

/** Fields common to all kinds of rules. */
export interface ListedRule {
  readonly id: string;
  readonly name: string;
  readonly condition: Condition;
  readonly enabled: boolean;
  readonly priority: number;
  readonly hit_count: number;
}

export interface RuleActions<R> {
  readonly toggle: (rule: R, enabled: boolean) => void;
  readonly edit: (rule: R) => void;
  readonly duplicate: (rule: R) => void;
  readonly remove: (rule: R) => void;
  readonly more?: (rule: R) => readonly MenuEntry[];
}

/** Columns common to all rule lists; `between` holds those of the kind. */
export function ruleColumns<R extends ListedRule>({
  actions,
  between = [],
  mark,
}: {
  readonly actions: RuleActions<R>;
  readonly between?: readonly ListColumn<R>[];
  /** Mark beside the name. */
  readonly mark?: (rule: R) => ReactNode;
}): readonly ListColumn<R>[] {
  return [
    {
      title: "On",
      kind: "switch",
      cell: (rule) => (
        <span className={styles["switch"]}>
          <Switch
            aria-label={`Enable ${isolatedName(rule.name)}`}
            checked={rule.enabled}
            onChange={(enabled) => actions.toggle(rule, enabled)}
          />
        </span>
      ),
    },
    {
      title: "Rule",
      cell: (rule) => (
        <>
          <button type="button" className={styles["name"]} onClick={() => actions.edit(rule)}>
            {rule.name}
          </button>
          {mark?.(rule)}
          <div className={styles["condition"]}>{conditionSentence(rule.condition)}</div>
        </>
      ),
    },
    ...between,
    { title: "Priority", kind: "number", from: "wide", cell: (rule) => rule.priority },
    { title: "Hits", kind: "number", cell: (rule) => formatCount(rule.hit_count) },
    {
      title: "Actions",
      kind: "actions",
      cell: (rule) => (
        <span className={styles["actions"]}>
          <IconButton
            label={`Edit ${isolatedName(rule.name)}`}
            icon={<Pencil size={14} />}
            onClick={() => actions.edit(rule)}
          />
          <Menu
            align="end"
            trigger={
              <IconButton label={`More actions for ${isolatedName(rule.name)}`} icon={<MoreHorizontal size={15} />} />
            }
            items={() => [
              {
                kind: "item",
                label: "Duplicate",
                icon: <Copy size={14} />,
                onSelect: () => actions.duplicate(rule),
              },
              ...(actions.more?.(rule) ?? []),
              { kind: "separator" },
              {
                kind: "item",
                label: "Delete",
                icon: <Trash2 size={14} />,
                danger: true,
                onSelect: () => actions.remove(rule),
              },
            ]}
          />
        </span>
      ),
    },
  ];
}
