import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";
import styles from "./pill.module.css";

/** A toggle filter with a count of matches. */
export function Pill({
  pressed,
  count,
  tone = "default",
  onClick,
  children,
}: {
  readonly pressed: boolean;
  readonly count?: string | undefined;
  readonly tone?: "default" | "error";
  readonly onClick: () => void;
  readonly children: ReactNode;
}) {
  return (
    <button
      type="button"
      aria-pressed={pressed}
      className={classNames(styles["pill"], tone === "error" && styles["error"])}
      onClick={onClick}
    >
      {children}
      {count !== undefined && <span className={styles["count"]}>{count}</span>}
    </button>
  );
}
