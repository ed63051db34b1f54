import type { Condition } from "@headworks/capture-contract";
import type { UseQueryResult } from "@tanstack/react-query";
import { Copy, MoreHorizontal, Pencil, Trash2 } from "lucide-react";
import { type ComponentPropsWithRef, type ReactNode, useState } from "react";
import { queryClient } from "../queries.ts";
import { SplitPane, useNarrow } from "../ui/split-pane.tsx";
import { attempt, toast } from "../ui/toast.tsx";
import { IconButton } from "../ui/button.tsx";
import { Switch } from "../ui/field.tsx";
import { formatCount, isolatedName } from "../ui/format.ts";
import { type ListColumn, useRowFocus } from "../ui/list-table.tsx";
import { Menu, type MenuEntry } from "../ui/menu.tsx";
import { EmptyState, ErrorState, Spinner } from "../ui/states.tsx";
import { conditionSentence } from "./condition-draft.ts";
import columnStyles from "./rule-columns.module.css";
import styles from "./rule-parts.module.css";

interface ListedRule {
  readonly id: string;
  readonly name: string;
  readonly condition: Condition;
  readonly enabled: boolean;
  readonly priority: number;
  readonly hit_count: number;
}

interface RuleActions<R> {
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
  readonly mark?: (rule: R) => ReactNode;
}): readonly ListColumn<R>[] {
  return [
    {
      title: "On",
      kind: "switch",
      cell: (rule) => (
        <span className={columnStyles["switch"]}>
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
          <button type="button" className={columnStyles["name"]} onClick={() => actions.edit(rule)}>
            {rule.name}
          </button>
          {mark?.(rule)}
          <div className={columnStyles["condition"]}>{conditionSentence(rule.condition)}</div>
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
        <span className={columnStyles["actions"]}>
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

/** A vertical list of {@link RuleRow}s. */
export function RuleRows({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  const watchFocus = useRowFocus("li");
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- it learns where the focus is, no more
    <ol className={styles["list"]} aria-label={label} onFocus={watchFocus}>
      {children}
    </ol>
  );
}

/** A row of a rule list beside its editor: switch, summary, hit count and menu. */
export function RuleRow({
  rule,
  isChosen,
  lines,
  mark,
  before,
  after,
  hitsTitle,
  menu,
  onToggle,
  onShow,
  ...item
}: {
  readonly rule: ListedRule;
  readonly isChosen: boolean;
  readonly lines: readonly [when: ReactNode, does: ReactNode];
  readonly mark?: ReactNode;
  readonly before?: ReactNode;
  readonly after?: ReactNode;
  readonly hitsTitle: string;
  readonly menu: () => readonly MenuEntry[];
  readonly onToggle: (enabled: boolean) => void;
  readonly onShow: () => void;
} & Omit<ComponentPropsWithRef<"li">, "onToggle" | "children">) {
  return (
    <li
      {...item}
      tabIndex={-1}
      className={styles["rule"]}
      data-chosen={isChosen || undefined}
      data-off={!rule.enabled || undefined}
    >
      {before}
      <Switch aria-label={`Enable ${isolatedName(rule.name)}`} checked={rule.enabled} onChange={onToggle} />
      <button type="button" className={styles["open"]} aria-current={isChosen || undefined} onClick={onShow}>
        <span className={styles["name"]}>
          {rule.name} {mark}
        </span>
        <span className={styles["quiet"]}>{lines[0]}</span>
        <span className={styles["does"]}>{lines[1]}</span>
      </button>
      {after}
      <span className={styles["hits"]} title={hitsTitle}>
        {formatCount(rule.hit_count)}
      </span>
      <Menu
        align="end"
        trigger={
          <IconButton label={`More actions for ${isolatedName(rule.name)}`} icon={<MoreHorizontal size={15} />} />
        }
        items={menu}
      />
    </li>
  );
}

interface RuleCalls<R> {
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

/** A list of rules with an editor beside it; on narrow screens only the editor. */
export function RuleWorkbench({
  list,
  editor,
  share: initialShare,
}: {
  readonly list: ReactNode;
  readonly editor: ReactNode;
  /** Initial share of the width for the list. */
  readonly share: number;
}) {
  const narrow = useNarrow();
  const [share, setShare] = useState(initialShare);
  if (narrow && editor !== null) return editor;
  return (
    <SplitPane
      label="Resize list"
      direction="row"
      share={share}
      onShareChange={setShare}
      minPx={320}
      first={list}
      second={editor}
    />
  );
}

/** Placeholder of a list that is loading or failed to load. `noun` names its items: `mocks`. */
export function ListWaiting({ noun, query }: { readonly noun: string; readonly query: UseQueryResult }) {
  return (
    <>
      {query.error !== null && (
        <ErrorState
          title={`Could not load the ${noun}`}
          error={query.error}
          onRetry={() => {
            void query.refetch();
          }}
        />
      )}
      {query.isPending && <EmptyState icon={<Spinner />} title={`Loading the ${noun}`} />}
    </>
  );
}
