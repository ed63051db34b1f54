import type { ComponentPropsWithRef, ReactNode } from "react";
import { classNames } from "./class-names.ts";
import styles from "./table.module.css";

/** A table for lists of at most some hundred rows, with a sticky header. Write `thead`, `tbody`, `th`, `td` inside. */
export function Table({
  label,
  children,
  className,
}: {
  readonly label: string;
  readonly children: ReactNode;
  readonly className?: string | undefined;
}) {
  return (
    <div className={classNames(styles["frame"], className)}>
      <table className={styles["table"]} aria-label={label}>
        {children}
      </table>
    </div>
  );
}

/** A cell of numbers, aligned at the end; use it as `th` too. */
export function NumberCell({ as: Cell = "td", ...rest }: ComponentPropsWithRef<"td"> & { readonly as?: "td" | "th" }) {
  return <Cell {...rest} className={classNames(styles["number"], rest.className)} />;
}
