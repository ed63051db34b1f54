import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Card } from "../../ui/page.tsx";
import { ErrorState, Spinner } from "../../ui/states.tsx";
import styles from "./settings.module.css";

/** A section about something that the service tells of itself; says so while that is fetched and when it cannot be had. */
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

/** How something is doing: `good` works, `idle` is switched off, `waiting` needs something first, `bad` does not work. */
export type StatusTone = "good" | "idle" | "waiting" | "bad";

/** One sentence at the head of a section on how it is doing. Told to screen readers when it changes. */
export function StatusLine({ tone, children }: { readonly tone: StatusTone; readonly children: ReactNode }) {
  return (
    <p className={styles["status"]} data-tone={tone} role="status">
      <span className={styles["statusDot"]} aria-hidden />
      <span>{children}</span>
    </p>
  );
}

/** What went wrong, framed so that nobody misses it. */
export function Problem({ children }: { readonly children: ReactNode }) {
  return (
    <p className={styles["problem"]} role="alert">
      {children}
    </p>
  );
}

/** Names and values below each other; holds {@link Fact}s. */
export function Facts({ children }: { readonly children: ReactNode }) {
  return <dl className={styles["facts"]}>{children}</dl>;
}

/** One named value; `bad` marks one that should not be. */
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

/** Buttons and what they answered, in one row that wraps. */
export function SectionActions({ children }: { readonly children: ReactNode }) {
  return <div className={styles["actions"]}>{children}</div>;
}
