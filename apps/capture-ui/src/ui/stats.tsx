import type { ReactNode } from "react";
import styles from "./stats.module.css";

/** A wrapping row of prominent named figures. */
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
