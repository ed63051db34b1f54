import { MoreHorizontal } from "lucide-react";
import type { ComponentPropsWithRef, ReactNode } from "react";
import { IconButton } from "../ui/button.tsx";
import { Switch } from "../ui/field.tsx";
import { formatCount } from "../ui/format.ts";
import { isolatedName } from "../ui/isolated-name.ts";
import { Menu, type MenuEntry } from "../ui/menu.tsx";
import { useRowFocus } from "../ui/use-row-focus.ts";
import type { ListedRule } from "./rule-columns.tsx";
import styles from "./rule-parts.module.css";

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
  /** Condition and effect. */
  readonly lines: readonly [when: ReactNode, does: ReactNode];
  /** Mark beside the name. */
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
