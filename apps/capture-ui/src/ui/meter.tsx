import { classNames } from "./class-names.ts";
import styles from "./meter.module.css";

/** Usage of a limit: amber above 80 %, red when full, unless `isProgress`; `max` 0 means no limit. */
export function Meter({
  value,
  max,
  label,
  text,
  isProgress = false,
}: {
  readonly value: number;
  readonly max: number;
  readonly label: string;
  /** Shown above the bar: `4,212 of 10,000`. */
  readonly text: string;
  /** Full means complete, not exhausted. */
  readonly isProgress?: boolean;
}) {
  const share = max > 0 ? Math.min(1, value / max) : 0;
  return (
    <div
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={Math.max(max, value, 1)}
      aria-valuenow={value}
      aria-valuetext={text}
      className={classNames(
        styles["meter"],
        !isProgress && (share >= 1 ? styles["full"] : share > 0.8 && styles["warning"]),
      )}
    >
      <span className={styles["text"]}>{text}</span>
      <span className={styles["track"]}>
        <span className={styles["fill"]} style={{ display: "block", width: `${share * 100}%` }} />
      </span>
    </div>
  );
}
