import { CircleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { errorText } from "../api.ts";
import { Button } from "./button.tsx";
import { classNames } from "./class-names.ts";
import styles from "./states.module.css";

/** Placeholder of an empty view, with suggested actions. */
export function EmptyState({
  icon,
  title,
  children,
  actions,
}: {
  readonly icon?: ReactNode | undefined;
  readonly title: string;
  readonly children?: ReactNode | undefined;
  readonly actions?: ReactNode | undefined;
}) {
  return (
    <div className={styles["state"]}>
      {icon}
      <p className={styles["title"]}>{title}</p>
      {children !== undefined && <div className={styles["text"]}>{children}</div>}
      {actions !== undefined && <div className={styles["actions"]}>{actions}</div>}
    </div>
  );
}

/** Placeholder of a view that failed to load, with the error and a retry button. */
export function ErrorState({
  title,
  error,
  onRetry,
}: {
  readonly title: string;
  readonly error: unknown;
  readonly onRetry?: (() => void) | undefined;
}) {
  return (
    <div className={classNames(styles["state"], styles["error"])} role="alert">
      <CircleAlert size={28} aria-hidden />
      <p className={styles["title"]}>{title}</p>
      <div className={styles["text"]}>{errorText(error)}</div>
      {onRetry !== undefined && (
        <div className={styles["actions"]}>
          <Button onClick={onRetry}>Try again</Button>
        </div>
      )}
    </div>
  );
}

/** Progress indicator, sized to the surrounding text. */
export function Spinner({ label = "Loading" }: { readonly label?: string }) {
  return <output className={styles["spinner"]} aria-label={label} />;
}
