import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Card } from "../../ui/page.tsx";
import { ErrorState, Spinner } from "../../ui/states.tsx";
import styles from "./settings.module.css";

/** A section with data of the service, including its loading and error states. */
export function LiveSection<T>({
  id,
  title,
  aside,
  query,
  children,
}: {
  readonly id: string;
  readonly title: string;
  readonly aside?: ReactNode;
  readonly query: UseQueryResult<T>;
  readonly children: (data: T) => ReactNode;
}) {
  return (
    <Card id={id} title={title} aside={aside}>
      <div className={styles["section"]}>
        {query.error !== null && (
          <ErrorState
            title={`${title}: could not be loaded`}
            error={query.error}
            onRetry={() => void query.refetch()}
          />
        )}
        {query.isPending && <Spinner label={`Loading: ${title}`} />}
        {query.data !== undefined && children(query.data)}
      </div>
    </Card>
  );
}

/** `good`: works; `idle`: disabled; `waiting`: needs an action or restart; `bad`: fails. */
export type StatusTone = "good" | "idle" | "waiting" | "bad";

/** Status sentence at the head of a section; changes are announced to screen readers. */
export function StatusLine({ tone, children }: { readonly tone: StatusTone; readonly children: ReactNode }) {
  return (
    <p className={styles["status"]} data-tone={tone} role="status">
      <span className={styles["statusDot"]} aria-hidden />
      <span>{children}</span>
    </p>
  );
}

export function Problem({ children }: { readonly children: ReactNode }) {
  return (
    <p className={styles["problem"]} role="alert">
      {children}
    </p>
  );
}

export function Facts({ children }: { readonly children: ReactNode }) {
  return <dl className={styles["facts"]}>{children}</dl>;
}

/** A named value; `bad` highlights a problem. */
export function Fact({
  name,
  bad = false,
  children,
}: {
  readonly name: string;
  readonly bad?: boolean;
  readonly children: ReactNode;
}) {
  return (
    <>
      <dt>{name}</dt>
      <dd className={bad ? styles["bad"] : undefined}>{children}</dd>
    </>
  );
}

/** Buttons and their results, in a wrapping row. */
export function SectionActions({ children }: { readonly children: ReactNode }) {
  return <div className={styles["actions"]}>{children}</div>;
}
