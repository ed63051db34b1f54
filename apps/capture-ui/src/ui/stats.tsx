import type { ReactNode } from "react";
import styles from "./stats.module.css";

/** A row of named figures that stand out; as many beside each other as there is room for. */
export function Stats({ figures }: { readonly figures: readonly (readonly [label: string, value: ReactNode])[] }) {
  return (
    <dl className={styles["stats"]}>
      {figures.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
