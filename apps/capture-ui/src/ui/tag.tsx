import type { ReactNode } from "react";
import { classNames } from "./class-names.ts";
import styles from "./tag.module.css";

/** A short label on a row or heading. */
export function Tag({
  tone = "accent",
  title,
  children,
}: {
  readonly tone?: "accent" | "neutral" | "warning" | "error" | "ok" | undefined;
  readonly title?: string | undefined;
  readonly children: ReactNode;
}) {
  return (
    <span className={classNames(styles["tag"], tone !== "accent" && styles[tone])} title={title}>
      {children}
    </span>
  );
}

/** Keys in keyboard notation: `Ctrl K`. */
export function KeyHint({ keys }: { readonly keys: string }) {
  return <kbd className={styles["keys"]}>{keys}</kbd>;
}
