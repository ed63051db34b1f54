import { ContextMenu as BaseContextMenu } from "@base-ui/react/context-menu";
import { Menu as BaseMenu } from "@base-ui/react/menu";
import { Check, ChevronRight } from "lucide-react";
import { useState } from "react";
import type { MouseEvent, ReactElement, ReactNode } from "react";
import { classNames } from "./class-names.ts";
import styles from "./menu.module.css";

/** One line of a menu. Menus are data, so that several components can share actions. */
export type MenuEntry =
  | {
      readonly kind: "item";
      readonly label: string;
      readonly detail?: string | undefined;
      readonly icon?: ReactNode | undefined;
      readonly keys?: string | undefined;
      readonly danger?: boolean | undefined;
      readonly disabled?: boolean | undefined;
      readonly onSelect: () => void;
    }
  | {
      readonly kind: "check";
      readonly label: string;
      readonly checked: boolean;
      readonly disabled?: boolean | undefined;
      readonly onChange: (checked: boolean) => void;
    }
  | {
      readonly kind: "choice";
      readonly value: string;
      readonly options: readonly { readonly value: string; readonly label: string }[];
      readonly onChange: (value: string) => void;
    }
  | {
      readonly kind: "submenu";
      readonly label: string;
      readonly icon?: ReactNode | undefined;
      readonly items: readonly MenuEntry[];
    }
  | { readonly kind: "heading"; readonly label: string }
  | { readonly kind: "separator" };

function Items({ items }: { readonly items: readonly MenuEntry[] }) {
  // Items never move while a menu is open, so the index identifies them.
  return items.map((item, index) => <Item key={`${index}-${item.kind}`} item={item} />);
}

function Item({ item }: { readonly item: MenuEntry }) {
  switch (item.kind) {
    case "separator":
      return <BaseMenu.Separator className={styles["separator"]} />;
    case "heading":
      return (
        <div className={styles["heading"]} role="presentation">
          {item.label}
        </div>
      );
    case "check":
      return (
        <BaseMenu.CheckboxItem
          className={styles["item"]}
          checked={item.checked}
          disabled={item.disabled ?? false}
          closeOnClick={false}
          onCheckedChange={item.onChange}
        >
          <span className={styles["mark"]}>{item.checked && <Check size={14} />}</span>
          <span className={styles["text"]}>{item.label}</span>
        </BaseMenu.CheckboxItem>
      );
    case "choice":
      return (
        <BaseMenu.RadioGroup value={item.value} onValueChange={(value) => item.onChange(String(value))}>
          {item.options.map((option) => (
            <BaseMenu.RadioItem key={option.value} value={option.value} className={styles["item"]} closeOnClick={false}>
              <span className={styles["mark"]}>{option.value === item.value && <Check size={14} />}</span>
              <span className={styles["text"]}>{option.label}</span>
            </BaseMenu.RadioItem>
          ))}
        </BaseMenu.RadioGroup>
      );
    case "submenu":
      return (
        <BaseMenu.SubmenuRoot>
          <BaseMenu.SubmenuTrigger className={styles["item"]} label={item.label}>
            <span className={styles["mark"]}>{item.icon}</span>
            <span className={styles["text"]}>{item.label}</span>
            <ChevronRight size={14} className={styles["mark"]} />
          </BaseMenu.SubmenuTrigger>
          <BaseMenu.Portal>
            <BaseMenu.Positioner className={styles["positioner"]} sideOffset={2} alignOffset={-4}>
              <BaseMenu.Popup className={styles["popup"]}>
                <Items items={item.items} />
              </BaseMenu.Popup>
            </BaseMenu.Positioner>
          </BaseMenu.Portal>
        </BaseMenu.SubmenuRoot>
      );
    case "item":
      return (
        <BaseMenu.Item
          className={classNames(styles["item"], item.danger === true && styles["danger"])}
          disabled={item.disabled ?? false}
          label={item.label}
          onClick={item.onSelect}
        >
          <span className={styles["mark"]}>{item.icon}</span>
          <span className={styles["text"]}>
            {item.label}
            {item.detail !== undefined && <span className={styles["detail"]}>{item.detail}</span>}
          </span>
          {item.keys !== undefined && <span className={styles["keys"]}>{item.keys}</span>}
        </BaseMenu.Item>
      );
  }
}

/** A menu opened by a button. `items` is called on opening. */
export function Menu({
  trigger,
  items,
  align = "start",
  side = "bottom",
}: {
  /** A Button or IconButton. */
  readonly trigger: ReactElement;
  readonly items: () => readonly MenuEntry[];
  readonly align?: "start" | "center" | "end";
  readonly side?: "top" | "bottom" | "left" | "right";
}) {
  return (
    <BaseMenu.Root modal={false}>
      <BaseMenu.Trigger render={trigger} />
      <BaseMenu.Portal>
        <BaseMenu.Positioner className={styles["positioner"]} side={side} align={align} sideOffset={4}>
          <BaseMenu.Popup className={styles["popup"]}>
            <LazyItems items={items} />
          </BaseMenu.Popup>
        </BaseMenu.Positioner>
      </BaseMenu.Portal>
    </BaseMenu.Root>
  );
}

function LazyItems({ items }: { readonly items: () => readonly MenuEntry[] }) {
  return <Items items={items()} />;
}

/** A context menu. `items` is called with the event; an empty list opens nothing. */
export function ContextMenu({
  items,
  onOpenChange,
  children,
}: {
  readonly items: (event: MouseEvent<HTMLElement>) => readonly MenuEntry[];
  readonly onOpenChange?: (open: boolean) => void;
  /** One element that accepts a ref and event handlers. */
  readonly children: ReactElement;
}) {
  const [entries, setEntries] = useState<readonly MenuEntry[]>([]);
  return (
    <BaseContextMenu.Root onOpenChange={(open) => onOpenChange?.(open)}>
      <BaseContextMenu.Trigger
        render={children}
        onContextMenu={(event) => {
          const next = items(event);
          setEntries(next);
          if (next.length === 0) event.preventBaseUIHandler();
        }}
      />
      <BaseContextMenu.Portal>
        <BaseContextMenu.Positioner className={styles["positioner"]}>
          <BaseContextMenu.Popup className={styles["popup"]}>
            <Items items={entries} />
          </BaseContextMenu.Popup>
        </BaseContextMenu.Positioner>
      </BaseContextMenu.Portal>
    </BaseContextMenu.Root>
  );
}
