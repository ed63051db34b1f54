import { useMemo } from "react";
import styles from "./diff-view.module.css";
import { diffLines, nearChanges } from "./line-diff.ts";

/** A line diff of two texts; unchanged lines are omitted except near a change. */
export function DiffView({
  left,
  right,
  label,
  same = "No difference",
}: {
  readonly left: readonly string[];
  readonly right: readonly string[];
  readonly label: string;
  readonly same?: string | undefined;
}) {
  const lines = useMemo(() => nearChanges(diffLines(left, right), 3), [left, right]);
  if (lines.every((line) => "skipped" in line)) return <p className={styles["same"]}>{same}</p>;
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reachable by keyboard
    <div className={styles["diff"]} role="group" aria-label={label} tabIndex={0}>
      {lines.map((line, index) =>
        "skipped" in line ? (
          <div key={`${index}`} className={styles["skipped"]}>
            {line.skipped === 1 ? "1 unchanged line" : `${line.skipped} unchanged lines`}
          </div>
        ) : (
          <div key={`${index}`} className={styles["line"]} data-kind={line.kind}>
            <span className={styles["sign"]} aria-label={line.kind === "same" ? undefined : line.kind}>
              {line.kind === "added" ? "+" : line.kind === "removed" ? "−" : " "}
            </span>
            <span className={styles["text"]}>{line.text}</span>
          </div>
        ),
      )}
    </div>
  );
}
