import type { Condition } from "@headworks/capture-contract";
import type { UseQueryResult } from "@tanstack/react-query";
import { Copy, GripVertical, MoreHorizontal, Pencil, Trash2 } from "lucide-react";
import {
  type ComponentPropsWithRef,
  type DragEvent,
  type KeyboardEvent,
  type ReactNode,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
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
import { inOrder, reordered } from "./rule-order.ts";
import columnStyles from "./rule-columns.module.css";
import styles from "./rule-parts.module.css";

interface NamedRule {
  readonly id: string;
  readonly name: string;
  readonly enabled: boolean;
}

interface ListedRule extends NamedRule {
  readonly condition: Condition;
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

/** A row of a rule list beside its editor: switch, summary, hit count if there is one, and menu. */
export function RuleRow({
  rule,
  isChosen,
  lines,
  mark,
  before,
  after,
  hits,
  menu,
  onToggle,
  onShow,
  ...item
}: {
  readonly rule: NamedRule;
  readonly isChosen: boolean;
  readonly lines: readonly [when: ReactNode, does: ReactNode];
  readonly mark?: ReactNode;
  readonly before?: ReactNode;
  readonly after?: ReactNode;
  readonly hits?: { readonly count: number; readonly title: string };
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
      {hits !== undefined && (
        <span className={styles["hits"]} title={hits.title}>
          {formatCount(hits.count)}
        </span>
      )}
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

/**
 * Reorders rows by dragging, with Alt and an arrow, and by menu. `queryKey` is that of the list and begins with its topic; `store` changes the
 * priority of a rule. Returns the row props and menu items of a rule.
 */
export function useReordering<R extends NamedRule & { readonly priority: number; readonly created_at: string }>(
  queryKey: readonly string[],
  store: (rule: R, priority: number) => Promise<unknown>,
) {
  const [dragged, setDragged] = useState<string | null>(null);
  const [over, setOver] = useState<string | null>(null);
  const current = (): readonly R[] => inOrder(queryClient.getQueryData<readonly R[]>(queryKey) ?? []);
  const ids = current().map(({ id }) => id);
  const watchMove = useMovedFocus(ids.join());
  const queue = useRef(Promise.resolve());
  /** Moves a rule to an index of the list, after earlier moves. */
  const move = (id: string, indexIn: (ids: readonly string[]) => number): void => {
    queue.current = queue.current.then(async () => {
      await attempt("Could not change the order", async () => {
        const rules = current();
        const from = rules.findIndex((rule) => rule.id === id);
        const to = indexIn(rules.map((rule) => rule.id));
        if (to < 0 || to >= rules.length) return;
        const before = rules[to > from ? to + 1 : to]?.id ?? null;
        for (const { rule, priority } of reordered(rules, id, before)) await store(rule, priority);
      });
      await queryClient.invalidateQueries({ queryKey: queryKey.slice(0, 1) });
    });
  };
  const step = (id: string, by: number): void => move(id, (list) => list.indexOf(id) + by);
  const end = (): void => {
    setDragged(null);
    setOver(null);
  };
  return ({ id, name }: NamedRule) => {
    const row = {
      before: <GripVertical size={14} className={styles["gripper"]} aria-hidden />,
      draggable: true,
      "data-over": over === id || undefined,
      "data-dragged": dragged === id || undefined,
      onKeyDown: (event: KeyboardEvent<HTMLLIElement>): void => {
        const { target, currentTarget } = event;
        const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
        // React also bubbles events from menus opened by the row.
        if (by === undefined || !event.altKey || !(target instanceof HTMLElement) || !currentTarget.contains(target)) {
          return;
        }
        event.preventDefault();
        watchMove(target);
        step(id, by);
      },
      onDragStart: (event: DragEvent): void => {
        event.dataTransfer.effectAllowed = "move";
        event.dataTransfer.setData("text/plain", name);
        setDragged(id);
      },
      onDragOver: (event: DragEvent): void => {
        if (dragged === null) return;
        event.preventDefault();
        setOver(id);
      },
      onDragEnd: end,
      onDrop: (event: DragEvent): void => {
        event.preventDefault();
        if (dragged !== null) move(dragged, (list) => list.indexOf(id));
        end();
      },
    };
    const menu: readonly MenuEntry[] = [
      { kind: "item", label: "Move up", keys: "Alt ↑", disabled: id === ids[0], onSelect: () => step(id, -1) },
      { kind: "item", label: "Move down", keys: "Alt ↓", disabled: id === ids.at(-1), onSelect: () => step(id, 1) },
    ];
    return { row, menu };
  };
}

/** Restores the focus of a row that the browser takes when the row moves; `order` changes with each move. */
function useMovedFocus(order: string): (element: HTMLElement) => void {
  const focused = useRef<HTMLElement | null>(null);
  useLayoutEffect(() => {
    if (document.activeElement === document.body && focused.current?.isConnected === true) focused.current.focus();
  }, [order]);
  return (element) => {
    focused.current = element;
  };
}

interface RuleCalls<R> {
  readonly topic: string;
  /** Kind of the rules in messages; default: `rule`. */
  readonly noun?: string;
  readonly toggle: (rule: R, enabled: boolean) => Promise<unknown>;
  readonly remove: (rule: R) => Promise<unknown>;
  /** Recreates a deleted rule. */
  readonly restore: (rule: R) => Promise<unknown>;
  readonly duplicate: (rule: R) => Promise<unknown>;
}

/** Enables, duplicates and deletes rules of a list; deletion can be undone. */
export function useRuleList<R extends NamedRule>(calls: RuleCalls<R>): Omit<RuleActions<R>, "edit" | "more"> {
  const { noun = "rule" } = calls;
  const refresh = () => queryClient.invalidateQueries({ queryKey: [calls.topic] });
  const act = async (what: string, action: () => Promise<unknown>): Promise<boolean> => {
    const done = await attempt(what, action);
    await refresh();
    return done;
  };
  const remove = async (rule: R): Promise<void> => {
    if (!(await act(`Could not delete the ${noun}`, () => calls.remove(rule)))) return;
    toast({
      title: `${isolatedName(rule.name)} deleted`,
      durationMs: 8000,
      action: {
        label: "Undo",
        onSelect: () => void act(`Could not restore the ${noun}`, () => calls.restore(rule)),
      },
    });
  };
  return {
    toggle: (rule, enabled) => void act(`Could not switch the ${noun}`, () => calls.toggle(rule, enabled)),
    duplicate: (rule) => void act(`Could not duplicate the ${noun}`, () => calls.duplicate(rule)),
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
