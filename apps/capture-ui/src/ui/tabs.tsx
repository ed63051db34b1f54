import { Tabs as Base } from "@base-ui/react/tabs";
import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";
import styles from "./tabs.module.css";

export interface TabSpec<V extends string> {
  readonly value: V;
  readonly label: ReactNode;
  readonly count?: number | string | undefined;
  /** Called only while the tab is shown. */
  readonly content: () => ReactNode;
}

/** Tabs with panels; fills its parent, the panel scrolls. */
export function Tabs<V extends string>({
  value,
  onChange,
  tabs,
  label,
  className,
}: {
  readonly value: V;
  readonly onChange: (value: V) => void;
  readonly tabs: readonly TabSpec<V>[];
  readonly label: string;
  readonly className?: string | undefined;
}) {
  const shown = tabs.find((tab) => tab.value === value);
  return (
    <Base.Root
      value={value}
      onValueChange={(next) => onChange(next as V)}
      className={classNames(styles["root"], className)}
    >
      <Base.List className={styles["list"]} aria-label={label} activateOnFocus>
        {tabs.map((tab) => (
          <Base.Tab key={tab.value} value={tab.value} className={styles["tab"]}>
            {tab.label}
            {tab.count !== undefined && <span className={styles["count"]}>{tab.count}</span>}
          </Base.Tab>
        ))}
      </Base.List>
      {shown !== undefined && (
        <Base.Panel key={shown.value} value={shown.value} className={styles["panel"]}>
          {shown.content()}
        </Base.Panel>
      )}
    </Base.Root>
  );
}
